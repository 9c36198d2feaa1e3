//! What is asked of a machine's history, and what it answers: the same over HTTP, gRPC and in the
//! program. Who keeps the history is another crate.

mod choice;
mod fault;
mod report;

pub use choice::{ProcessChoice, identity_text};
pub use fault::{MAX_FAULTS, PastFault};
pub use report::{Ending, ProcessReport, UsageReport};

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::process::ProcessIdentity;
use crate::reading::Absence;

/// Spans of one answer, at most; a step that would give more is made longer.
pub const MAX_POINTS: usize = 2_000;
/// Series of one answer, at most; those beyond are counted.
pub const MAX_SERIES: usize = 1_024;
/// Spans without a requested step: about as many as a screen has columns.
const USUAL_POINTS: u64 = 120;
/// How far back a question goes that does not say so.
pub const USUAL_SECONDS: u64 = 3600;

/// Whose series are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subjects {
    /// Devices and processes.
    #[default]
    All,
    /// Devices alone.
    Devices,
    /// Processes alone, each with the devices that it held.
    Processes,
    /// No series, but what was wrong with devices, parts of the machine and sources.
    Faults,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryQuery {
    /// From here on.
    pub from: Timestamp,
    /// Up to here.
    pub to: Timestamp,
    /// The length of one span, in milliseconds; none for a length that gives about 120 of them.
    #[serde(default)]
    pub step_ms: Option<u64>,
    /// Whose series.
    #[serde(default)]
    pub subjects: Subjects,
    /// Only these devices, by id; empty for all. Of processes, what they had there.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Only these processes; empty for all.
    #[serde(default)]
    pub processes: Vec<ProcessChoice>,
    /// Only these metrics, by name or by a part of it at a `_` or its label (`power`,
    /// `memory_used`, `aiclk`); empty for temperature, power, AI clock and memory by space.
    #[serde(default)]
    pub metrics: Vec<String>,
}

/// What was so, from span to span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryAnswer {
    /// Where the first span begins.
    pub from: Timestamp,
    /// The length of each span.
    pub step_ms: u64,
    /// How many spans each series has.
    pub points: usize,
    /// The series: devices first, then processes.
    pub series: Vec<Series>,
    /// Series beyond the number that an answer has.
    pub series_left_out: u64,
    /// What was wrong in that time, the newest first, where that was asked for.
    #[serde(
        default,
        deserialize_with = "fault::known_past_faults",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub faults: Vec<PastFault>,
    /// Faults beyond the number that an answer has: the older ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faults_left_out: u64,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The metric, by its full name.
    pub metric: String,
    /// What it is measured in, as in its name; empty for a number of things.
    pub unit: String,
    /// What distinguishes it from other series of this metric and subject: the label's name and value, such
    /// as `space` and `dram`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<(String, String)>,
    /// The device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<PastProcess>,
    /// All spans together.
    pub whole: DenseSeries,
    /// The least value of each span; null where there was none.
    pub least: Vec<Option<f64>>,
    /// The mean over the time for which a value is known.
    pub mean: Vec<Option<f64>>,
    /// The greatest value.
    pub greatest: Vec<Option<f64>>,
    /// Why there was none, where that is known; left out where no span has a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Option<Absence>>,
}

/// A series over the whole time of an answer; null where it had no value.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DenseSeries {
    /// The least value.
    pub least: Option<f64>,
    /// The mean over the time for which a value is known.
    pub mean: Option<f64>,
    /// The greatest value.
    pub greatest: Option<f64>,
}

/// A process as the history knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastProcess {
    /// Who it is.
    pub identity: ProcessIdentity,
    /// The identity as one word, by which it is found again.
    pub key: String,
    /// Its pid in the service's PID namespace, where it was visible there.
    pub pid: Option<u32>,
    /// Its short name.
    pub name: String,
    /// Its command line, where it is known.
    pub command: Option<String>,
    /// Its user's number.
    pub uid: Option<u32>,
    /// Its user's name.
    pub user: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

// === impl HistoryQuery ===

impl HistoryQuery {
    /// Everything that is shown by default, over this time.
    #[must_use]
    pub fn over(from: Timestamp, to: Timestamp) -> Self {
        Self {
            from,
            to,
            step_ms: None,
            subjects: Subjects::All,
            devices: Vec::new(),
            processes: Vec::new(),
            metrics: Vec::new(),
        }
    }

    /// The length of the spans: as asked, but at least a second and long enough for
    /// [`MAX_POINTS`]; by default a round one.
    #[must_use]
    pub fn step(&self) -> u64 {
        const ROUND_SECONDS: [u64; 15] =
            [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600];
        let span_ms = self.to.since_ns(self.from) / 1_000_000;
        let least = span_ms.div_ceil(MAX_POINTS as u64 - 1).max(1_000);
        let wanted = self.step_ms.unwrap_or(span_ms / USUAL_POINTS).max(least);
        match self.step_ms {
            Some(asked) if asked == wanted => asked,
            _ => {
                let round = ROUND_SECONDS.into_iter().map(|seconds| seconds * 1_000);
                round
                    .into_iter()
                    .find(|round| *round >= wanted)
                    .unwrap_or_else(|| wanted.div_ceil(86_400_000).saturating_mul(86_400_000))
            }
        }
    }
}

// === impl Series ===

impl Series {
    /// Whether any span has a value.
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.whole.mean.is_some()
    }

    /// How much more it was in the last span with a value than in the first, by the means of both;
    /// none where a single span has one.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        let mut known = self.mean.iter().flatten();
        let first = known.next()?;
        known.next_back().map(|last| last - first)
    }
}

#[cfg(test)]
mod tests {
    use super::{HistoryQuery, MAX_POINTS};
    use crate::clock::Timestamp;

    #[test]
    fn a_step_is_round_and_gives_no_endless_answer() {
        let hour = 3_600 * 1_000_000_000;
        let query = |span_ns, step_ms| HistoryQuery {
            step_ms,
            ..HistoryQuery::over(Timestamp(hour), Timestamp(hour + span_ns))
        };
        for (span_ns, asked, step) in [
            (hour, None, 30_000),
            (hour / 60, None, 1_000),
            (24 * hour, None, 1_200_000),
            (hour, Some(2_500), 2_500),
            (hour, Some(1), 2_000),
            (30 * 24 * hour, Some(1_000), 1_800_000),
            (10_000 * 24 * hour, Some(1), 6 * 86_400_000),
        ] {
            assert_eq!(query(span_ns, asked).step(), step, "{span_ns} {asked:?}");
            assert!(span_ns / 1_000_000 / step < MAX_POINTS as u64);
        }
    }
}
