//! A machine that has everything, for tests of what is reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use telltale_schema::chip::{AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, FactSource};
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::metric::{DEFINITIONS, MetricKind, Scope};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::{SENSORS, Sensor, SensorValue};
use telltale_schema::snapshot::{
    Accounting, Container, Device, HeldDevice, HeldKind, HeldUsage, Holder, KindMemory, Load,
    MemoryCounts, MetricSample, MetricValue, PcieLink, PcieTraffic, Pod, Process, ProcessSource,
    ProcessState, RecordingFaults, Snapshot, SourceError, SourceStatus, SpaceUsage, Telemetry,
    TrafficDirection,
};

use crate::alerts::{Alert, AlertState, AlertStates, NotificationMetrics, Rule, Severity, Subject};
use crate::samples::HttpMetrics;
use crate::service::{
    HistoryMetrics, LegacyMetrics, Published, QueueDrops, ServiceMetrics, SourceMetrics,
};

/// When everything happens.
pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn now<T>(value: T) -> Reading<T> {
    Reading::new(value, NOW)
}

/// A device with this number, all of whose sensors answer.
pub(crate) fn device(number: u64) -> Device {
    let identity = ChipIdentity {
        asic_id: Some(AsicId(0x1000 + number)),
        board_id: Some(BoardId(0x0100_0146_1190_302b)),
        pci: Some("0000:03:00.0".parse().unwrap()),
        board_type: BoardType::N300,
        ..ChipIdentity::default()
    };
    let traffic = |noc, direction| PcieTraffic {
        counter: "mst_rd_data_word_sent".to_owned(),
        noc,
        direction,
        bytes_total: now(64 * u64::from(noc) + 32),
        raw_flits: now(1),
    };
    let telemetry = Telemetry {
        temperature_celsius: now(48.5),
        temperature_limit_celsius: now(75.0),
        power_watts: now(30.25),
        power_limit_watts: now(85.0),
        current_amperes: now(21.0),
        current_limit_amperes: now(160.0),
        voltage_volts: now(0.72),
        voltage_limit_volts: now(0.95),
        aiclk_hertz: now(1_000_000_000),
        axiclk_hertz: now(900_000_000),
        arcclk_hertz: now(540_000_000),
        fan_revolutions_per_minute: now(1200),
        fan_ratio: now(0.4),
        heartbeat_total: now(77),
        thermal_trips_total: now(0),
        firmware: BTreeMap::from([("tt_fw_bundle_ver".to_owned(), "18.7.0.0".to_owned())]),
        pcie: vec![
            traffic(0, TrafficDirection::HostToDevice),
            traffic(1, TrafficDirection::HostToDevice),
            traffic(0, TrafficDirection::DeviceToHost),
        ],
        link: Some(Box::new(link())),
        ..Telemetry::absent(Absence::Unsupported, "")
    };
    let kind = KindMemory {
        kind: MemoryKind::Dram,
        total_bytes: 1000,
        processes_bytes: 900,
        unattributed_bytes: 60,
        ghost_bytes: 40,
        live_buffers: Some(9),
    };
    let space = SpaceUsage {
        space: MemorySpace::Dram,
        used_bytes: now(1000),
        capacity_bytes: now(12 << 30),
        capacity_source: Some(FactSource::BoardTable),
    };
    Device {
        id: identity.display_id(),
        facts: now(ChipFacts::of_board(BoardType::N300).unwrap()),
        identity: identity.into(),
        telemetry,
        spaces: vec![space],
        kinds: vec![kind],
        holders: now(vec![Holder { pid: Some(7), open_descriptors: 1, memory_known: false }]),
        faults: vec![Fault::new(FaultKind::ThermalTrip, Timestamp(1), "hot".to_owned())],
        health_not_kept: false,
    }
}

fn link() -> PcieLink {
    PcieLink {
        pcie_generation: now(4),
        pcie_generation_max: now(4),
        pcie_width: now(8),
        pcie_width_max: now(16),
        pcie_received_bytes_per_second: now(9),
        pcie_sent_bytes_per_second: now(8),
        numa_node: now(1),
        pcie_correctable_errors_total: now(3),
        pcie_nonfatal_errors_total: now(2),
        pcie_fatal_errors_total: now(1),
    }
}

