//! Latencies of transfers between ranks: what they are filed under, and what a report says of them.
//!
//! Filled by the agent, read by detection. Nothing here keeps single transfers beyond one report.

pub mod record;

use crate::group::GroupId;
use crate::rank::Rank;

/// Which way a transfer goes, as seen by the rank that measured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// It sent.
    Send,
    /// It received.
    Receive,
}

impl Direction {
    /// The same transfer as the rank at the other end sees it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Send => Self::Receive,
            Self::Receive => Self::Send,
        }
    }
}

/// Transfers of like size: bucket `k` holds more than 2^(k-1) and at most 2^k bytes, bucket 0 those
/// of 0 and 1 byte. Sizes are not compared across buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeBucket(u8);

impl SizeBucket {
    /// The bucket for a transfer of `bytes`.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        let exponent = u64::BITS - bytes.saturating_sub(1).leading_zeros();
        Self(u8::try_from(exponent).expect("a u64 has 64 bits"))
    }

    /// The bucket with this number; `None` past 64.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 64 { Some(Self(number)) } else { None }
    }

    /// Its number, 0 to 64.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What a latency is filed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeKey {
    /// The process group.
    pub group: GroupId,
    /// The rank that measured, in the whole job.
    pub rank: Rank,
    /// The rank at the other end, in the whole job.
    pub peer: Rank,
    /// Which way.
    pub direction: Direction,
    /// How large.
    pub bucket: SizeBucket,
}

/// The kind of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collective {
    /// All reduce, all have the result.
    AllReduce,
    /// One gives to all.
    Broadcast,
    /// All give to all.
    AllGather,
    /// All reduce, one has the result.
    Reduce,
    /// All reduce, each has a part of the result.
    ReduceScatter,
    /// All meet.
    Barrier,
    /// Another.
    Other,
}

impl Collective {
    /// Its name in PyTorch.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::Broadcast => "broadcast",
            Self::AllGather => "all_gather",
            Self::Reduce => "reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Barrier => "barrier",
            Self::Other => "another collective",
        }
    }

    /// The collective with this name. Libraries write the same one in several ways: `allreduce`,
    /// `all_reduce`, `AllReduce`, `allreduce_coalesced`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let begins = |with: &str| {
            let mut letters = name.bytes().filter(u8::is_ascii_alphabetic);
            with.bytes().all(|wanted| {
                letters.next().is_some_and(|letter| letter.to_ascii_lowercase() == wanted)
            })
        };
        let known = [
            ("allreduce", Self::AllReduce),
            ("broadcast", Self::Broadcast),
            ("allgather", Self::AllGather),
            ("reducescatter", Self::ReduceScatter),
            ("reduce", Self::Reduce),
            ("barrier", Self::Barrier),
        ];
        let found = known.iter().find(|(name, _)| begins(name));
        found.map_or(Self::Other, |(_, collective)| *collective)
    }
}

/// What the time that a rank spends in collectives is filed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitKey {
    /// The process group.
    pub group: GroupId,
    /// The rank, in the whole job.
    pub rank: Rank,
    /// Which collective.
    pub collective: Collective,
    /// How large, by bytes where the record has them, else by elements.
    pub bucket: SizeBucket,
}

/// Statistics of the latencies of one key since the last report: the latest
/// [`crate::tracking::windows::MAX_WINDOW_SAMPLES`] at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many latencies the values summarize.
    pub count: u32,
    /// Their mean, in nanoseconds.
    pub mean_ns: u64,
    /// Their median, in nanoseconds.
    pub median_ns: u64,
    /// The median of their distances from the median, in nanoseconds.
    pub deviation_ns: u64,
    /// Their 0.95 quantile, in nanoseconds.
    pub high_ns: u64,
    /// How many this key has had in all: the last one's number.
    pub last_sequence: u64,
    /// How many of the transfers began late, since another rank had held theirs up. It is the peer's
    /// time that holds that wait.
    pub late: u32,
    /// How many of the latencies hold a wait for something else than their transfer.
    pub overlapped: u32,
}

/// The latencies of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeWindow {
    /// What they are filed under.
    pub key: EdgeKey,
    /// The values.
    pub window: Window,
}

/// The time spent in collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitWindow {
    /// What it is filed under.
    pub key: WaitKey,
    /// The values.
    pub window: Window,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_powers_of_two() {
        let cases = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20), (u64::MAX, 64)];
        for (bytes, expected) in cases {
            assert_eq!(SizeBucket::of(bytes).number(), expected, "{bytes} bytes");
        }
        assert_eq!(SizeBucket::new(65), None);
    }
}
