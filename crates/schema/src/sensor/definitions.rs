// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.

use super::{Access, Sensor};
use crate::metric::definitions as metric;
use crate::reading::Absence;
use crate::snapshot::{Load, MemoryCounts};

/// Every sensor; those of one metric in the order of their series.
pub static SENSORS: &[Sensor] = &[
    Sensor {
        field: "temperature_celsius",
        part: None,
        proto: 1,
        metric: metric::DEVICE_TEMPERATURE_CELSIUS,
        label: Some(("sensor", "asic")),
        history: Some(0),
        title: "temperature",
        name: "temperature",
        help: "temperature of the chip",
        decimals: 1,
        access: Access::Float(
            |telemetry| Some(&telemetry.temperature_celsius),
            |telemetry| &mut telemetry.temperature_celsius,
        ),
    },
    Sensor {
        field: "temperature_limit_celsius",
        part: None,
        proto: 2,
        metric: metric::DEVICE_TEMPERATURE_LIMIT_CELSIUS,
        label: Some(("sensor", "asic")),
        history: Some(1),
        title: "temperature limit",
        name: "temperature_limit",
        help: "temperature at which it throttles",
        decimals: 1,
        access: Access::Float(
            |telemetry| Some(&telemetry.temperature_limit_celsius),
            |telemetry| &mut telemetry.temperature_limit_celsius,
        ),
    },
    Sensor {
        field: "power_watts",
        part: None,
        proto: 3,
        metric: metric::DEVICE_POWER_WATTS,
        label: None,
        history: Some(2),
        title: "power (ASIC core)",
        name: "power",
        help: "power of the chip's core",
        decimals: 1,
        access: Access::Float(
            |telemetry| Some(&telemetry.power_watts),
            |telemetry| &mut telemetry.power_watts,
        ),
    },
    Sensor {
        field: "power_limit_watts",
        part: None,
        proto: 4,
        metric: metric::DEVICE_POWER_LIMIT_WATTS,
        label: None,
        history: Some(3),
        title: "power limit",
        name: "power_limit",
        help: "limit of that power",
        decimals: 1,
        access: Access::Float(
            |telemetry| Some(&telemetry.power_limit_watts),
            |telemetry| &mut telemetry.power_limit_watts,
        ),
    },
    Sensor {
        field: "current_amperes",
        part: None,
        proto: 5,
        metric: metric::DEVICE_CURRENT_AMPERES,
        label: None,
        history: Some(4),
        title: "current",
        name: "current",
        help: "current of the chip's core",
        decimals: 1,
        access: Access::Float(
            |telemetry| Some(&telemetry.current_amperes),
            |telemetry| &mut telemetry.current_amperes,
        ),
    },
    Sensor {
        field: "current_limit_amperes",
        part: None,
        proto: 6,
        metric: metric::DEVICE_CURRENT_LIMIT_AMPERES,
        label: None,
        history: Some(5),
        title: "current limit",
        name: "current_limit",
        help: "limit of that current",
        decimals: 1,
        access: Access::Float(
            |telemetry| Some(&telemetry.current_limit_amperes),
            |telemetry| &mut telemetry.current_limit_amperes,
        ),
    },
    Sensor {
        field: "voltage_volts",
        part: None,
        proto: 7,
        metric: metric::DEVICE_VOLTAGE_VOLTS,
        label: None,
        history: Some(6),
        title: "voltage",
        name: "voltage",
        help: "voltage of the chip's core",
        decimals: 3,
        access: Access::Float(
            |telemetry| Some(&telemetry.voltage_volts),
            |telemetry| &mut telemetry.voltage_volts,
        ),
    },
    Sensor {
        field: "voltage_limit_volts",
        part: None,
        proto: 8,
        metric: metric::DEVICE_VOLTAGE_LIMIT_VOLTS,
        label: None,
        history: Some(7),
        title: "voltage limit",
        name: "voltage_limit",
        help: "limit of that voltage",
        decimals: 3,
        access: Access::Float(
            |telemetry| Some(&telemetry.voltage_limit_volts),
            |telemetry| &mut telemetry.voltage_limit_volts,
        ),
    },
    Sensor {
        field: "aiclk_hertz",
        part: None,
        proto: 9,
        metric: metric::DEVICE_CLOCK_HERTZ,
        label: Some(("clock", "ai")),
        history: Some(8),
        title: "AICLK",
        name: "clock",
        help: "clock of its AI cores",
        decimals: 0,
        access: Access::Whole(
            |telemetry| Some(&telemetry.aiclk_hertz),
            |telemetry| &mut telemetry.aiclk_hertz,
        ),
    },
    Sensor {
        field: "axiclk_hertz",
        part: None,
        proto: 10,
        metric: metric::DEVICE_CLOCK_HERTZ,
        label: Some(("clock", "axi")),
        history: Some(9),
        title: "AXICLK",
        name: "axiclk",
        help: "clock of its AXI bus",
        decimals: 0,
        access: Access::Whole(
            |telemetry| Some(&telemetry.axiclk_hertz),
            |telemetry| &mut telemetry.axiclk_hertz,
        ),
    },
    Sensor {
        field: "arcclk_hertz",
        part: None,
        proto: 11,
        metric: metric::DEVICE_CLOCK_HERTZ,
        label: Some(("clock", "arc")),
        history: Some(10),
        title: "ARCCLK",
        name: "arcclk",
        help: "clock of its management cores",
        decimals: 0,
        access: Access::Whole(
            |telemetry| Some(&telemetry.arcclk_hertz),
            |telemetry| &mut telemetry.arcclk_hertz,
        ),
    },
    Sensor {
        field: "fan_revolutions_per_minute",
        part: None,
        proto: 12,
        metric: metric::DEVICE_FAN_SPEED_REVOLUTIONS_PER_MINUTE,
        label: None,
        history: Some(11),
        title: "fan",
        name: "fan",
        help: "speed of its fan, in revolutions a minute",
        decimals: 0,
        access: Access::Whole(
            |telemetry| Some(&telemetry.fan_revolutions_per_minute),
            |telemetry| &mut telemetry.fan_revolutions_per_minute,
        ),
    },
    Sensor {
        field: "heartbeat_total",
        part: None,
        proto: 13,
        metric: metric::DEVICE_HEARTBEATS_TOTAL,
        label: None,
        history: None,
        title: "heartbeat",
        name: "heartbeat",
        help: "heartbeats of its firmware",
        decimals: 0,
        access: Access::Whole(
            |telemetry| Some(&telemetry.heartbeat_total),
            |telemetry| &mut telemetry.heartbeat_total,
        ),
    },
    Sensor {
        field: "thermal_trips_total",
        part: None,
        proto: 14,
        metric: metric::DEVICE_THERMAL_TRIPS_TOTAL,
        label: None,
        history: Some(12),
        title: "thermal trips",
        name: "thermal_trips",
        help: "thermal trips since power on",
        decimals: 0,
        access: Access::Whole(
            |telemetry| Some(&telemetry.thermal_trips_total),
            |telemetry| &mut telemetry.thermal_trips_total,
        ),
    },
    Sensor {
        field: "busy_ratio",
        part: Some("load"),
        proto: 1,
        metric: metric::DEVICE_BUSY_RATIO,
        label: None,
        history: Some(13),
        title: "busy",
        name: "busy",
        help: "share of the last time in which it was computing",
        decimals: 0,
        access: Access::Float(
            |telemetry| telemetry.load.as_ref().map(|part| &part.busy_ratio),
            |telemetry| {
                &mut telemetry
                    .load
                    .get_or_insert_with(|| Box::new(Load::absent(Absence::NotKept, "")))
                    .busy_ratio
            },
        ),
    },
    Sensor {
        field: "memory_busy_ratio",
        part: Some("load"),
        proto: 2,
        metric: metric::DEVICE_MEMORY_BUSY_RATIO,
        label: None,
        history: Some(14),
        title: "memory busy",
        name: "memory_busy",
        help: "share of the last time in which its memory was read or written",
        decimals: 0,
        access: Access::Float(
            |telemetry| telemetry.load.as_ref().map(|part| &part.memory_busy_ratio),
            |telemetry| {
                &mut telemetry
                    .load
                    .get_or_insert_with(|| Box::new(Load::absent(Absence::NotKept, "")))
                    .memory_busy_ratio
            },
        ),
    },
    Sensor {
        field: "memory_clock_hertz",
        part: Some("load"),
        proto: 3,
        metric: metric::DEVICE_CLOCK_HERTZ,
        label: Some(("clock", "memory")),
        history: Some(15),
        title: "memory clock",
        name: "memory_clock",
        help: "clock of its memory",
        decimals: 0,
        access: Access::Whole(
            |telemetry| telemetry.load.as_ref().map(|part| &part.memory_clock_hertz),
            |telemetry| {
                &mut telemetry
                    .load
                    .get_or_insert_with(|| Box::new(Load::absent(Absence::NotKept, "")))
                    .memory_clock_hertz
            },
        ),
    },
    Sensor {
        field: "corrected_errors_total",
        part: Some("memory_counts"),
        proto: 2,
        metric: metric::DEVICE_MEMORY_ERRORS_TOTAL,
        label: Some(("severity", "corrected")),
        history: Some(16),
        title: "memory errors corrected",
        name: "corrected_errors",
        help: "errors that its memory corrected by itself",
        decimals: 0,
        access: Access::Whole(
            |telemetry| telemetry.memory_counts.as_ref().map(|part| &part.corrected_errors_total),
            |telemetry| {
                &mut telemetry
                    .memory_counts
                    .get_or_insert_with(|| Box::new(MemoryCounts::absent(Absence::NotKept, "")))
                    .corrected_errors_total
            },
        ),
    },
    Sensor {
        field: "uncorrected_errors_total",
        part: Some("memory_counts"),
        proto: 3,
        metric: metric::DEVICE_MEMORY_ERRORS_TOTAL,
        label: Some(("severity", "uncorrected")),
        history: Some(17),
        title: "memory errors uncorrected",
        name: "uncorrected_errors",
        help: "errors that its memory could not correct",
        decimals: 0,
        access: Access::Whole(
            |telemetry| telemetry.memory_counts.as_ref().map(|part| &part.uncorrected_errors_total),
            |telemetry| {
                &mut telemetry
                    .memory_counts
                    .get_or_insert_with(|| Box::new(MemoryCounts::absent(Absence::NotKept, "")))
                    .uncorrected_errors_total
            },
        ),
    },
];
