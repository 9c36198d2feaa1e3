// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// How long the last read of the source took.
pub const SOURCE_DURATION_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_source_duration_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "How long the last read of the source took.",
    labels: &["source"],
    scope: Scope::Source,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Reads of the source that failed.
pub const SOURCE_ERRORS_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_source_errors_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Reads of the source that failed.",
    labels: &["source"],
    scope: Scope::Source,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// Entries and claims of other users that the source did not use, at each read.
pub const SOURCE_NOTES_TOTAL: &MetricDefinition = &MetricDefinition {
    name: "telltale_source_notes_total",
    unit: Unit::Count,
    kind: MetricKind::Counter,
    help: "Entries and claims of other users that the source did not use, at each read.",
    labels: &["source"],
    scope: Scope::Source,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};

/// 1 when the last read of the source succeeded, 0 when it did not.
pub const SOURCE_UP: &MetricDefinition = &MetricDefinition {
    name: "telltale_source_up",
    unit: Unit::None,
    kind: MetricKind::Gauge,
    help: "1 when the last read of the source succeeded, 0 when it did not.",
    labels: &["source"],
    scope: Scope::Source,
    since: "0.1.0",
    rate_of: None,
    otlp: None,
};