/// A device of another vendor, which tells how busy it is.
fn gpu() -> Device {
    let identity = OtherIdentity {
        model: Some("Radeon".into()),
        ..OtherIdentity::new("0000:41:00.0", "amd", DeviceClass::Gpu)
    };
    let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
    telemetry.load = Some(Box::new(Load {
        busy_ratio: now(0.25),
        memory_busy_ratio: now(0.5),
        memory_clock_hertz: now(2_000_000_000),
        throttled_by: now(vec!["power".into()]),
        ..Load::absent(Absence::Unsupported, "")
    }));
    telemetry.memory_counts = Some(Box::new(MemoryCounts {
        category_bytes: BTreeMap::from([("tensors".into(), 700), ("model_code".into(), 300)]),
        corrected_errors_total: now(5),
        corrected_errors_lifetime_total: now(6),
        sram_uncorrected_errors_total: now(1),
        sram_uncorrected_lifetime_total: now(2),
        ..MemoryCounts::absent(Absence::Unsupported, "")
    }));
    let is_counted = |sensor: &&Sensor| {
        let part = sensor.part.filter(|part| !matches!(*part, "link" | "memory_counts"));
        part.is_some() && sensor.value(&telemetry).is_none()
    };
    let counted: Vec<&Sensor> = SENSORS.iter().filter(is_counted).collect();
    for sensor in counted {
        let value = if sensor.is_whole() { SensorValue::Whole(1) } else { SensorValue::Float(1.0) };
        sensor.put(&mut telemetry, now(value));
    }
    let identity = DeviceIdentity::from(identity);
    Device { id: identity.display_id(), identity, telemetry, ..device(9) }
}

/// A process with this pid, name and user, and so many bytes on the first device.
pub(crate) fn process(pid: u32, name: &str, user: &str, live_bytes: u64) -> Process {
    let usage = MemoryUsage {
        live_bytes,
        live_buffers: 1,
        peak_bytes: live_bytes + 1,
        allocations: 10,
        allocated_bytes: live_bytes + 100,
        failed_allocations: 2,
    };
    let kind = HeldKind { kind: MemoryKind::Dram, usage: HeldUsage::Recorded(usage) };
    let mut held =
        HeldDevice { accounting: Accounting::Recorded, kinds: vec![kind], ..HeldDevice::default() };
    held.add_up();
    let boot_id = [7; 16];
    let start_time_ticks = u64::from(pid) * 10;
    let identity = ProcessIdentity { boot_id, pid_namespace: 1, pid, start_time_ticks };
    Process {
        identity: Some(identity),
        pid: Some(pid),
        namespace_pid: None,
        name: name.to_owned(),
        command: now(format!("{name} --secret {pid}")),
        uid: now(1000),
        user: now(user.to_owned()),
        container: None,
        state: ProcessState::Alive,
        known_by: Some(ProcessSource::Ledger),
        started_at: None,
        usage: None,
        uptime_seconds: now(f64::from(pid)),
        devices: vec![held],
        faults: RecordingFaults { double_frees: 1, ..RecordingFaults::default() },
        metrics: [].into(),
    }
}

/// A metric that a process registers.
pub(crate) fn metric(name: &str, labels: &[(&str, &str)], value: MetricValue) -> MetricSample {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    MetricSample {
        name: name.to_owned(),
        help: "What the application says.".to_owned(),
        unit: String::new(),
        labels: labels.iter().map(owned).collect(),
        value,
    }
}

/// Everything that a runtime can tell, about this device.
pub(crate) fn reported(device: &str) -> Vec<MetricSample> {
    let reported = DEFINITIONS.iter().filter(|definition| definition.scope == Scope::Process);
    reported
        .map(|definition| {
            let own = definition.scope.labels().len();
            let labels: Vec<(&str, &str)> = definition.labels[own..]
                .iter()
                .map(|label| (*label, if *label == "device" { device } else { "some_word" }))
                .collect();
            let value = match definition.kind {
                MetricKind::Counter => MetricValue::Counter(5),
                _ => MetricValue::Gauge(1.5),
            };
            metric(definition.name, &labels, value)
        })
        .collect()
}

