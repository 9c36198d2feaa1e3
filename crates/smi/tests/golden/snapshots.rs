//! Snapshots with everything that is hard to show.

use telltale_schema::chip::{
    AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, FactSource, PciAddress,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, AllocatedDevices, Container, Device, HeldDevice, HeldKind, HeldUsage, Holder,
    HostUsage, KindMemory, MetricSample, MetricValue, PcieLink, Pod, Process, ProcessSource,
    ProcessState, ProcessUsage, RecordingFaults, Snapshot, SourceError, SourceStatus, SpaceUsage,
    Telemetry,
};

const NOW: Timestamp = Timestamp(1_000_000_000);
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn at<T>(value: T) -> Reading<T> {
    Reading::new(value, NOW)
}

fn no<T>(reason: Absence, detail: &str) -> Reading<T> {
    Reading::absent(reason, detail)
}

/// A machine with nothing in it and no complaint.
pub(crate) fn empty() -> Snapshot {
    Snapshot {
        collected_in_ns: 5_000_000,
        sources: vec![source("tenstorrent", Vec::new(), 0)],
        ..Snapshot::empty(NOW)
    }
}

/// What a process uses that is busy on one processor and a half, and may not say what it writes.
fn used_of_host() -> ProcessUsage {
    ProcessUsage {
        cpu_ratio: at(1.5),
        resident_bytes: at(3 << 30),
        threads: at(48),
        read_bytes_per_second: at(120 << 20),
        written_bytes_per_second: no(Absence::Permission, "/proc/4242/io: Permission denied"),
    }
}

/// What the machine uses.
fn host() -> HostUsage {
    HostUsage {
        cpu_ratio: at(0.34),
        processors: at(64),
        used_bytes: at(96 << 30),
        memory_bytes: at(512 << 30),
        load_1: at(12.34),
        load_5: at(10.0),
        load_15: at(8.0),
    }
}

fn source(name: &str, errors: Vec<SourceError>, errors_dropped: u64) -> SourceStatus {
    let (name, notes) = (name.to_owned(), Vec::new());
    SourceStatus { name, duration_ns: 1, errors, errors_dropped, notes }
}

/// An n300 whose first chip is hot and nearly full, and whose second cannot be read; all
/// kinds of processes on it.
pub(crate) fn troubled() -> Snapshot {
    let error = SourceError {
        subject: String::from("tenstorrent!0/tt_aiclk"),
        reason: Absence::TimedOut,
        detail: String::from("the driver did not answer; a reset of the chip ends it"),
    };
    let mut device = local_device();
    let detail = "PCIe narrower than the slot: PCIe lanes 8 of 16; reseat the card";
    let narrow = FaultKind::PcieWidthBelowSlot;
    device.faults.push(Fault::new(narrow, Timestamp(1), detail.to_owned()));
    Snapshot {
        devices: vec![device, remote_device()],
        host: Some(Box::new(host())),
        processes: vec![
            trainer(),
            dead(),
            foreign(),
            remote(),
            starting(),
            silent(),
            hidden(),
            unseen(),
        ],
        closed_processes: 3,
        sources: vec![source("tenstorrent", vec![error], 0), source("ledgers", Vec::new(), 7)],
        ..empty()
    }
}

fn identity(location: u8) -> ChipIdentity {
    ChipIdentity {
        driver_ordinal: (location == 0).then_some(0),
        pci: (location == 0).then_some(PciAddress { domain: 0, bus: 3, device: 0, function: 0 }),
        asic_id: Some(AsicId(0x2_5173_2099)),
        board_id: Some(BoardId(0x0100_0145_1173_2099)),
        board_type: BoardType::N300,
        location,
        galaxy: None,
        remote: location > 0,
    }
}

/// A device without holders, with nothing in use.
pub(crate) fn idle_device(id: &str) -> Device {
    let mut device =
        Device { id: id.to_owned(), holders: at(Vec::new()), kinds: Vec::new(), ..local_device() };
    for space in &mut device.spaces {
        space.used_bytes = at(0);
    }
    device.telemetry.link = Some(Box::new(link([4, 16])));
    device
}

/// The link of a device in a slot of PCIe 4.0 x16.
pub(crate) fn link([generation, width]: [u64; 2]) -> PcieLink {
    PcieLink {
        pcie_generation: at(generation),
        pcie_generation_max: at(4),
        pcie_width: at(width),
        pcie_width_max: at(16),
        pcie_received_bytes_per_second: at(3 * GIB / 2),
        pcie_sent_bytes_per_second: no(Absence::NotYet, "first sample"),
        numa_node: at(1),
        pcie_correctable_errors_total: at(3),
        pcie_nonfatal_errors_total: at(0),
        pcie_fatal_errors_total: at(0),
    }
}

