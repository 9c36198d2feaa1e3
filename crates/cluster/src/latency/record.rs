//! One record of `/log_ccl`: what a collective library reports about an operation when it begins and
//! again when it ends.
//!
//! The fields are those of the original's JSON; reading the JSON is done elsewhere.

use thiserror::Error;

use crate::group::GroupId;
use crate::latency::{Collective, Direction, EdgeKey, SizeBucket, WaitKey};
use crate::rank::Rank;

/// The longest operation that is believed, in microseconds: a day.
pub const MAX_DURATION_US: u64 = 24 * 3600 * 1_000_000;

/// What was done (`opType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationType {
    /// `send` or `recv`, with the other rank of the same context (`remoteRank`).
    Transfer {
        /// Which way.
        direction: Direction,
        /// The other rank, counted within the context.
        remote_rank: u32,
        /// How many bytes (`bytes`).
        bytes: u64,
    },
    /// A collective.
    Collective {
        /// Which.
        collective: Collective,
        /// How large, in bytes or elements (`count`); 0 where the record does not say.
        size: u64,
    },
}

/// How far an operation is (`finished`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has begun.
    Began,
    /// It has ended.
    Ended {
        /// When it began, in microseconds on a clock that only grows (`startTime`).
        start_us: i64,
        /// When it ended (`endTime`).
        end_us: i64,
    },
    /// It has ended, at an unknown time: it counts as progress and says nothing of speed.
    EndedUntimed,
}

/// What the time of a transfer holds beside the transfer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waited {
    /// Another rank had held this one up before it began (`late`): the peer's time holds that wait.
    pub late: bool,
    /// It waited for something else before it saw the end (`overlapped`): its own time holds that wait.
    pub overlapped: bool,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveRecord {
    /// What was done.
    pub operation: OperationType,
    /// The process group, which the original does not name.
    pub group: Option<GroupId>,
    /// The rank that did it, counted within the context (`context_rank`).
    pub context_rank: u32,
    /// The same in the whole job, where the client knows it: what a collective needs when no rank has
    /// named the group's members.
    pub global_rank: Option<Rank>,
    /// How many ranks the context has (`context_size`).
    pub context_size: u32,
    /// Whether it has ended, and when.
    pub stage: Stage,
    /// Its number, where the client gives one (`sequence`, which the original lacks): of a collective,
    /// the how many-th of its rank in the group; of a transfer, one that grows with each that the rank
    /// begins in the group.
    pub sequence: Option<u64>,
    /// The training step of its rank that it is of, where the client knows it (`step`).
    pub step: Option<u64>,
    /// What the time of a transfer holds beside it. A client that does not report this measures the
    /// transfer alone.
    pub waited: Waited,
}

/// Why a record is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The group's ranks are unknown.
    #[error("the record's group is not known here; name its members first")]
    UnknownGroup,
    /// A rank is not within its context.
    #[error("the record's rank {rank} is not one of its context's {size}")]
    RankOutside {
        /// The rank.
        rank: u32,
        /// The context's size.
        size: u32,
    },
    /// The rank that did it runs on another node.
    #[error("the record's rank {rank} is none of this node's")]
    Elsewhere {
        /// The rank, in the whole job.
        rank: Rank,
    },
    /// It ended before it began, or lasted longer than is believed.
    #[error(
        "the record begins at {start_us} us and ends at {end_us} us, \
         which is no duration up to a day"
    )]
    Duration {
        /// When it began.
        start_us: i64,
        /// When it ended.
        end_us: i64,
    },
}

/// What a record means once its ranks are those of the whole job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectiveEvent {
    /// A transfer began.
    TransferBegan(EdgeKey),
    /// A transfer ended after so many nanoseconds, if that is known.
    TransferEnded(EdgeKey, Option<u64>),
    /// A rank entered a collective.
    CollectiveBegan(WaitKey),
    /// A rank left a collective after so many nanoseconds, if that is known.
    CollectiveEnded(WaitKey, Option<u64>),
}

impl CollectiveRecord {
    /// What the record means when its context has these `members`, in the order of the context's
    /// ranks.
    ///
    /// # Errors
    /// When a rank is not within the context, or the duration is none.
    pub fn event(
        &self,
        group: GroupId,
        members: &impl Members,
    ) -> Result<CollectiveEvent, RecordError> {
        let resolve = |rank: u32| {
            let outside = RecordError::RankOutside { rank, size: self.context_size };
            if rank < self.context_size { members.rank(rank).ok_or(outside) } else { Err(outside) }
        };
        let rank = resolve(self.context_rank)?;
        self.event_of(group, rank, resolve)
    }

    /// What the record means when its context's members are unnamed: something only if it is a
    /// collective, and its client knows its own rank.
    ///
    /// # Errors
    /// When it is none such, a rank is not within the context, or the duration is none.
    pub fn event_of_stranger(&self, group: GroupId) -> Result<CollectiveEvent, RecordError> {
        let rank = self.global_rank.ok_or(RecordError::UnknownGroup)?;
        if self.context_rank >= self.context_size {
            let (rank, size) = (self.context_rank, self.context_size);
            return Err(RecordError::RankOutside { rank, size });
        }
        self.event_of(group, rank, |_| Err(RecordError::UnknownGroup))
    }

