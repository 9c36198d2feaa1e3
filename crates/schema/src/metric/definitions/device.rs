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

/// Share of the last time in which the device's video decoders were busy.
pub const DEVICE_DECODER_BUSY_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_decoder_busy_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "Share of the last time in which the device's video decoders were busy.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Share of the last time in which the device's video encoders were busy.
pub const DEVICE_ENCODER_BUSY_RATIO: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_encoder_busy_ratio",
    unit: Unit::Ratio,
    kind: MetricKind::Gauge,
    help: "Share of the last time in which the device's video encoders were busy.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Energy that the device used since its driver was loaded.
pub const DEVICE_ENERGY_JOULES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_energy_joules_total",
    unit: Unit::Joules,
    kind: MetricKind::Counter,
    help: "Energy that the device used since its driver was loaded.",
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
    otlp: Some(Convention {
        name: "hw.status",
        adds_up: true,
        attribute: Some(("hw.type", "gpu")),
    }),
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

/// NVIDIA's performance state: 0 is the fastest, 15 the slowest.
pub const DEVICE_PERFORMANCE_STATE: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_performance_state",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "NVIDIA's performance state: 0 is the fastest, 15 the slowest.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Limit of its power that the device starts with.
pub const DEVICE_POWER_LIMIT_DEFAULT_WATTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_power_limit_default_watts",
    unit: Unit::Watts,
    kind: MetricKind::Gauge,
    help: "Limit of its power that the device starts with.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Highest limit that its power can be set to.
pub const DEVICE_POWER_LIMIT_MAX_WATTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_power_limit_max_watts",
    unit: Unit::Watts,
    kind: MetricKind::Gauge,
    help: "Highest limit that its power can be set to.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Lowest limit that its power can be set to.
pub const DEVICE_POWER_LIMIT_MIN_WATTS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_power_limit_min_watts",
    unit: Unit::Watts,
    kind: MetricKind::Gauge,
    help: "Lowest limit that its power can be set to.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
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
