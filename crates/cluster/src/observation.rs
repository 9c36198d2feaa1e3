//! What one node reports about its workers in one report.
//!
//! Plain data: who sent it, in which epoch and with which sequence number is the business of the
//! message around it. Receivers of a report from outside cut it to the limits below and counts
//! what it cut.

mod unsent;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::group::GroupId;
use crate::latency::{EdgeWindow, WaitWindow};
use crate::rank::Rank;
use crate::work::Operations;

/// Process groups whose progress one report may hold.
pub const MAX_PROGRESS_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_PROGRESS;
/// Latency windows that one report may hold of transfers, and again of collectives.
pub const MAX_WINDOWS_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_WINDOWS;
/// Workers of whom one report may say what was withheld.
pub const MAX_WITHHELD_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_WORKERS;
/// Pairs of addresses whose traffic one report may hold.
pub const MAX_TRAFFIC_PER_REPORT: usize = telltale_wire::limits::cluster::MAX_TRAFFIC;
/// Bytes of what a worker that failed left, and of the path of its log.
pub const MAX_FAILURE_BYTES: usize = telltale_wire::limits::cluster::MAX_FAILURE_BYTES;
/// Ranks that one rank may say it waits for.
pub const MAX_AWAITED_RANKS: usize = telltale_wire::limits::cluster::MAX_AWAITED_RANKS;

/// A node's workers, their progress and their latencies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Each of the node's workers.
    pub workers: Vec<WorkerObservation>,
    /// How far each worker is in each of its process groups.
    pub progress: Vec<GroupProgress>,
    /// The latencies of transfers since the last report.
    pub edges: Vec<EdgeWindow>,
    /// The time spent in collectives since the last report.
    pub waits: Vec<WaitWindow>,
    /// Whether a worker says that it does something slow on purpose, a checkpoint say: neither its
    /// standing still nor its latencies count meanwhile.
    pub excused: bool,
    /// Operations of training steps that ended since the last report.
    pub operations: Operations,
    /// When it was sent, in microseconds of its host's monotonic clock (`CLOCK_MONOTONIC`), which clients may take their
    /// times from too.
    pub sent_us: Option<i64>,
    /// Processor time that workers wanted since the last report and did not get.
    pub withheld: Vec<Withheld>,
    /// What workers' TCP connections to other hosts carried since the last report.
    pub traffic: Vec<Traffic>,
    /// What workers that failed left, where anything is known.
    pub failures: Vec<(Rank, FailureDetail)>,
}

/// What a worker that failed left, for people: nothing is decided by it. Each is cut to [`MAX_FAILURE_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailureDetail {
    /// Its exception, or what the system says of its end, in one line. Empty where nothing is known.
    pub message: String,
    /// The path of its log on its node. Empty where it has none.
    pub log: String,
}

/// What workers' TCP connections from one address to another one carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// An address of the node itself.
    pub local: IpAddr,
    /// One of another host.
    pub remote: IpAddr,
    /// Bytes that the other host has acknowledged.
    pub bytes: u64,
    /// For how long there was something to send and the receiver had room for it; at most `elapsed`.
    pub busy: Duration,
    /// Bytes a second as the fastest of the connections delivers them, by the kernel's own measure.
    pub delivery_rate: u64,
    /// In which time.
    pub elapsed: Duration,
}

/// Processor time that a worker wanted and did not get, since its control group's quota was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withheld {
    /// Whose.
    pub rank: Rank,
    /// In millionths of the time.
    millionths: u32,
}

impl Withheld {
    /// This part of the time; what is not from 0 to 1 is taken for the nearest.
    #[must_use]
    pub fn of(rank: Rank, part: f64) -> Self {
        Self { rank, millionths: (part.clamp(0.0, 1.0) * 1e6).round() as u32 }
    }

    /// So many millionths of the time; `None` of more than there are.
    #[must_use]
    pub const fn of_millionths(rank: Rank, millionths: u32) -> Option<Self> {
        if millionths > 1_000_000 {
            return None;
        }
        Some(Self { rank, millionths })
    }

