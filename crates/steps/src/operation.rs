//! One operation of one rank, as its clock saw it.

use crate::kind::Kind;

/// The longest operation that is believed: a day.
pub const MAX_DURATION_NS: i64 = 24 * 3600 * 1_000_000_000;

/// One operation of one rank in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What it is compared with.
    pub kind: Kind,
    /// When it began, in nanoseconds on its host's clock: a communication when the rank was ready for it.
    pub start_ns: i64,
    /// When it ended, on the same clock.
    pub end_ns: i64,
    /// Who takes part besides its rank.
    pub partners: Partners,
}

/// Who takes part in an operation besides its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partners {
    /// No other rank that is known.
    None,
    /// It sends to this rank.
    To {
        /// The receiver.
        rank: u32,
        /// The process group.
        group: u64,
    },
    /// It receives from this rank.
    From {
        /// The sender.
        rank: u32,
        /// The process group.
        group: u64,
    },
    /// A collective of a group.
    All {
        /// The process group.
        group: u64,
        /// How many ranks it has, with this one.
        members: u32,
    },
}
