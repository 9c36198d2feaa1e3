//! What ledgers and endpoints say of memory, in one shape. Pure.

use telltale_ledger::{DeviceEntry, LedgerReading, RegionMirror};
use telltale_schema::snapshot::{KindUsage, ProcessSource};
use telltale_wire::Report;

use crate::observation::{DeviceClaim, MemoryClaim};

/// What a ledger says.
pub(crate) fn of_ledger(reading: &LedgerReading) -> MemoryClaim {
    let mut devices: Vec<DeviceClaim> = reading.devices.iter().map(device).collect();
    // A device's kinds lie together, and get the room that they need at once.
    for of_device in reading.usage.chunk_by(|one, next| one.0 == next.0) {
        if let Some(device) = of_device.first().and_then(|(slot, ..)| devices.get_mut(slot.index()))
        {
            let kinds = of_device.iter();
            device.kinds.extend(kinds.map(|&(_, kind, usage)| KindUsage { kind, usage }));
        }
    }
    MemoryClaim { source: ProcessSource::Ledger, devices }
}

fn device(entry: &DeviceEntry) -> DeviceClaim {
    DeviceClaim {
        chip: entry.identity.clone(),
        is_host: entry.is_host,
        facts: None,
        dram_capacity_bytes: entry.dram_capacity_bytes,
        l1_capacity_bytes: entry.l1_capacity_bytes,
        mirror: entry.mirror,
        kinds: Vec::new(),
    }
}

impl MemoryClaim {
    /// Whether it names a device beside the machine itself, or nothing.
    pub(crate) fn is_of_devices(&self) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|device| !device.is_host)
    }

    /// Whether it names the machine itself.
    pub(crate) fn is_of_host(&self) -> bool {
        self.devices.iter().any(|device| device.is_host)
    }
}

/// What an endpoint says.
pub(crate) fn of_report(report: &Report) -> MemoryClaim {
    let devices = report.devices.iter().map(|device| DeviceClaim {
        chip: device.chip.clone(),
        is_host: false,
        facts: device.facts,
        dram_capacity_bytes: device.facts.map(|facts| facts.dram_capacity_bytes),
        l1_capacity_bytes: device
            .facts
            .and_then(|facts| facts.l1_per_core_bytes.checked_mul(u64::from(facts.worker_cores))),
        mirror: match (device.mirrored, device.mirrored_row) {
            (false, _) => RegionMirror::None,
            (true, false) => RegionMirror::Totals,
            (true, true) => RegionMirror::TotalsAndRow,
        },
        kinds: device.kinds.clone(),
    });
    MemoryClaim { source: ProcessSource::Endpoint, devices: devices.collect() }
}
