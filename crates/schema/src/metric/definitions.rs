// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use super::{MetricDefinition, MetricKind, Scope, Unit};

/// Every metric Telltale can expose, sorted by name.
pub static DEFINITIONS: &[MetricDefinition] = &[
    MetricDefinition {
        name: "telltale_build_info",
        unit: Unit::None,
        kind: MetricKind::Info,
        help: "Version of the service.",
        labels: &["version"],
        scope: Scope::Service,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_collection_duration_seconds",
        unit: Unit::Seconds,
        kind: MetricKind::Gauge,
        help: "How long the last collection took, all sources together.",
        labels: &[],
        scope: Scope::Service,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_clock_hertz",
        unit: Unit::Hertz,
        kind: MetricKind::Gauge,
        help: "Frequency of the clock: ai for the compute cores, axi for the system bus, arc for the management processor.",
        labels: &["device", "clock"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_current_amperes",
        unit: Unit::Amperes,
        kind: MetricKind::Gauge,
        help: "Core current.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_current_limit_amperes",
        unit: Unit::Amperes,
        kind: MetricKind::Gauge,
        help: "Core current at which the firmware starts to throttle the device.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_fan_speed_revolutions_per_minute",
        unit: Unit::RevolutionsPerMinute,
        kind: MetricKind::Gauge,
        help: "Speed of the board's fan.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_heartbeats_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Heartbeats of the management firmware; a device whose count stands still has stopped.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
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
            "driver_version",
            "firmware_version",
        ],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_memory_buffers",
        unit: Unit::Count,
        kind: MetricKind::Gauge,
        help: "Buffers allocated on the device by processes that report them.",
        labels: &["device", "kind"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_memory_capacity_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Size of the device's memory, DRAM or L1 of all cores.",
        labels: &["device", "space"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_memory_ghost_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes that rows of dead processes still hold in a foreign region.",
        labels: &["device", "kind"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_memory_peak_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Most bytes seen in use on the device since collection began.",
        labels: &["device", "kind"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_memory_unattributed_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes that a shared total holds and no process accounts for.",
        labels: &["device", "kind"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_memory_used_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes allocated on the device: processes, unattributed and ghost bytes added up.",
        labels: &["device", "kind"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_pcie_received_bytes_total",
        unit: Unit::Bytes,
        kind: MetricKind::Counter,
        help: "Bytes the device received over PCIe through one of its networks on chip.",
        labels: &["device", "noc"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_pcie_sent_bytes_total",
        unit: Unit::Bytes,
        kind: MetricKind::Counter,
        help: "Bytes the device sent over PCIe through one of its networks on chip.",
        labels: &["device", "noc"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_power_limit_watts",
        unit: Unit::Watts,
        kind: MetricKind::Gauge,
        help: "Core power at which the firmware starts to throttle the device.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_power_watts",
        unit: Unit::Watts,
        kind: MetricKind::Gauge,
        help: "Power that the chip's core draws; the rest of the board is not in it.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_processes",
        unit: Unit::Count,
        kind: MetricKind::Gauge,
        help: "Processes that hold the device open or have memory on it.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_temperature_celsius",
        unit: Unit::Celsius,
        kind: MetricKind::Gauge,
        help: "Temperature at the sensor.",
        labels: &["device", "sensor"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_temperature_limit_celsius",
        unit: Unit::Celsius,
        kind: MetricKind::Gauge,
        help: "Temperature at which the firmware starts to throttle the device.",
        labels: &["device", "sensor"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_thermal_trips_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Times the device switched itself off because of heat, since it was powered on.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_untracked_processes",
        unit: Unit::Count,
        kind: MetricKind::Gauge,
        help: "Processes that hold the device open and report no memory.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_up",
        unit: Unit::None,
        kind: MetricKind::Gauge,
        help: "1 when the last collection read telemetry from the device, 0 when it did not.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_voltage_limit_volts",
        unit: Unit::Volts,
        kind: MetricKind::Gauge,
        help: "Highest core voltage that the firmware sets.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_device_voltage_volts",
        unit: Unit::Volts,
        kind: MetricKind::Gauge,
        help: "Core voltage.",
        labels: &["device"],
        scope: Scope::Device,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_endpoint_errors_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Connections and queries that the process's endpoint gave up or refused, by reason.",
        labels: &["pid", "reason"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_endpoint_queries_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Queries that the process's endpoint answered.",
        labels: &["pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_problems_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "What the process's recording runtime could not do, by step.",
        labels: &["pid", "step"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_double_frees_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Frees of an address that had been freed already.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_info",
        unit: Unit::None,
        kind: MetricKind::Info,
        help: "Identity of the process; a label that is not known is empty.",
        labels: &["pid", "command", "user", "container_id", "pod_uid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_kernel_cache_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes of compiled kernels that the process keeps.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_l1_ring_buffer_capacity_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Size of the L1 ring buffer that kernels are loaded through.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_l1_ring_buffer_used_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes in use of the L1 ring buffer that kernels are loaded through.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_allocated_bytes_total",
        unit: Unit::Bytes,
        kind: MetricKind::Counter,
        help: "Bytes of all allocations the process has made on the device, freed ones included.",
        labels: &["device", "pid", "kind"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_allocations_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Allocations the process has made on the device.",
        labels: &["device", "pid", "kind"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_buffers",
        unit: Unit::Count,
        kind: MetricKind::Gauge,
        help: "Buffers the process has allocated on the device and not freed.",
        labels: &["device", "pid", "kind"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_failed_allocations_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Allocations that the process's allocator refused.",
        labels: &["device", "pid", "kind"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_live_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes the process has allocated on the device and not freed.",
        labels: &["device", "pid", "kind"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_peak_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Most live bytes the process has had on the device.",
        labels: &["device", "pid", "kind"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_memory_quota_bytes",
        unit: Unit::Bytes,
        kind: MetricKind::Gauge,
        help: "Bytes the process may have on the device.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_operations_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Operations the process has dispatched to the device.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_program_cache_evictions_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Programs that were dropped from the cache to make room.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_program_cache_hits_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Dispatches that found their program in the cache.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_program_cache_misses_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Dispatches that had to compile their program.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_programs_cached",
        unit: Unit::Count,
        kind: MetricKind::Gauge,
        help: "Programs in the process's program cache.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_programs_loaded",
        unit: Unit::Count,
        kind: MetricKind::Gauge,
        help: "Programs whose kernels are on the device at present.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_start_time_seconds",
        unit: Unit::Seconds,
        kind: MetricKind::Gauge,
        help: "When the process started, in seconds since 1970.",
        labels: &["pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_throttled",
        unit: Unit::None,
        kind: MetricKind::Gauge,
        help: "1 while the runtime holds the process back, 0 while it does not.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_transferred_bytes_total",
        unit: Unit::Bytes,
        kind: MetricKind::Counter,
        help: "Bytes the process has moved to and from the device, as its runtime counts them.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_unknown_frees_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Frees of an address that the runtime never recorded.",
        labels: &["device", "pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_process_uptime_seconds",
        unit: Unit::Seconds,
        kind: MetricKind::Gauge,
        help: "How long the process's runtime has been recording.",
        labels: &["pid"],
        scope: Scope::Process,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_source_duration_seconds",
        unit: Unit::Seconds,
        kind: MetricKind::Gauge,
        help: "How long the last read of the source took.",
        labels: &["source"],
        scope: Scope::Source,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_source_errors_total",
        unit: Unit::Count,
        kind: MetricKind::Counter,
        help: "Reads of the source that failed.",
        labels: &["source"],
        scope: Scope::Source,
        since: "0.1.0",
    },
    MetricDefinition {
        name: "telltale_source_up",
        unit: Unit::None,
        kind: MetricKind::Gauge,
        help: "1 when the last read of the source succeeded, 0 when it did not.",
        labels: &["source"],
        scope: Scope::Source,
        since: "0.1.0",
    },
];

/// Version of the service.
pub const BUILD_INFO: &MetricDefinition = &DEFINITIONS[0];

/// How long the last collection took, all sources together.
pub const COLLECTION_DURATION_SECONDS: &MetricDefinition = &DEFINITIONS[1];

/// Frequency of the clock: ai for the compute cores, axi for the system bus, arc for the management processor.
pub const DEVICE_CLOCK_HERTZ: &MetricDefinition = &DEFINITIONS[2];

/// Core current.
pub const DEVICE_CURRENT_AMPERES: &MetricDefinition = &DEFINITIONS[3];

/// Core current at which the firmware starts to throttle the device.
pub const DEVICE_CURRENT_LIMIT_AMPERES: &MetricDefinition = &DEFINITIONS[4];

/// Speed of the board's fan.
pub const DEVICE_FAN_SPEED_REVOLUTIONS_PER_MINUTE: &MetricDefinition = &DEFINITIONS[5];

/// Heartbeats of the management firmware; a device whose count stands still has stopped.
pub const DEVICE_HEARTBEATS_TOTAL: &MetricDefinition = &DEFINITIONS[6];

/// Identity of the device; a label that is not known is empty.
pub const DEVICE_INFO: &MetricDefinition = &DEFINITIONS[7];

/// Buffers allocated on the device by processes that report them.
pub const DEVICE_MEMORY_BUFFERS: &MetricDefinition = &DEFINITIONS[8];

/// Size of the device's memory, DRAM or L1 of all cores.
pub const DEVICE_MEMORY_CAPACITY_BYTES: &MetricDefinition = &DEFINITIONS[9];

/// Bytes that rows of dead processes still hold in a foreign region.
pub const DEVICE_MEMORY_GHOST_BYTES: &MetricDefinition = &DEFINITIONS[10];

/// Most bytes seen in use on the device since collection began.
pub const DEVICE_MEMORY_PEAK_BYTES: &MetricDefinition = &DEFINITIONS[11];

/// Bytes that a shared total holds and no process accounts for.
pub const DEVICE_MEMORY_UNATTRIBUTED_BYTES: &MetricDefinition = &DEFINITIONS[12];

/// Bytes allocated on the device: processes, unattributed and ghost bytes added up.
pub const DEVICE_MEMORY_USED_BYTES: &MetricDefinition = &DEFINITIONS[13];

/// Bytes the device received over PCIe through one of its networks on chip.
pub const DEVICE_PCIE_RECEIVED_BYTES_TOTAL: &MetricDefinition = &DEFINITIONS[14];

/// Bytes the device sent over PCIe through one of its networks on chip.
pub const DEVICE_PCIE_SENT_BYTES_TOTAL: &MetricDefinition = &DEFINITIONS[15];

/// Core power at which the firmware starts to throttle the device.
pub const DEVICE_POWER_LIMIT_WATTS: &MetricDefinition = &DEFINITIONS[16];

/// Power that the chip's core draws; the rest of the board is not in it.
pub const DEVICE_POWER_WATTS: &MetricDefinition = &DEFINITIONS[17];

/// Processes that hold the device open or have memory on it.
pub const DEVICE_PROCESSES: &MetricDefinition = &DEFINITIONS[18];

/// Temperature at the sensor.
pub const DEVICE_TEMPERATURE_CELSIUS: &MetricDefinition = &DEFINITIONS[19];

/// Temperature at which the firmware starts to throttle the device.
pub const DEVICE_TEMPERATURE_LIMIT_CELSIUS: &MetricDefinition = &DEFINITIONS[20];

/// Times the device switched itself off because of heat, since it was powered on.
pub const DEVICE_THERMAL_TRIPS_TOTAL: &MetricDefinition = &DEFINITIONS[21];

/// Processes that hold the device open and report no memory.
pub const DEVICE_UNTRACKED_PROCESSES: &MetricDefinition = &DEFINITIONS[22];

/// 1 when the last collection read telemetry from the device, 0 when it did not.
pub const DEVICE_UP: &MetricDefinition = &DEFINITIONS[23];

/// Highest core voltage that the firmware sets.
pub const DEVICE_VOLTAGE_LIMIT_VOLTS: &MetricDefinition = &DEFINITIONS[24];

/// Core voltage.
pub const DEVICE_VOLTAGE_VOLTS: &MetricDefinition = &DEFINITIONS[25];

/// Connections and queries that the process's endpoint gave up or refused, by reason.
pub const ENDPOINT_ERRORS_TOTAL: &MetricDefinition = &DEFINITIONS[26];

/// Queries that the process's endpoint answered.
pub const ENDPOINT_QUERIES_TOTAL: &MetricDefinition = &DEFINITIONS[27];

/// What the process's recording runtime could not do, by step.
pub const PROBLEMS_TOTAL: &MetricDefinition = &DEFINITIONS[28];

/// Frees of an address that had been freed already.
pub const PROCESS_DOUBLE_FREES_TOTAL: &MetricDefinition = &DEFINITIONS[29];

/// Identity of the process; a label that is not known is empty.
pub const PROCESS_INFO: &MetricDefinition = &DEFINITIONS[30];

/// Bytes of compiled kernels that the process keeps.
pub const PROCESS_KERNEL_CACHE_BYTES: &MetricDefinition = &DEFINITIONS[31];

/// Size of the L1 ring buffer that kernels are loaded through.
pub const PROCESS_L1_RING_BUFFER_CAPACITY_BYTES: &MetricDefinition = &DEFINITIONS[32];

/// Bytes in use of the L1 ring buffer that kernels are loaded through.
pub const PROCESS_L1_RING_BUFFER_USED_BYTES: &MetricDefinition = &DEFINITIONS[33];

/// Bytes of all allocations the process has made on the device, freed ones included.
pub const PROCESS_MEMORY_ALLOCATED_BYTES_TOTAL: &MetricDefinition = &DEFINITIONS[34];

/// Allocations the process has made on the device.
pub const PROCESS_MEMORY_ALLOCATIONS_TOTAL: &MetricDefinition = &DEFINITIONS[35];

/// Buffers the process has allocated on the device and not freed.
pub const PROCESS_MEMORY_BUFFERS: &MetricDefinition = &DEFINITIONS[36];

/// Allocations that the process's allocator refused.
pub const PROCESS_MEMORY_FAILED_ALLOCATIONS_TOTAL: &MetricDefinition = &DEFINITIONS[37];

/// Bytes the process has allocated on the device and not freed.
pub const PROCESS_MEMORY_LIVE_BYTES: &MetricDefinition = &DEFINITIONS[38];

/// Most live bytes the process has had on the device.
pub const PROCESS_MEMORY_PEAK_BYTES: &MetricDefinition = &DEFINITIONS[39];

/// Bytes the process may have on the device.
pub const PROCESS_MEMORY_QUOTA_BYTES: &MetricDefinition = &DEFINITIONS[40];

/// Operations the process has dispatched to the device.
pub const PROCESS_OPERATIONS_TOTAL: &MetricDefinition = &DEFINITIONS[41];

/// Programs that were dropped from the cache to make room.
pub const PROCESS_PROGRAM_CACHE_EVICTIONS_TOTAL: &MetricDefinition = &DEFINITIONS[42];

/// Dispatches that found their program in the cache.
pub const PROCESS_PROGRAM_CACHE_HITS_TOTAL: &MetricDefinition = &DEFINITIONS[43];

/// Dispatches that had to compile their program.
pub const PROCESS_PROGRAM_CACHE_MISSES_TOTAL: &MetricDefinition = &DEFINITIONS[44];

/// Programs in the process's program cache.
pub const PROCESS_PROGRAMS_CACHED: &MetricDefinition = &DEFINITIONS[45];

/// Programs whose kernels are on the device at present.
pub const PROCESS_PROGRAMS_LOADED: &MetricDefinition = &DEFINITIONS[46];

/// When the process started, in seconds since 1970.
pub const PROCESS_START_TIME_SECONDS: &MetricDefinition = &DEFINITIONS[47];

/// 1 while the runtime holds the process back, 0 while it does not.
pub const PROCESS_THROTTLED: &MetricDefinition = &DEFINITIONS[48];

/// Bytes the process has moved to and from the device, as its runtime counts them.
pub const PROCESS_TRANSFERRED_BYTES_TOTAL: &MetricDefinition = &DEFINITIONS[49];

/// Frees of an address that the runtime never recorded.
pub const PROCESS_UNKNOWN_FREES_TOTAL: &MetricDefinition = &DEFINITIONS[50];

/// How long the process's runtime has been recording.
pub const PROCESS_UPTIME_SECONDS: &MetricDefinition = &DEFINITIONS[51];

/// How long the last read of the source took.
pub const SOURCE_DURATION_SECONDS: &MetricDefinition = &DEFINITIONS[52];

/// Reads of the source that failed.
pub const SOURCE_ERRORS_TOTAL: &MetricDefinition = &DEFINITIONS[53];

/// 1 when the last read of the source succeeded, 0 when it did not.
pub const SOURCE_UP: &MetricDefinition = &DEFINITIONS[54];
