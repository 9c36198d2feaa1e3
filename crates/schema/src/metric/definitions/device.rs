// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{Convention, MetricDefinition, MetricKind, Scope, Unit};

/// Share of the last time in which the device was computing at all; of the host, in which its processors were not idle.
pub const DEVICE_BUSY_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_busy_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "Share of the last time in which the device was computing at all; of the host, in which its processors were not idle.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Frequency of the clock: ai for the compute cores, axi for the system bus, arc for the management processor, memory for the memory.
pub const DEVICE_CLOCK_HERTZ: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_clock_hertz",
    unit: Unit::Hertz,
    kind: MetricKind::Gauge,
    help: "Frequency of the clock: ai for the compute cores, axi for the system bus, arc for the management processor, memory for the memory.",
    labels: &["device", "clock"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Core current.
pub const DEVICE_CURRENT_AMPERES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_current_amperes",
    unit: Unit::Amperes,
    kind: MetricKind::Gauge,
    help: "Core current.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Core current at which the firmware starts to throttle the device.
pub const DEVICE_CURRENT_LIMIT_AMPERES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_current_limit_amperes",
    unit: Unit::Amperes,
    kind: MetricKind::Gauge,
    help: "Core current at which the firmware starts to throttle the device.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Speed that the board's fan is set to, as a share of full speed.
pub const DEVICE_FAN_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_fan_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "Speed that the board's fan is set to, as a share of full speed.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention { name: "hw.fan.speed_ratio", adds_up: false, attribute: None }),
};

/// Speed of the board's fan.
pub const DEVICE_FAN_SPEED_REVOLUTIONS_PER_MINUTE: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_fan_speed_revolutions_per_minute",
    unit: Unit::RevolutionsPerMinute,
    kind: MetricKind::Gauge,
    help: "Speed of the board's fan.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention { name: "hw.fan.speed", adds_up: false, attribute: None }),
};

/// How the device is: 1 for its present state, ok, unknown, warning or failed, and 0 for the others.
pub const DEVICE_HEALTH: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_health",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "How the device is: 1 for its present state, ok, unknown, warning or failed, and 0 for the others.",
    labels: &["device", "state"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Heartbeats of the management firmware; a device whose count stands still has stopped.
pub const DEVICE_HEARTBEATS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_heartbeats_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Heartbeats of the management firmware; a device whose count stands still has stopped.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Identity of the device; a label that is not known is empty.
pub const DEVICE_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "Identity of the device; a label that is not known is empty.",
    labels: &[
        "device",
        "architecture",
        "board_type",
        "serial",
        "asic_id",
        "pci_address",
        "firmware_version",
    ],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Buffers that processes have allocated on the device and not freed.
pub const DEVICE_MEMORY_BUFFERS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_buffers",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Buffers that processes have allocated on the device and not freed.",
    labels: &["device", "kind"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Share of the last time in which the device's memory was being read or written.
pub const DEVICE_MEMORY_BUSY_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_busy_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "Share of the last time in which the device's memory was being read or written.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Size of the device's memory, DRAM or L1 of all cores.
pub const DEVICE_MEMORY_CAPACITY_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_capacity_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Size of the device's memory, DRAM or L1 of all cores.",
    labels: &["device", "space"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention { name: "hw.gpu.memory.limit", adds_up: true, attribute: None }),
};

/// Bytes of the device's memory by what they are for, in its driver's words; they add up to what is in use.
pub const DEVICE_MEMORY_CATEGORY_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_category_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes of the device's memory by what they are for, in its driver's words; they add up to what is in use.",
    labels: &["device", "category"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Errors of the device's memory since its driver was loaded or it was reset: corrected ones that it mended by itself, and uncorrected ones.
pub const DEVICE_MEMORY_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors of the device's memory since its driver was loaded or it was reset: corrected ones that it mended by itself, and uncorrected ones.",
    labels: &["device", "severity"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes that rows of dead processes still hold in a foreign region.
pub const DEVICE_MEMORY_GHOST_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_ghost_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes that rows of dead processes still hold in a foreign region.",
    labels: &["device", "kind"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes allocated in the device's memory space, all kinds that live there added up.
pub const DEVICE_MEMORY_SPACE_USED_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_space_used_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes allocated in the device's memory space, all kinds that live there added up.",
    labels: &["device", "space"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention { name: "hw.gpu.memory.usage", adds_up: true, attribute: None }),
};

/// Bytes that a shared total holds and no process accounts for.
pub const DEVICE_MEMORY_UNATTRIBUTED_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_unattributed_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes that a shared total holds and no process accounts for.",
    labels: &["device", "kind"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes allocated on the device: processes, unattributed and ghost bytes added up.
pub const DEVICE_MEMORY_USED_BYTES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_used_bytes",
    unit: Unit::Bytes,
    kind: MetricKind::Gauge,
    help: "Bytes allocated on the device: processes, unattributed and ghost bytes added up.",
    labels: &["device", "kind"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Number of the NUMA node that the device is near.
pub const DEVICE_NUMA_NODE: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_numa_node",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Number of the NUMA node that the device is near.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Errors of the device's PCIe function since the kernel found it: correctable ones that the link mended, nonfatal ones that cost a transaction, fatal ones that made the link unreliable.
pub const DEVICE_PCIE_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors of the device's PCIe function since the kernel found it: correctable ones that the link mended, nonfatal ones that cost a transaction, fatal ones that made the link unreliable.",
    labels: &["device", "severity"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Generation of PCIe that the device's link runs at: 1 is 2.5 GT/s a lane, 2 is 5, 3 is 8, 4 is 16, 5 is 32, 6 is 64.
pub const DEVICE_PCIE_LINK_GENERATION: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_generation",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Generation of PCIe that the device's link runs at: 1 is 2.5 GT/s a lane, 2 is 5, 3 is 8, 4 is 16, 5 is 32, 6 is 64.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Fastest generation of PCIe that both the device and its slot can do.
pub const DEVICE_PCIE_LINK_GENERATION_MAX: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_generation_max",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Fastest generation of PCIe that both the device and its slot can do.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Lanes that the device's PCIe link has.
pub const DEVICE_PCIE_LINK_LANES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_lanes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Lanes that the device's PCIe link has.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Most lanes that both the device and its slot can do.
pub const DEVICE_PCIE_LINK_LANES_MAX: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_link_lanes_max",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Most lanes that both the device and its slot can do.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Bytes a second that the device received over PCIe.
pub const DEVICE_PCIE_RECEIVED_BYTES_PER_SECOND: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_received_bytes_per_second",
    unit: Unit::BytesPerSecond,
    kind: MetricKind::Gauge,
    help: "Bytes a second that the device received over PCIe.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: Some("telltale_device_pcie_received_bytes_total"),
    otlp: None,
};

/// Bytes the device received over PCIe through one of its networks on chip.
pub const DEVICE_PCIE_RECEIVED_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_received_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes the device received over PCIe through one of its networks on chip.",
    labels: &["device", "noc"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.gpu.io",
        adds_up: false,
        attribute: Some(("network.io.direction", "receive")),
    }),
};

/// Bytes a second that the device sent over PCIe.
pub const DEVICE_PCIE_SENT_BYTES_PER_SECOND: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_sent_bytes_per_second",
    unit: Unit::BytesPerSecond,
    kind: MetricKind::Gauge,
    help: "Bytes a second that the device sent over PCIe.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: Some("telltale_device_pcie_sent_bytes_total"),
    otlp: None,
};

/// Bytes the device sent over PCIe through one of its networks on chip.
pub const DEVICE_PCIE_SENT_BYTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_pcie_sent_bytes_total",
    unit: Unit::Bytes,
    kind: MetricKind::Counter,
    help: "Bytes the device sent over PCIe through one of its networks on chip.",
    labels: &["device", "noc"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.gpu.io",
        adds_up: false,
        attribute: Some(("network.io.direction", "transmit")),
    }),
};

