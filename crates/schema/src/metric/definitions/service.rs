// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use crate::metric::{MetricDefinition, MetricKind, Scope, Unit};

/// Version of the service.
pub const BUILD_INFO: &MetricDefinition = &MetricDefinition {
    name: "telltale_build_info",
    unit: Unit::None,
    kind: MetricKind::Info,
    help: "Version of the service.",
    labels: &["version"],
    scope: Scope::Service,
    since: "0.1.0",
};

/// How long the last collection took, all sources together.
pub const COLLECTION_DURATION_SECONDS: &MetricDefinition = &MetricDefinition {
    name: "telltale_collection_duration_seconds",
    unit: Unit::Seconds,
    kind: MetricKind::Gauge,
    help: "How long the last collection took, all sources together.",
    labels: &[],
    scope: Scope::Service,
    since: "0.1.0",
};