    fn event_of(
        &self,
        group: GroupId,
        rank: Rank,
        resolve: impl Fn(u32) -> Result<Rank, RecordError>,
    ) -> Result<CollectiveEvent, RecordError> {
        Ok(match self.operation {
            OperationType::Transfer { direction, remote_rank, bytes } => {
                let peer = resolve(remote_rank)?;
                let bucket = SizeBucket::of(bytes);
                let key = EdgeKey { group, rank, peer, direction, bucket };
                match self.stage {
                    Stage::Began => CollectiveEvent::TransferBegan(key),
                    ended => CollectiveEvent::TransferEnded(key, ended.duration_ns()?),
                }
            }
            OperationType::Collective { collective, size } => {
                let key = WaitKey { group, rank, collective, bucket: SizeBucket::of(size) };
                match self.stage {
                    Stage::Began => CollectiveEvent::CollectiveBegan(key),
                    ended => CollectiveEvent::CollectiveEnded(key, ended.duration_ns()?),
                }
            }
        })
    }
}

impl Stage {
    /// How long the operation took, where that is known.
    fn duration_ns(self) -> Result<Option<u64>, RecordError> {
        let Self::Ended { start_us, end_us } = self else { return Ok(None) };
        let none = RecordError::Duration { start_us, end_us };
        let duration_us = end_us.checked_sub(start_us).ok_or(none)?;
        let duration_us = u64::try_from(duration_us).map_err(|_| none)?;
        if duration_us > MAX_DURATION_US {
            return Err(none);
        }
        Ok(Some(duration_us * 1000))
    }
}

impl CollectiveEvent {
    /// The rank that tells it.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        match self {
            Self::TransferBegan(key) | Self::TransferEnded(key, _) => key.rank,
            Self::CollectiveBegan(key) | Self::CollectiveEnded(key, _) => key.rank,
        }
    }
}

/// Who is in a context.
pub trait Members {
    /// The rank in the whole job of the context's rank `index`.
    fn rank(&self, index: u32) -> Option<Rank>;
}

/// A context of all ranks: each has its own number.
#[derive(Debug, Clone, Copy)]
pub struct Everybody {
    /// How many ranks the job has.
    pub world_size: u32,
}

impl Members for Everybody {
    fn rank(&self, index: u32) -> Option<Rank> {
        (index < self.world_size).then_some(Rank(index))
    }
}

impl Members for Vec<Rank> {
    fn rank(&self, index: u32) -> Option<Rank> {
        self.get(usize::try_from(index).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(remote_rank: u32, start_us: i64, end_us: i64) -> CollectiveRecord {
        CollectiveRecord {
            operation: OperationType::Transfer {
                direction: Direction::Send,
                remote_rank,
                bytes: 5,
            },
            group: None,
            context_rank: 1,
            global_rank: None,
            context_size: 3,
            stage: Stage::Ended { start_us, end_us },
            sequence: None,
            step: None,
            waited: Waited::default(),
        }
    }

    #[test]
    fn ranks_of_a_context_become_ranks_of_the_job() {
        let members = vec![Rank(10), Rank(20), Rank(30)];
        let event = transfer(2, 1_000, 1_250).event(GroupId::new(7), &members);
        let key = EdgeKey {
            group: GroupId::new(7),
            rank: Rank(20),
            peer: Rank(30),
            direction: Direction::Send,
            bucket: SizeBucket::of(5),
        };
        assert_eq!(event, Ok(CollectiveEvent::TransferEnded(key, Some(250_000))));
    }

    #[test]
    fn a_collective_of_strangers_needs_only_its_own_rank() {
        let collective = Collective::Barrier;
        let mut record = transfer(2, 0, 3);
        record.operation = OperationType::Collective { collective, size: 0 };
        let group = GroupId::new(7);
        assert_eq!(record.event_of_stranger(group), Err(RecordError::UnknownGroup));
        record.global_rank = Some(Rank(9));
        let key = WaitKey { group, rank: Rank(9), collective, bucket: SizeBucket::of(0) };
        assert_eq!(
            record.event_of_stranger(group),
            Ok(CollectiveEvent::CollectiveEnded(key, Some(3_000)))
        );
        record.operation = transfer(2, 0, 3).operation;
        assert_eq!(record.event_of_stranger(group), Err(RecordError::UnknownGroup));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let everybody = Everybody { world_size: 2 };
        let cases = [
            (transfer(3, 0, 1), RecordError::RankOutside { rank: 3, size: 3 }),
            (transfer(2, 0, 1), RecordError::RankOutside { rank: 2, size: 3 }),
            (transfer(0, 5, 4), RecordError::Duration { start_us: 5, end_us: 4 }),
            (
                transfer(0, i64::MIN, i64::MAX),
                RecordError::Duration { start_us: i64::MIN, end_us: i64::MAX },
            ),
        ];
        for (record, expected) in cases {
            assert_eq!(record.event(GroupId::WORLD, &everybody), Err(expected), "{record:?}");
        }
    }
}