/// Core power at which the firmware starts to throttle the device.
pub const DEVICE_POWER_LIMIT_WATTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_power_limit_watts",
    unit: Unit::Watts,
    kind: MetricKind::Gauge,
    help: "Core power at which the firmware starts to throttle the device.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Power that the chip's core draws; the rest of the board is not in it.
pub const DEVICE_POWER_WATTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_power_watts",
    unit: Unit::Watts,
    kind: MetricKind::Gauge,
    help: "Power that the chip's core draws; the rest of the board is not in it.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.power",
        adds_up: false,
        attribute: Some(("hw.type", "gpu")),
    }),
};

/// Processes that hold the device open or have memory on it.
pub const DEVICE_PROCESSES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_processes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Processes that hold the device open or have memory on it.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// What a device is that is no Tenstorrent chip; a label that is not known is empty.
pub const DEVICE_PRODUCT_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_product_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "What a device is that is no Tenstorrent chip; a label that is not known is empty.",
    labels: &["device", "vendor", "class", "model", "driver", "uuid", "parent"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Temperature at the sensor.
pub const DEVICE_TEMPERATURE_CELSIUS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_temperature_celsius",
    unit: Unit::Celsius,
    kind: MetricKind::Gauge,
    help: "Temperature at the sensor.",
    labels: &["device", "sensor"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention { name: "hw.temperature", adds_up: false, attribute: None }),
};

/// Temperature at which the firmware starts to throttle the device.
pub const DEVICE_TEMPERATURE_LIMIT_CELSIUS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_temperature_limit_celsius",
    unit: Unit::Celsius,
    kind: MetricKind::Gauge,
    help: "Temperature at which the firmware starts to throttle the device.",
    labels: &["device", "sensor"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.temperature.limit",
        adds_up: false,
        attribute: Some(("hw.limit_type", "throttled")),
    }),
};

/// Times the device switched itself off because of heat, since it was powered on.
pub const DEVICE_THERMAL_TRIPS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_thermal_trips_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Times the device switched itself off because of heat, since it was powered on.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while the reason holds the device's clocks down.
pub const DEVICE_THROTTLED: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_throttled",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while the reason holds the device's clocks down.",
    labels: &["device", "reason"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Processes that hold the device open and report no memory.
pub const DEVICE_UNTRACKED_PROCESSES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_untracked_processes",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Processes that hold the device open and report no memory.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 when the last collection read telemetry from the device, 0 when it did not.
pub const DEVICE_UP: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_up",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 when the last collection read telemetry from the device, 0 when it did not.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Highest core voltage that the firmware sets.
pub const DEVICE_VOLTAGE_LIMIT_VOLTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_voltage_limit_volts",
    unit: Unit::Volts,
    kind: MetricKind::Gauge,
    help: "Highest core voltage that the firmware sets.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention {
        name: "hw.voltage.limit",
        adds_up: false,
        attribute: Some(("hw.limit_type", "max")),
    }),
};

/// Core voltage.
pub const DEVICE_VOLTAGE_VOLTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_voltage_volts",
    unit: Unit::Volts,
    kind: MetricKind::Gauge,
    help: "Core voltage.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: Some(Convention { name: "hw.voltage", adds_up: false, attribute: None }),
};
