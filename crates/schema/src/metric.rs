//! Metric definitions as data: each metric is one entry from which constants, exposition text,
//! listings and documentation come.

/// The definitions, and one constant for each.
pub mod definitions;
pub mod otlp;

pub use definitions::{AGENT_DEFINITIONS, COORDINATOR_DEFINITIONS, DEFINITIONS};

use serde::{Deserialize, Serialize};

/// What a metric's value is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Degrees Celsius.
    Celsius,
    /// Volts.
    Volts,
    /// Amperes.
    Amperes,
    /// Watts.
    Watts,
    /// Joules.
    Joules,
    /// Hertz.
    Hertz,
    /// A share between 0 and 1.
    Ratio,
    /// A number of things that the name reports.
    Count,
    /// Revolutions a minute.
    RevolutionsPerMinute,
    /// Bytes a second.
    BytesPerSecond,
    /// No unit: identity and state.
    None,
}

impl Unit {
    /// The unit's name, which is the end of a metric's name; none where the name says what is
    /// counted, or there is no unit.
    pub fn suffix(self) -> Option<&'static str> {
        Some(match self {
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::Celsius => "celsius",
            Self::Volts => "volts",
            Self::Amperes => "amperes",
            Self::Watts => "watts",
            Self::Joules => "joules",
            Self::Hertz => "hertz",
            Self::Ratio => "ratio",
            Self::RevolutionsPerMinute => "revolutions_per_minute",
            Self::BytesPerSecond => "bytes_per_second",
            Self::Count | Self::None => return None,
        })
    }
}

/// How a metric's value behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// Only grows, until its owner restarts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of observations in buckets.
    Histogram,
    /// Always 1; its labels carry the information.
    Info,
}

impl MetricKind {
    /// The endings that the lines of a family of this kind may have after its name, in either text format.
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["_total", "_created", ""],
            Self::Gauge | Self::Info => &[""],
            Self::Histogram => &["_bucket", "_sum", "_count", "_created", ""],
        }
    }
}

/// What a series of a metric belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A device.
    Device,
    /// A process.
    Process,
    /// A source of readings.
    Source,
    /// The node service itself.
    Service,
    /// The coordinator of a job, which is another program than the node service.
    Coordinator,
    /// The agent of one of a job's nodes, which is another program too.
    Agent,
}

impl Scope {
    /// The labels that distinguish the things of this scope from each other, first among a metric's.
    /// Processes that have all of theirs in common share a row; a pid is no label of theirs, because
    /// each new one would be series that are never seen again. Only holders have it, which are few.
    pub const fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Device => &["device"],
            Self::Process => &["process", "user", "container_id", "pod_uid"],
            Self::Source => &["source"],
            Self::Service | Self::Coordinator | Self::Agent => &[],
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricDefinition {
    /// The full name, with prefix and unit suffix.
    pub name: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// How it behaves.
    pub kind: MetricKind,
    /// One sentence that says what it means.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What one series belongs to.
    pub scope: Scope,
    /// The version of Telltale that first had it.
    pub since: &'static str,
    /// Of a rate, the counter whose growth it is. Readers of `/metrics` and OTLP have that one and
    /// compute rates themselves, so that a rate is in no list of what is exposed.
    pub rate_of: Option<&'static str>,
    /// What the semantic conventions of OpenTelemetry have that means the same.
    pub otlp: Option<Convention>,
}

/// A metric in the semantic conventions of OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convention {
    /// Its name.
    pub name: &'static str,
    /// Whether values of several subjects add up.
    pub adds_up: bool,
    /// An attribute that all of its points have.
    pub attribute: Option<(&'static str, &'static str)>,
}

#[cfg(test)]
mod tests {
    use super::{AGENT_DEFINITIONS, COORDINATOR_DEFINITIONS, DEFINITIONS};

    #[test]
    fn definitions_are_sorted_by_name_and_end_in_their_unit() {
        let lists = [DEFINITIONS, COORDINATOR_DEFINITIONS, AGENT_DEFINITIONS];
        for list in lists {
            assert!(list.is_sorted_by(|one, other| one.name < other.name));
        }
        for definition in lists.into_iter().flatten() {
            let stem = definition.name.trim_end_matches("_total");
            let suffix = definition.unit.suffix().unwrap_or_default();
            assert!(stem.ends_with(suffix), "{}", definition.name);
        }
    }
}