fn local_device() -> Device {
    let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
    telemetry.temperature_celsius = at(72.4);
    telemetry.temperature_limit_celsius = at(75.0);
    telemetry.power_watts = at(70.2);
    telemetry.power_limit_watts = at(85.0);
    telemetry.aiclk_hertz = no(Absence::TimedOut, "the driver did not answer");
    telemetry.heartbeat_total = at(12_345);
    telemetry.link = Some(Box::new(link([3, 8])));
    telemetry.firmware.insert(String::from("tt_fw_bundle_ver"), String::from("19.9.0.0"));
    let parts = |kind, processes_bytes, unattributed_bytes, ghost_bytes, live_buffers| KindMemory {
        kind,
        total_bytes: processes_bytes + unattributed_bytes + ghost_bytes,
        processes_bytes,
        unattributed_bytes,
        ghost_bytes,
        live_buffers: Some(live_buffers),
    };
    Device {
        id: String::from("251732099"),
        identity: identity(0).into(),
        facts: ChipFacts::of_board(BoardType::N300)
            .map_or_else(|| no(Absence::Unsupported, ""), at),
        telemetry,
        spaces: vec![
            space(MemorySpace::Dram, at(12 * GIB - 256 * MIB), at(12 * GIB)),
            space(MemorySpace::L1, at(3 * MIB), at(95_944_704)),
        ],
        kinds: vec![
            KindMemory {
                live_buffers: None,
                ..parts(MemoryKind::Dram, 11 * GIB + 128 * MIB, 384 * MIB, 256 * MIB, 0)
            },
            parts(MemoryKind::L1, 3 * MIB, 0, 0, 12),
        ],
        holders: at(vec![
            Holder { pid: Some(4_242), open_descriptors: 1, memory_known: true },
            Holder { pid: Some(4_400), open_descriptors: 1, memory_known: true },
            Holder { pid: Some(4_500), open_descriptors: 1, memory_known: true },
            Holder { pid: Some(4_600), open_descriptors: 1, memory_known: true },
            Holder { pid: Some(5_000), open_descriptors: 3, memory_known: false },
            Holder { pid: None, open_descriptors: 1, memory_known: false },
        ]),
        faults: Vec::new(),
        health_not_kept: false,
    }
}

fn remote_device() -> Device {
    let why = "reached through 251732099; the driver shows nothing of it";
    Device {
        id: String::from("251732099R"),
        identity: identity(1).into(),
        facts: no(Absence::Unknown, "a board type that is not in our table"),
        telemetry: Telemetry::absent(Absence::Unsupported, why),
        spaces: vec![space(
            MemorySpace::Dram,
            no(Absence::Unknown, "5000 holds it and records nothing"),
            no(Absence::Unknown, "this board is not known"),
        )],
        kinds: Vec::new(),
        holders: no(Absence::Unsupported, why),
        faults: Vec::new(),
        health_not_kept: false,
    }
}

fn space(space: MemorySpace, used_bytes: Reading<u64>, capacity_bytes: Reading<u64>) -> SpaceUsage {
    let capacity_source = capacity_bytes.value().map(|_| FactSource::BoardTable);
    SpaceUsage { space, used_bytes, capacity_bytes, capacity_source }
}

fn process(pid: Option<u32>, name: &str) -> Process {
    Process {
        identity: None,
        pid,
        namespace_pid: None,
        name: name.to_owned(),
        command: no(Absence::Ended, ""),
        uid: no(Absence::Ended, ""),
        user: no(Absence::Ended, ""),
        container: None,
        state: ProcessState::Alive,
        known_by: None,
        started_at: None,
        usage: None,
        uptime_seconds: no(Absence::Unknown, "it reports no start"),
        devices: Vec::new(),
        faults: RecordingFaults::default(),
        metrics: [].into(),
    }
}

pub(crate) fn usage(kind: MemoryKind, live_bytes: u64, live_buffers: u64) -> HeldKind {
    let usage = MemoryUsage {
        live_bytes,
        live_buffers,
        peak_bytes: live_bytes + MIB,
        allocations: 98_765,
        allocated_bytes: 40 * GIB,
        failed_allocations: 2,
    };
    HeldKind { kind, usage: HeldUsage::Recorded(usage) }
}

fn metric(name: &str, labels: &[(&str, &str)], count: u64) -> MetricSample {
    MetricSample {
        name: name.to_owned(),
        help: String::new(),
        unit: String::new(),
        labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        value: MetricValue::Counter(count),
    }
}

fn held(
    device: usize,
    open_descriptors: u32,
    accounting: Accounting,
    kinds: Vec<HeldKind>,
) -> HeldDevice {
    let sums = HeldDevice::default();
    let mut held = HeldDevice { device, open_descriptors, accounting, kinds, ..sums };
    held.add_up();
    held
}

