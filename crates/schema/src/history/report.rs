//! One process over its whole life, finished or not: what it had at most and when, what that came
//! to over time, and how it ended.

use serde::{Deserialize, Serialize};

use super::PastProcess;
use crate::clock::Timestamp;
use crate::memory::MemoryKind;
use crate::snapshot::{Container, RecordingFaults};

/// How a process ended, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It went and took its ledger with it, as a process does that ends by itself.
    Gone,
    /// It left its ledger behind, as a process does that is killed.
    Killed,
    /// It ended while no service was running.
    Unseen,
    /// The machine was started again.
    Restart,
}

/// What is kept of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Who it is.
    pub process: PastProcess,
    /// The container that it ran in, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// When its runtime began to record; none where that is not known.
    pub recording_since: Option<Timestamp>,
    /// When a service saw it first.
    pub first_seen: Timestamp,
    /// When a service saw it last.
    pub last_seen: Timestamp,
    /// How long it lived as far as that is known: from the start of its recording, or else from
    /// when it was first seen, to when it was last seen.
    pub lifetime_seconds: f64,
    /// How it ended; none when it lived when the history was last written.
    pub ending: Option<Ending>,
    /// When it was found to have ended; none when it was not observed.
    pub ended: Option<Timestamp>,
    /// What it had, by device and kind.
    pub usage: Vec<UsageReport>,
    /// What went wrong in recording, as its runtime counted it.
    pub faults: RecordingFaults,
}

/// What a process had of one kind of memory on one device, over its life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// The device.
    pub device: String,
    /// The kind.
    pub kind: MemoryKind,
    /// What it had when it was last seen.
    pub live_bytes: u64,
    /// The most that it had: as its runtime knows it, where it reports; else as it was seen.
    pub peak_bytes: u64,
    /// When the peak was first seen, to the interval of the service.
    pub peak_at: Timestamp,
    /// Bytes times seconds, over the time that it was watched.
    pub byte_seconds: u64,
    /// For how long it was watched: time without a service is not in it.
    pub watched_seconds: f64,
    /// The mean over that time; none when there was none.
    pub mean_bytes: Option<f64>,
}

// === impl Ending ===

impl Ending {
    const ALL: [Self; 4] = [Self::Gone, Self::Killed, Self::Unseen, Self::Restart];

    /// The name in the database and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Killed => "killed",
            Self::Unseen => "unseen",
            Self::Restart => "restart",
        }
    }

    /// The ending of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.name() == name)
    }

    /// What a person reads.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Gone => "ended and took its ledger with it",
            Self::Killed => "left its ledger behind, as a process does that is killed",
            Self::Unseen => "ended while no service was looking",
            Self::Restart => "the machine was started again",
        }
    }
}
