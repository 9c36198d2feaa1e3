//! A machine that two users share.

use std::sync::Arc;

use telltale_node::service::ServiceMetrics;
use telltale_schema::chip::{AsicId, BoardType, ChipFacts, ChipIdentity};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldKind, HeldUsage, Holder, MetricSample, MetricValue,
    Process, ProcessSource, ProcessState, RecordingFaults, Snapshot, SourceStatus, Telemetry,
};

pub(crate) const ALICE: u32 = 61_001;
pub(crate) const BOB: u32 = 61_002;

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// A service that has done nothing yet.
pub(crate) fn own_metrics() -> ServiceMetrics {
    ServiceMetrics::at_start(NOW)
}

/// So many devices and processes, each process with something on each device. Even pids are
/// Alice's, odd ones Bob's.
pub(crate) fn machine(devices: usize, processes: u32) -> Arc<Snapshot> {
    Arc::new(Snapshot {
        collected_in_ns: 40_000,
        devices: (0..devices).map(|place| device(place, processes)).collect(),
        processes: (100..100 + processes).map(|pid| process(pid, devices)).collect(),
        sources: vec![SourceStatus {
            name: String::from("ledgers"),
            duration_ns: 30_000,
            errors: Vec::new(),
            errors_dropped: 0,
            notes: Vec::new(),
        }],
        ..Snapshot::empty(NOW)
    })
}

fn device(place: usize, processes: u32) -> Device {
    let identity = ChipIdentity {
        driver_ordinal: u32::try_from(place).ok(),
        asic_id: Some(AsicId(0x2_5173_2000 + place as u64)),
        board_type: BoardType::N150,
        ..ChipIdentity::default()
    };
    let holder = |pid| Holder { pid: Some(pid), open_descriptors: 1, memory_known: true };
    let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
    telemetry.temperature_celsius = Reading::new(51.5, NOW);
    telemetry.power_watts = Reading::new(31.0, NOW);
    Device {
        id: identity.display_id(),
        identity: identity.into(),
        facts: Reading::new(ChipFacts::of_board(BoardType::N150).expect("it is in the table"), NOW),
        telemetry,
        spaces: Vec::new(),
        kinds: Vec::new(),
        holders: Reading::new((100..100 + processes).map(holder).collect(), NOW),
        faults: Vec::new(),
        health_not_kept: false,
    }
}

fn process(pid: u32, devices: usize) -> Process {
    let (uid, user) = if pid.is_multiple_of(2) { (ALICE, "alice") } else { (BOB, "bob") };
    let usage = MemoryUsage { live_bytes: u64::from(pid) << 20, ..MemoryUsage::default() };
    let kinds = [MemoryKind::Dram, MemoryKind::L1, MemoryKind::Cb, MemoryKind::KernelApplication];
    let held = |device| {
        let kind = |kind| HeldKind { kind, usage: HeldUsage::Recorded(usage) };
        let mut held = HeldDevice {
            device,
            open_descriptors: 1,
            accounting: Accounting::Recorded,
            kinds: kinds.map(kind).to_vec(),
            ..HeldDevice::default()
        };
        held.add_up();
        held
    };
    let metric = |number: u64| MetricSample {
        name: format!("telltale_process_figure_{number}_total"),
        help: format!(
            "What metric {number} of this process counts, in a sentence of usual length."
        ),
        unit: String::new(),
        labels: vec![(String::from("device"), String::from("251732000"))],
        value: MetricValue::Counter(number * u64::from(pid)),
    };
    Process {
        identity: Some(ProcessIdentity {
            boot_id: [7; 16],
            pid_namespace: 4_026_531_836,
            pid,
            start_time_ticks: 12_345,
        }),
        pid: Some(pid),
        namespace_pid: None,
        name: format!("train-{user}"),
        command: Reading::new(format!("python3 train.py --of {user} --rank {pid}"), NOW),
        uid: Reading::new(uid, NOW),
        user: Reading::new(user.to_owned(), NOW),
        container: None,
        state: ProcessState::Alive,
        known_by: Some(ProcessSource::Ledger),
        started_at: None,
        usage: None,
        uptime_seconds: Reading::new(12.5, NOW),
        devices: (0..devices).map(held).collect(),
        faults: RecordingFaults::default(),
        metrics: (0..16).map(metric).collect(),
    }
}
