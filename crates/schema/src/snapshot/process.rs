//! A process in a snapshot.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::process::ProcessIdentity;
use crate::reading::{Absence, Reading};
use crate::snapshot::{Container, HeldDevice, ProcessUsage};

/// One process that holds a device or has recorded memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// Who it is, where we could find out.
    pub identity: Option<ProcessIdentity>,
    /// Its pid in our PID namespace; none when it is not visible from here.
    pub pid: Option<u32>,
    /// Its pid in its own innermost namespace, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_pid: Option<u32>,
    /// Its short name.
    pub name: String,
    /// Its command line, arguments separated by spaces, unprintable bytes escaped.
    pub command: Reading<String>,
    /// Its real user id.
    pub uid: Reading<u32>,
    /// That user's name.
    pub user: Reading<String>,
    /// The container it runs in, if it does.
    pub container: Option<Container>,
    /// Whether it lives.
    pub state: ProcessState,
    /// Where its memory values come from; the first of these that knew it.
    pub known_by: Option<ProcessSource>,
    /// When it started, by the machine's clock; none where it cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Seconds since its runtime started recording.
    pub uptime_seconds: Reading<f64>,
    /// What it takes of the host; none where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<ProcessUsage>>,
    /// The devices it holds and what it has recorded there.
    pub devices: Vec<HeldDevice>,
    /// What went wrong in recording, as its runtime counted it.
    pub faults: RecordingFaults,
    /// Whatever else its endpoint reports; the same from snapshot to snapshot until it is asked again.
    #[serde(with = "shared")]
    #[cfg_attr(feature = "json-schema", schemars(with = "Vec<MetricSample>"))]
    pub metrics: Arc<[MetricSample]>,
}

/// Where a process's memory values come from, in the order of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessSource {
    /// Its own ledger.
    Ledger,
    /// Its endpoint, without a ledger at hand.
    Endpoint,
    /// A row in a foreign tt-metal region.
    Region,
    /// Its messages in the allocation server's protocol.
    Legacy,
    /// The device's driver, which counts what each process has.
    Driver,
}

impl Process {
    /// A process of which nothing is known but perhaps the pid in a namespace of its own and a name.
    pub fn hidden(namespace_pid: Option<u32>, name: &str) -> Self {
        let hidden = Absence::Hidden;
        Self {
            identity: None,
            pid: None,
            namespace_pid,
            name: name.to_owned(),
            command: Reading::absent(hidden, ""),
            uid: Reading::absent(hidden, ""),
            user: Reading::absent(hidden, ""),
            container: None,
            state: ProcessState::Hidden,
            known_by: None,
            started_at: None,
            uptime_seconds: Reading::absent(hidden, ""),
            usage: None,
            devices: Vec::new(),
            faults: RecordingFaults::default(),
            metrics: [].into(),
        }
    }
}

impl ProcessSource {
    /// The name in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Endpoint => "endpoint",
            Self::Region => "region",
            Self::Legacy => "legacy",
            Self::Driver => "driver",
        }
    }

    /// The words a person reads.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ledger => "its ledger",
            Self::Endpoint => "its endpoint",
            Self::Region => "a row in a tt-metal region (live bytes alone)",
            Self::Legacy => "its messages to the legacy allocation socket",
            Self::Driver => "the device's driver (live bytes alone)",
        }
    }
}

impl ProcessState {
    /// The name in JSON, labels and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Hidden => "hidden",
        }
    }
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It lives.
    Alive,
    /// It ended; its last known values are shown and are in no total.
    Dead,
    /// It cannot be seen from our PID namespace.
    Hidden,
}

/// What went wrong in one process's recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct RecordingFaults {
    /// Frees of an address that was freed before and not allocated again.
    pub double_frees: u64,
    /// Frees of an address that was never recorded.
    pub unknown_frees: u64,
    /// Allocations at an address that was still live; the old one was counted as freed.
    pub reused_live_addresses: u64,
    /// Events that could not be recorded for want of room.
    pub unrecorded_events: u64,
}

impl RecordingFaults {
    /// The faults of two parts of one process together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            double_frees: self.double_frees.saturating_add(other.double_frees),
            unknown_frees: self.unknown_frees.saturating_add(other.unknown_frees),
            reused_live_addresses: self
                .reused_live_addresses
                .saturating_add(other.reused_live_addresses),
            unrecorded_events: self.unrecorded_events.saturating_add(other.unrecorded_events),
        }
    }
}

/// One value of a metric that a process describes itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MetricSample {
    /// The metric's name.
    pub name: String,
    /// What it means.
    pub help: String,
    /// Its unit, as the process names it; empty for none.
    pub unit: String,
    /// Labels and their values.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: MetricValue,
}

/// A value of a self-described metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MetricValue {
    /// A count that only grows.
    Counter(u64),
    /// A value that goes up and down. What is no finite number is `NaN`, `+Inf` or `-Inf` in JSON.
    Gauge(
        #[serde(with = "crate::float")]
        #[cfg_attr(feature = "json-schema", schemars(with = "crate::json_schema::Float"))]
        f64,
    ),
    /// Counts of observations not above each bound, the last bound being infinite.
    Histogram {
        /// Upper bounds, ascending; the infinite one is left out.
        bounds: Vec<f64>,
        /// Observations in each bucket, one more than bounds; not cumulative.
        counts: Vec<u64>,
        /// The sum of all observations, written as a gauge is.
        #[serde(with = "crate::float")]
        #[cfg_attr(feature = "json-schema", schemars(with = "crate::json_schema::Float"))]
        sum: f64,
    },
}

impl MetricValue {
    /// Observations in all buckets of a histogram, at most the largest number; 0 for other values.
    pub fn observations(&self) -> u64 {
        match self {
            Self::Counter(_) | Self::Gauge(_) => 0,
            Self::Histogram { counts, .. } => counts.iter().copied().fold(0, u64::saturating_add),
        }
    }
}
/// Shared samples as the list that they are.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::MetricSample;

    pub(super) fn serialize<S: Serializer>(
        samples: &Arc<[MetricSample]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        samples[..].serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[MetricSample]>, D::Error> {
        Vec::deserialize(deserializer).map(Arc::from)
    }
}