/// A machine of these.
pub(crate) fn snapshot(devices: Vec<Device>, processes: Vec<Process>) -> Arc<Snapshot> {
    let error = SourceError {
        subject: "metrics_7.sock".to_owned(),
        reason: Absence::TimedOut,
        detail: String::new(),
    };
    let source = |name: &str, errors| SourceStatus {
        name: name.to_owned(),
        duration_ns: 1_500_000,
        errors,
        errors_dropped: 0,
        notes: Vec::new(),
    };
    Arc::new(Snapshot {
        collected_in_ns: 2_000_000,
        devices,
        processes,
        closed_processes: 3,
        sources: vec![source("tenstorrent", Vec::new()), source("endpoints", vec![error])],
        ..Snapshot::empty(NOW)
    })
}

/// One device, one process that tells everything, one in a container.
pub(crate) fn everything() -> Arc<Snapshot> {
    let device = device(1);
    let mut telling = process(7, "train", "ada", 500);
    telling.devices[0].busy_ratio = Some(0.5);
    let mut samples = reported(&device.id);
    samples.extend([
        metric("steps", &[("phase", "warm \"up\"\n")], MetricValue::Counter(3)),
        metric("loss", &[], MetricValue::Gauge(0.5)),
        metric(
            "latency_seconds",
            &[],
            MetricValue::Histogram { bounds: vec![0.5], counts: vec![1, 2], sum: 3.0 },
        ),
    ]);
    telling.metrics = samples.into();
    let mut contained = process(8, "serve", "bob", 400);
    contained.container = Some(Container {
        id: "c".repeat(64),
        engine: "docker".to_owned(),
        pod_uid: Some("0b5e-1".to_owned()),
        pod: Some(Pod {
            namespace: "research".to_owned(),
            name: "gpt-0".to_owned(),
            ..Pod::default()
        }),
    });
    snapshot(vec![device, gpu()], vec![telling, contained])
}

/// The service's own metrics.
pub(crate) fn own_metrics() -> ServiceMetrics {
    let source = |name: &str, errors| SourceMetrics {
        name: name.to_owned(),
        errors,
        notes: 0,
        seconds: 0.5,
    };
    ServiceMetrics {
        started_at: Timestamp(NOW.0 - 60_000_000_000),
        cpu_seconds: 0.25,
        resident_bytes: now(9 << 20),
        collections: 60,
        collection_seconds: 0.1,
        reloads: 0,
        refused_reloads: 0,
        truncated_directories: 0,
        drops: vec![QueueDrops { queue: "stream", total: 4 }],
        sources: vec![source("tenstorrent", 0), source("endpoints", 12)],
        legacy: Some(LegacyMetrics {
            connections: 2,
            messages: vec![("alloc", 30), ("free", 20)],
            refused: vec![("too_large", 1)],
        }),
        history: Some(HistoryMetrics { bytes: 4096, failures: 3, ..HistoryMetrics::default() }),
    }
}

/// Rules of which one fires, and notifications.
fn alerts() -> Arc<AlertStates> {
    let alert = Alert {
        rule: "device_hot".to_owned(),
        severity: Severity::Warning,
        subject: Subject::Device { device: "a".to_owned() },
        uid: None,
        state: AlertState::Firing,
        since: NOW,
        fired_at: Some(NOW),
        value: 0.97,
        text: String::new(),
    };
    Arc::new(AlertStates {
        rules: Rule::defaults().into(),
        alerts: vec![alert],
        dropped: 3,
        notifications: NotificationMetrics { sent: 5, failed: 2, dropped: 1 },
    })
}

/// A publication of it.
pub(crate) fn published(sequence: u64, snapshot: Arc<Snapshot>) -> Published {
    let (service, made_at) = (own_metrics(), Instant::now());
    Published { sequence, snapshot, service, alerts: alerts(), made_at, fresh: 0 }
}

/// An HTTP server's metrics.
pub(crate) fn http() -> HttpMetrics {
    HttpMetrics {
        scrapes: 4,
        text_seconds: Some(0.001),
        requests: vec![(200, 5)],
        connections: 1,
        refused: vec![("too_many", 0)],
        ..HttpMetrics::default()
    }
}
