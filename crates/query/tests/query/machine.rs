//! A machine with two devices and four processes, each different in what is known of it.

use telltale_schema::chip::{AsicId, BoardType, ChipFacts, ChipIdentity, PciAddress};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Container, Device, HeldDevice, HeldKind, HeldUsage, Load, Pod, Process,
    ProcessSource, ProcessState, RecordingFaults, Snapshot, SpaceUsage, Telemetry,
};

const NOW: Timestamp = Timestamp(1_000_000_000);
const GIB: u64 = 1 << 30;

fn at<T>(value: T) -> Reading<T> {
    Reading::new(value, NOW)
}

fn no<T>() -> Reading<T> {
    Reading::absent(Absence::Permission, "")
}

/// The machine.
pub(crate) fn snapshot() -> Snapshot {
    Snapshot {
        collected_in_ns: 1,
        devices: vec![
            device("cool", 0, at(40.0), Some(3 * GIB)),
            device("hot", 1, at(85.5), Some(11 * GIB)),
            device("mute", 2, no(), None),
        ],
        processes: vec![trainer(), server(), stranger(), idler()],
        closed_processes: 1,
        withheld_processes: 2,
        ..Snapshot::empty(NOW)
    }
}

fn device(id: &str, number: u8, temperature: Reading<f64>, used: Option<u64>) -> Device {
    let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
    telemetry.temperature_celsius = temperature;
    telemetry.aiclk_hertz = at(1_000_000_000);
    if id == "hot" {
        let load = Load { busy_ratio: at(0.9), ..Load::absent(Absence::Unsupported, "") };
        telemetry.load = Some(Box::new(load));
    }
    Device {
        id: id.to_owned(),
        identity: ChipIdentity {
            driver_ordinal: Some(u32::from(number)),
            pci: Some(PciAddress { domain: 0, bus: number, device: 0, function: 0 }),
            asic_id: Some(AsicId(7)),
            board_id: None,
            board_type: BoardType::N150,
            location: 0,
            galaxy: None,
            remote: false,
        }
        .into(),
        facts: ChipFacts::of_board(BoardType::N150).map_or_else(no, at),
        telemetry,
        spaces: vec![SpaceUsage {
            space: MemorySpace::Dram,
            used_bytes: used.map_or_else(no, at),
            capacity_bytes: at(12 * GIB),
            capacity_source: None,
        }],
        kinds: Vec::new(),
        holders: at(Vec::new()),
        faults: Vec::new(),
        health_not_kept: false,
    }
}

fn held(device: usize, accounting: Accounting, kinds: &[(MemoryKind, u64)]) -> HeldDevice {
    let kinds = kinds.iter().map(|(kind, live_bytes)| {
        let usage = match accounting {
            Accounting::Recorded => HeldUsage::Recorded(MemoryUsage {
                live_bytes: *live_bytes,
                live_buffers: 3,
                peak_bytes: 2 * live_bytes,
                allocations: 10,
                ..MemoryUsage::default()
            }),
            _ => HeldUsage::BytesOnly { live_bytes: *live_bytes },
        };
        HeldKind { kind: *kind, usage }
    });
    let mut held =
        HeldDevice { device, accounting, kinds: kinds.collect(), ..HeldDevice::default() };
    held.add_up();
    held
}

fn process(pid: u32, name: &str, user: &str, devices: Vec<HeldDevice>) -> Process {
    Process {
        identity: None,
        pid: Some(pid),
        namespace_pid: None,
        name: name.to_owned(),
        command: at(format!("/usr/bin/{name} --x 1")),
        uid: at(1000),
        user: at(user.to_owned()),
        container: None,
        state: ProcessState::Alive,
        known_by: Some(ProcessSource::Ledger),
        started_at: None,
        usage: None,
        uptime_seconds: at(7_200.0),
        devices,
        faults: RecordingFaults::default(),
        metrics: [].into(),
    }
}

/// On both devices, with 3 GiB on the first and 1 GiB on the second.
fn trainer() -> Process {
    let recorded = |device, bytes| {
        held(device, Accounting::Recorded, &[(MemoryKind::Dram, bytes), (MemoryKind::L1, 4096)])
    };
    process(100, "train.py", "ada", vec![recorded(0, 3 * GIB), recorded(1, GIB)])
}

/// In a pod, with 5 GiB on the second device of which nothing but the bytes is known.
fn server() -> Process {
    let pod = Pod { namespace: "ml".into(), name: "llm-0".into(), ..Pod::default() };
    let container = Container {
        id: "0123abcd".into(),
        engine: "containerd".into(),
        pod_uid: None,
        pod: Some(pod),
    };
    Process {
        container: Some(container),
        known_by: Some(ProcessSource::Region),
        started_at: None,
        usage: None,
        uptime_seconds: no(),
        ..process(
            200,
            "serve",
            "root",
            vec![held(1, Accounting::BytesOnly, &[(MemoryKind::Dram, 5 * GIB)])],
        )
    }
}

/// Whose name and memory may not be read.
fn stranger() -> Process {
    Process {
        user: no(),
        command: no(),
        known_by: None,
        ..process(300, "x", "", vec![held(1, Accounting::Unknown, &[])])
    }
}

/// Without a device, and dead.
fn idler() -> Process {
    Process { state: ProcessState::Dead, ..process(400, "Sleepy", "Ada", Vec::new()) }
}