/// One that records everything, in a container, with recording faults and a hostile name.
fn trainer() -> Process {
    let kinds = vec![usage(MemoryKind::Dram, 11 * GIB, 1_234), usage(MemoryKind::L1, 3 * MIB, 12)];
    Process {
        namespace_pid: Some(17),
        command: at(String::from(
            "/opt/venv/bin/python3 \u{1b}[31mtrain.py --model 訓練 --layers 24",
        )),
        uid: at(1_000),
        user: at(String::from("ada")),
        container: Some(Container {
            id: String::from("0123456789abcdef"),
            engine: String::from("docker"),
            pod_uid: None,
            pod: Some(Pod {
                namespace: String::from("research"),
                name: String::from("gpt-0"),
                container: Some(String::from("train")),
                allocated: vec![AllocatedDevices {
                    resource: String::from("example.com/chip"),
                    ids: vec![String::from("1"), String::from("\u{1b}[31m2")],
                }],
            }),
        }),
        known_by: Some(ProcessSource::Ledger),
        started_at: Some(Timestamp(0)),
        usage: Some(Box::new(used_of_host())),
        uptime_seconds: at(3_725.0),
        devices: vec![held(0, 1, Accounting::Recorded, kinds)],
        faults: RecordingFaults { double_frees: 3, ..RecordingFaults::default() },
        metrics: [
            metric("jobs_total", &[], 1_234),
            metric("telltale_process_programs_cached", &[], 57),
            metric("telltale_process_program_cache_hits_total", &[], 12_345),
            metric("telltale_process_program_cache_misses_total", &[], 57),
            metric("telltale_endpoint_errors_total", &[("reason", "deadline")], 2),
            metric("telltale_endpoint_errors_total", &[("reason", "internal")], 0),
            metric("idle_total", &[], 0),
            metric(&"a_long_name_".repeat(7), &[], 7),
        ]
        .into(),
        ..process(Some(4_242), "py\u{7}thon3")
    }
}

/// One that ended and left its ledger.
fn dead() -> Process {
    let kinds = vec![usage(MemoryKind::Dram, 256 * MIB, 1)];
    Process {
        started_at: None,
        usage: None,
        uptime_seconds: no(Absence::Ended, ""),
        state: ProcessState::Dead,
        known_by: Some(ProcessSource::Ledger),
        devices: vec![held(0, 0, Accounting::Recorded, kinds)],
        ..process(Some(4_300), "tt-run")
    }
}

/// One that only a foreign region reports.
fn foreign() -> Process {
    let bytes = HeldUsage::BytesOnly { live_bytes: 128 * MIB };
    let kinds = vec![HeldKind { kind: MemoryKind::Dram, usage: bytes }];
    Process {
        command: at(String::from("tt-run --once")),
        uid: at(1_002),
        known_by: Some(ProcessSource::Region),
        devices: vec![held(0, 1, Accounting::BytesOnly, kinds)],
        ..process(Some(4_400), "tt-run")
    }
}

/// One that uses the remote chip alone, through its gateway.
fn remote() -> Process {
    let kinds = vec![usage(MemoryKind::L1, 0, 0)];
    Process {
        command: at(String::from("replay generate")),
        uid: at(1_000),
        user: at(String::from("ada")),
        known_by: Some(ProcessSource::Ledger),
        devices: vec![
            held(0, 1, Accounting::OpenOnly, Vec::new()),
            held(1, 0, Accounting::Recorded, kinds),
        ],
        ..process(Some(4_500), "replay")
    }
}

/// One that has opened the device and recorded nothing yet.
fn starting() -> Process {
    Process {
        known_by: Some(ProcessSource::Ledger),
        devices: vec![held(0, 1, Accounting::OpenOnly, Vec::new())],
        ..process(Some(4_600), "starting")
    }
}

/// One that holds the device and records nothing.
fn silent() -> Process {
    Process {
        command: at(String::from("./legacy")),
        uid: at(1_001),
        user: no(Absence::Unknown, "not in /etc/passwd"),
        devices: vec![held(0, 3, Accounting::Unknown, Vec::new())],
        ..process(Some(5_000), "legacy")
    }
}

/// One that the driver lists without a pid.
fn unseen() -> Process {
    let absent = || no(Absence::Hidden, "");
    Process {
        command: absent(),
        user: absent(),
        uid: no(Absence::Hidden, ""),
        started_at: None,
        usage: None,
        uptime_seconds: no(Absence::Hidden, ""),
        state: ProcessState::Hidden,
        devices: vec![held(0, 1, Accounting::Unknown, Vec::new())],
        ..process(None, "")
    }
}

/// One of another PID namespace.
fn hidden() -> Process {
    let kinds = vec![usage(MemoryKind::Dram, 0, 0)];
    Process {
        command: no(Absence::Hidden, ""),
        user: no(Absence::Hidden, ""),
        started_at: None,
        usage: None,
        uptime_seconds: no(Absence::Hidden, ""),
        state: ProcessState::Hidden,
        known_by: Some(ProcessSource::Endpoint),
        devices: vec![held(1, 1, Accounting::Recorded, kinds)],
        ..process(None, "worker")
    }
}
