//! What ledgers and endpoints say of memory, in one shape. Pure.

use telltale_ledger::{DeviceEntry, LedgerReading, RegionMirror};
use telltale_schema::chip::PciAddress;
use telltale_schema::snapshot::{KindUsage, ProcessSource};
use telltale_wire::{DeviceReport, Report};

use crate::observation::{Described, DeviceClaim, MemoryClaim};

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
        device: Described { chip: entry.identity.clone(), logical_id: Some(entry.logical_id) },
        is_host: entry.is_host,
        facts: None,
        dram_capacity_bytes: entry.dram_capacity_bytes,
        l1_capacity_bytes: entry.l1_capacity_bytes,
        mirror: entry.mirror,
        kinds: Vec::new(),
    }
}

impl MemoryClaim {
    /// Takes in what another ledger of the same process says, if each is a part: a program that keeps a ledger itself has
    /// a second one under `telltale run`, which alone names the machine itself. Of a device that both name the
    /// program's own values count, because they are the closer ones, and the other's do not. Two ledgers of one
    /// sort are one twice, and the second is left out. Says whether it was taken in.
    pub(crate) fn take_part(&mut self, other: Self) -> bool {
        if self.is_of_host() == other.is_of_host() {
            return false;
        }
        let mut other = other;
        if self.is_of_host() {
            std::mem::swap(self, &mut other);
        }
        let own: Vec<PciAddress> =
            self.devices.iter().filter_map(|one| one.device.chip.pci).collect();
        let is_own = |one: &DeviceClaim| one.device.chip.pci.is_some_and(|pci| own.contains(&pci));
        self.devices.extend(other.devices.into_iter().filter(|one| !is_own(one)));
        true
    }

    /// Whether it names a device beside the machine itself, or nothing.
    pub(crate) fn is_of_devices(&self) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|device| !device.is_host)
    }

    /// Whether it names the machine itself.
    pub(crate) fn is_of_host(&self) -> bool {
        self.devices.iter().any(|device| device.is_host)
    }
}

/// How a report describes a device.
pub(crate) fn described(device: &DeviceReport) -> Described {
    Described { chip: device.chip.clone(), logical_id: device.logical_id }
}

/// What an endpoint says.
pub(crate) fn of_report(report: &Report) -> MemoryClaim {
    let devices = report.devices.iter().map(|device| DeviceClaim {
        device: described(device),
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

#[cfg(test)]
mod tests {
    use telltale_schema::chip::ChipIdentity;
    use telltale_schema::memory::{MemoryKind, MemoryUsage};
    use telltale_schema::snapshot::{KindUsage, ProcessSource};

    use crate::observation::{DeviceClaim, MemoryClaim};

    fn device(pci: Option<&str>, live_bytes: u64) -> DeviceClaim {
        let usage = MemoryUsage { live_bytes, ..MemoryUsage::default() };
        DeviceClaim {
            device: ChipIdentity {
                pci: pci.map(|text| text.parse().unwrap()),
                ..ChipIdentity::default()
            }
            .into(),
            is_host: pci.is_none(),
            kinds: vec![KindUsage { kind: MemoryKind::Dram, usage }],
            ..DeviceClaim::default()
        }
    }

    fn claim(devices: Vec<DeviceClaim>) -> MemoryClaim {
        MemoryClaim { source: ProcessSource::Ledger, devices }
    }

    #[test]
    fn two_ledgers_of_a_process_are_two_parts_and_no_device_counts_twice() {
        let own = || claim(vec![device(Some("0000:17:00.0"), 1), device(Some("0000:18:00.0"), 2)]);
        let preloaded = || {
            let (shared, other) = (Some("0000:17:00.0"), Some("0000:19:00.0"));
            claim(vec![device(None, 4), device(shared, 8), device(other, 16)])
        };
        for (mut first, second) in [(own(), preloaded()), (preloaded(), own())] {
            assert!(first.take_part(second));
            let live = |one: &DeviceClaim| one.kinds[0].usage.live_bytes;
            assert_eq!(first.devices.iter().map(live).collect::<Vec<_>>(), [1, 2, 4, 16]);
        }
        for one in [own, preloaded] {
            let mut first = one();
            assert!(!first.take_part(one()), "the same ledger in two directories");
            assert_eq!(first.devices.len(), one().devices.len());
        }
    }
}