    /// In millionths of the time.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.millionths
    }

    /// Which part of the time.
    #[must_use]
    pub fn part(self) -> f64 {
        f64::from(self.millionths) / 1e6
    }
}

/// One worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerObservation {
    /// Which one.
    pub rank: Rank,
    /// How it is.
    pub state: WorkerState,
}

/// How a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// It runs.
    Running,
    /// The system says that it is stopped (state `T` or `t` in `/proc/<pid>/stat`, proc(5)).
    Stopped,
    /// It ended with exit code 0, which is no failure.
    Finished,
    /// Its agent ended it on purpose, which is no failure either.
    Ended,
    /// It failed.
    Failed {
        /// How it ended.
        end: WorkerEnd,
        /// How long before the report was sent, on the node's own monotonic clock.
        age: Duration,
    },
}

/// How a failed worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerEnd {
    /// With this exit code, which is not 0.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It could not be started.
    NotStarted,
}

/// Shells report a child that a signal ended with this much added (POSIX sh, 2.8.2).
const SHELL_SIGNAL_BASE: i32 = 128;

impl WorkerEnd {
    /// Whether a worker that ended like this did not end because of another's failure: by ILL, BUS, FPE,
    /// KILL, SEGV or SYS (signal(7), x86 and Arm), also as a shell tells it, or it was never started.
    /// A survivor may end in any other way: by a code of its own, by ABRT since libraries abort when a
    /// peer is lost, by PIPE when it writes to one, by TERM, HUP or INT as the sender chooses.
    #[must_use]
    pub const fn is_cause(self) -> bool {
        match self {
            Self::NotStarted => true,
            Self::Signal(signal) => is_fault(signal),
            Self::Code(code) => match code.checked_sub(SHELL_SIGNAL_BASE) {
                Some(signal) => is_fault(signal),
                None => false,
            },
        }
    }
}

/// Whether a signal is not a survivor's way to end.
const fn is_fault(signal: i32) -> bool {
    matches!(signal, 4 | 7 | 8 | 9 | 11 | 31)
}

impl fmt::Display for WorkerEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
            Self::NotStarted => formatter.write_str("not started"),
        }
    }
}

/// How far one worker is in one process group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProgress {
    /// The group.
    pub group: GroupId,
    /// The worker.
    pub rank: Rank,
    /// Collectives that it has entered so far; the last of them has this number.
    pub entered: u64,
    /// Collectives that it has finished so far.
    pub finished: u64,
    /// Ranks to whom it has begun to send something that has not left for certain; at most
    /// [`MAX_AWAITED_RANKS`].
    pub sends_to: Vec<Rank>,
    /// Ranks from whom it has begun to receive something that is not there; at most
    /// [`MAX_AWAITED_RANKS`].
    pub receives_from: Vec<Rank>,
    /// Transfers that it has finished so far, as far as is known: a rank that finishes any does not stand
    /// still, also if it is found waiting for the same rank each time.
    pub transferred: u64,
}

#[cfg(test)]
mod tests {
    use super::WorkerEnd::{Code, NotStarted, Signal};

    #[test]
    fn a_cause_ends_as_no_survivor_does() {
        let causes =
            [NotStarted, Signal(4), Signal(7), Signal(8), Signal(9), Signal(11), Signal(31)];
        let in_a_shell = [Code(132), Code(135), Code(136), Code(137), Code(139), Code(159)];
        for end in causes.into_iter().chain(in_a_shell) {
            assert!(end.is_cause(), "{end}");
        }
        // HUP, INT, ABRT, USR1, PIPE, TERM; and codes, also such as a shell has for those.
        let signals = [1, 2, 6, 10, 13, 15].map(Signal);
        let codes = [1, 4, 9, 11, 128, 129, 130, 134, 141, 143, 255, -9, i32::MIN, i32::MAX];
        for end in signals.into_iter().chain(codes.map(Code)) {
            assert!(!end.is_cause(), "{end}");
        }
    }
}
