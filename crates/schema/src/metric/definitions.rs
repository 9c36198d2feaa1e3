// Generated from crates/schema/metrics.toml by `cargo xtask generate`. Do not edit.

use super::MetricDefinition;

/// Every metric Telltale can expose, sorted by name.
pub static DEFINITIONS: &[MetricDefinition] = &[];
