//! What an entry of `sensors.toml` has.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::generate::metrics::Metric;

/// One entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sensor {
    pub(super) field: String,
    pub(super) doc: String,
    pub(super) proto: u64,
    pub(super) of: Option<TelemetryPart>,
    pub(super) r#type: Type,
    pub(super) metric: String,
    #[serde(default)]
    pub(super) label: BTreeMap<String, String>,
    pub(super) history: Option<u16>,
    pub(super) title: String,
    pub(super) help: String,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) decimals: usize,
    pub(super) heading: Option<String>,
    #[serde(default)]
    pub(super) show: Vec<SensorView>,
    pub(super) limit: Option<String>,
    #[serde(default)]
    pub(super) later: bool,
}

/// Where a sensor is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SensorView {
    Table,
    Graph,
    Csv,
}

/// A part of the telemetry that not all devices have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TelemetryPart {
    Load,
    MemoryCounts,
    Link,
    Power,
    Errors,
    Nvlink,
}

// === impl TelemetryPart ===

impl TelemetryPart {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::MemoryCounts => "memory_counts",
            Self::Link => "link",
            Self::Power => "power",
            Self::Errors => "errors",
            Self::Nvlink => "nvlink",
        }
    }

    /// The type in Rust.
    pub(super) const fn type_name(self) -> &'static str {
        match self {
            Self::Load => "Load",
            Self::MemoryCounts => "MemoryCounts",
            Self::Link => "PcieLink",
            Self::Power => "Power",
            Self::Errors => "DeviceErrors",
            Self::Nvlink => "NvLinks",
        }
    }
}

// === impl Sensor ===

impl Sensor {
    /// What queries call it: the field without its unit, where it has no name of its own.
    pub(super) fn name(&self, metric: &Metric) -> &str {
        let suffix = metric.unit.suffix().unwrap_or("total");
        let short = self.field.trim_end_matches(suffix).trim_end_matches('_');
        self.name.as_deref().unwrap_or(short)
    }

    pub(super) fn heading(&self) -> String {
        self.heading.clone().unwrap_or_else(|| self.title.to_uppercase())
    }

    pub(super) fn is_in(&self, view: SensorView) -> bool {
        self.show.contains(&view)
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Type {
    Float,
    Whole,
}
