// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.

use crate::metric::definitions as metric;
use crate::reading::Absence;
use crate::sensor::{FieldPath, Sensor};
use crate::snapshot::MemoryCounts;

pub(super) const CORRECTED_ERRORS_TOTAL: Sensor = Sensor {
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
    heading: "MEMORY ERRORS CORRECTED",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, memory_counts: MemoryCounts, corrected_errors_total),
};

pub(super) const UNCORRECTED_ERRORS_TOTAL: Sensor = Sensor {
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
    heading: "MEMORY ERRORS UNCORRECTED",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, memory_counts: MemoryCounts, uncorrected_errors_total),
};

pub(super) const CORRECTED_ERRORS_LIFETIME_TOTAL: Sensor = Sensor {
    field: "corrected_errors_lifetime_total",
    part: Some("memory_counts"),
    proto: 4,
    metric: metric::DEVICE_MEMORY_ERRORS_LIFETIME_TOTAL,
    label: Some(("severity", "corrected")),
    history: Some(29),
    title: "ECC corrected, life",
    name: "corrected_lifetime",
    help: "errors that its memory corrected by itself, over its whole life",
    decimals: 0,
    heading: "ECC CORRECTED, LIFE",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, memory_counts: MemoryCounts, corrected_errors_lifetime_total),
};

pub(super) const UNCORRECTED_ERRORS_LIFETIME_TOTAL: Sensor = Sensor {
    field: "uncorrected_errors_lifetime_total",
    part: Some("memory_counts"),
    proto: 5,
    metric: metric::DEVICE_MEMORY_ERRORS_LIFETIME_TOTAL,
    label: Some(("severity", "uncorrected")),
    history: Some(30),
    title: "ECC uncorrected, life",
    name: "uncorrected_lifetime",
    help: "errors that its memory could not correct, over its whole life",
    decimals: 0,
    heading: "ECC UNCORRECTED, LIFE",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, memory_counts: MemoryCounts, uncorrected_errors_lifetime_total),
};

pub(super) const SRAM_UNCORRECTED_ERRORS_TOTAL: Sensor = Sensor {
    field: "sram_uncorrected_errors_total",
    part: Some("memory_counts"),
    proto: 7,
    metric: metric::DEVICE_SRAM_UNCORRECTED_ERRORS_TOTAL,
    label: None,
    history: Some(52),
    title: "SRAM uncorrected",
    name: "sram_errors",
    help: "errors that its SRAM could not correct",
    decimals: 0,
    heading: "SRAM UNCORRECTED",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, memory_counts: MemoryCounts, sram_uncorrected_errors_total),
};

pub(super) const SRAM_UNCORRECTED_LIFETIME_TOTAL: Sensor = Sensor {
    field: "sram_uncorrected_lifetime_total",
    part: Some("memory_counts"),
    proto: 6,
    metric: metric::DEVICE_SRAM_UNCORRECTED_LIFETIME_TOTAL,
    label: None,
    history: Some(31),
    title: "SRAM uncorrected, life",
    name: "sram_lifetime",
    help: "errors that its SRAM could not correct, over its whole life",
    decimals: 0,
    heading: "SRAM UNCORRECTED, LIFE",
    is_column: false,
    is_graph: false,
    is_csv: false,
    limit: None,
    access: access!(Whole, memory_counts: MemoryCounts, sram_uncorrected_lifetime_total),
};
