// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.

mod errors;
mod link;
mod load;
mod memory_counts;
mod nvlink;
mod power;
mod telemetry;

use super::Sensor;

/// Every sensor; those of one metric in the order of their series.
pub static SENSORS: &[Sensor] = &[
    telemetry::TEMPERATURE_CELSIUS,
    telemetry::TEMPERATURE_LIMIT_CELSIUS,
    telemetry::POWER_WATTS,
    telemetry::POWER_LIMIT_WATTS,
    telemetry::CURRENT_AMPERES,
    telemetry::CURRENT_LIMIT_AMPERES,
    telemetry::VOLTAGE_VOLTS,
    telemetry::VOLTAGE_LIMIT_VOLTS,
    telemetry::AICLK_HERTZ,
    telemetry::AXICLK_HERTZ,
    telemetry::ARCCLK_HERTZ,
    telemetry::FAN_REVOLUTIONS_PER_MINUTE,
    telemetry::FAN_RATIO,
    telemetry::HEARTBEAT_TOTAL,
    telemetry::THERMAL_TRIPS_TOTAL,
    load::BUSY_RATIO,
    load::MEMORY_BUSY_RATIO,
    load::MEMORY_CLOCK_HERTZ,
    load::ENCODER_BUSY_RATIO,
    load::DECODER_BUSY_RATIO,
    load::PERFORMANCE_STATE,
    memory_counts::CORRECTED_ERRORS_TOTAL,
    memory_counts::UNCORRECTED_ERRORS_TOTAL,
    memory_counts::CORRECTED_ERRORS_LIFETIME_TOTAL,
    memory_counts::UNCORRECTED_ERRORS_LIFETIME_TOTAL,
    memory_counts::SRAM_UNCORRECTED_ERRORS_TOTAL,
    memory_counts::SRAM_UNCORRECTED_LIFETIME_TOTAL,
    link::PCIE_GENERATION,
    link::PCIE_GENERATION_MAX,
    link::PCIE_WIDTH,
    link::PCIE_WIDTH_MAX,
    link::PCIE_RECEIVED_BYTES_PER_SECOND,
    link::PCIE_SENT_BYTES_PER_SECOND,
    link::NUMA_NODE,
    power::ENERGY_JOULES_TOTAL,
    power::POWER_LIMIT_DEFAULT_WATTS,
    power::POWER_LIMIT_MIN_WATTS,
    power::POWER_LIMIT_MAX_WATTS,
    errors::XID_ERRORS_TOTAL,
    errors::XID_LAST,
    errors::XID_HARDWARE_ERRORS_TOTAL,
    errors::XID_HARDWARE_LAST,
    errors::PCIE_REPLAYS_TOTAL,
    errors::REMAPPED_ROWS_CORRECTED,
    errors::REMAPPED_ROWS_UNCORRECTED,
    errors::ROW_REMAP_PENDING,
    errors::ROW_REMAP_FAILED,
    errors::RETIRED_PAGES_CORRECTED,
    errors::RETIRED_PAGES_UNCORRECTED,
    errors::PAGE_RETIREMENT_PENDING,
    nvlink::NVLINK_LINKS,
    nvlink::NVLINK_LINKS_UP,
    nvlink::NVLINK_RECEIVED_BYTES_TOTAL,
    nvlink::NVLINK_SENT_BYTES_TOTAL,
    nvlink::NVLINK_RECEIVED_BYTES_PER_SECOND,
    nvlink::NVLINK_SENT_BYTES_PER_SECOND,
    nvlink::NVLINK_CRC_ERRORS_TOTAL,
    nvlink::NVLINK_REPLAYS_TOTAL,
    nvlink::NVLINK_RECOVERIES_TOTAL,
    link::PCIE_CORRECTABLE_ERRORS_TOTAL,
    link::PCIE_NONFATAL_ERRORS_TOTAL,
    link::PCIE_FATAL_ERRORS_TOTAL,
];
