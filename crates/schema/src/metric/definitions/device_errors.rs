// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// Errors of the device's memory over its whole life, which a restart does not clear: corrected and uncorrected ones.
pub const DEVICE_MEMORY_ERRORS_LIFETIME_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_memory_errors_lifetime_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors of the device's memory over its whole life, which a restart does not clear: corrected and uncorrected ones.",
    labels: &["device", "severity"],
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

/// 1 while a page of the device's memory waits for a restart of the driver to be retired, else 0.
pub const DEVICE_PAGE_RETIREMENT_PENDING: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_page_retirement_pending",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while a page of the device's memory waits for a restart of the driver to be retired, else 0.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Rows of the device's memory that were replaced by spare ones, after corrected and after uncorrected errors.
pub const DEVICE_REMAPPED_ROWS: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_remapped_rows",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Rows of the device's memory that were replaced by spare ones, after corrected and after uncorrected errors.",
    labels: &["device", "severity"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Pages of the device's memory that are not used any more, after corrected and after uncorrected errors.
pub const DEVICE_RETIRED_PAGES: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_retired_pages",
    unit: Unit::Count,
    kind: MetricKind::Gauge,
    help: "Pages of the device's memory that are not used any more, after corrected and after uncorrected errors.",
    labels: &["device", "severity"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 if a row of the device's memory could not be replaced, else 0.
pub const DEVICE_ROW_REMAP_FAILED: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_row_remap_failed",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 if a row of the device's memory could not be replaced, else 0.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 while a row of the device's memory waits for a reset of the device to be replaced, else 0.
pub const DEVICE_ROW_REMAP_PENDING: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_row_remap_pending",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 while a row of the device's memory waits for a reset of the device to be replaced, else 0.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Errors that the device's SRAM (caches, registers) could not correct, since the driver was loaded or the device reset.
pub const DEVICE_SRAM_UNCORRECTED_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_sram_uncorrected_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors that the device's SRAM (caches, registers) could not correct, since the driver was loaded or the device reset.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Errors that the device's SRAM could not correct over its whole life, which a restart does not clear.
pub const DEVICE_SRAM_UNCORRECTED_LIFETIME_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_sram_uncorrected_lifetime_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Errors that the device's SRAM could not correct over its whole life, which a restart does not clear.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// XID errors of NVIDIA's driver on the device, since the reader first saw it.
pub const DEVICE_XID_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_xid_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "XID errors of NVIDIA's driver on the device, since the reader first saw it.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// XID errors of NVIDIA's driver that mean the device's hardware (docs/health.md), since the reader first saw it or it was reset.
pub const DEVICE_XID_HARDWARE_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_xid_hardware_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "XID errors of NVIDIA's driver that mean the device's hardware (docs/health.md), since the reader first saw it or it was reset.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Number of the last XID error of NVIDIA's driver that means the device's hardware, since the reader first saw it or it was reset.
pub const DEVICE_XID_HARDWARE_LAST: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_xid_hardware_last",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "Number of the last XID error of NVIDIA's driver that means the device's hardware, since the reader first saw it or it was reset.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Number of the last XID error of NVIDIA's driver on the device, since the reader first saw it.
pub const DEVICE_XID_LAST: &MetricDefinition = &MetricDefinition {
    name: "telltale_device_xid_last",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "Number of the last XID error of NVIDIA's driver on the device, since the reader first saw it.",
    labels: &["device"],
    scope: Scope::Device,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
