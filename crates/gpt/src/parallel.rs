//! One training in several processes: each rank has the whole model and a share of each batch, and
//! all add their gradients up before anybody changes a weight. So all have the same weights, bit for
//! bit, and the bits depend on nothing but seed, sizes and how many ranks there are.
//!
//! The way: ranks find each other at rank 0 ([`Ring::join`]), which also tells who has the most
//! recent checkpoint; that one passes it round. From there on each talks to two neighbours only, and
//! sums go round the ring in an order that follows from the ranks alone.
//!
//! Nothing is encrypted and peers are not authenticated, as with other collective libraries: the ranks'
//! network must be trusted. What comes from it is still checked, and bounded.

mod door;
mod link;
mod rendezvous;
mod ring;
mod words;

use std::num::NonZeroU16;
use std::time::{Duration, Instant};

pub use link::LinkError;
pub use rendezvous::{JoinError, Joined};
pub use ring::{Ring, RingError};
pub use words::RankRefusal;

/// The most ranks of one training.
pub const MAX_WORLD_SIZE: u32 = 4096;
/// How long ranks wait for each other at the start: some nodes start late.
pub const JOIN_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a transfer may stand still before its rank gives up. Who looks after the training acts
/// long before.
pub const STILL_TIMEOUT: Duration = Duration::from_secs(600);

/// A rank's place in its training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelRank {
    rank: u32,
    world_size: u32,
    epoch: u64,
}

/// Where rank 0 is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Master {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: NonZeroU16,
}

/// No place in a training.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// There are no ranks, or too many.
    #[error("a training of {world_size} ranks is not possible; it may have 1 to {MAX_WORLD_SIZE}")]
    WorldSize {
        /// How many.
        world_size: u32,
    },
    /// The rank is not one of them.
    #[error("there is no rank {rank} in a training of {world_size}; they are counted from 0")]
    Rank {
        /// The rank.
        rank: u32,
        /// How many there are.
        world_size: u32,
    },
}

/// What a ring does, as reported to an observer of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Bytes to the next rank.
    Send {
        /// That rank.
        to: u32,
        /// How many.
        bytes: usize,
    },
    /// Bytes from the rank before.
    Receive {
        /// That rank.
        from: u32,
        /// How many.
        bytes: usize,
    },
    /// A sum over all ranks.
    AllReduce {
        /// How many numbers.
        count: usize,
    },
}

/// The beginning or the end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferRecord {
    /// What.
    pub transfer: Transfer,
    /// When it began.
    pub began: Instant,
    /// When it ended; none at its beginning.
    pub ended: Option<Instant>,
}

/// The observer of each beginning and each end. It must return soon: the ring waits for it.
pub type Observer = Box<dyn FnMut(&TransferRecord) + Send>;

// === impl ParallelRank ===

impl ParallelRank {
    /// Rank `rank` of `world_size`. `epoch` is a number that distinguishes one life of the training from the
    /// next; ranks of different ones do not join.
    ///
    /// # Errors
    /// When there is no such rank.
    pub fn new(rank: u32, world_size: u32, epoch: u64) -> Result<Self, MemberError> {
        if !(1..=MAX_WORLD_SIZE).contains(&world_size) {
            return Err(MemberError::WorldSize { world_size });
        }
        if rank >= world_size {
            return Err(MemberError::Rank { rank, world_size });
        }
        Ok(Self { rank, world_size, epoch })
    }

    /// The only rank of a training.
    #[must_use]
    pub const fn alone() -> Self {
        Self { rank: 0, world_size: 1, epoch: 0 }
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn rank(self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub const fn world_size(self) -> u32 {
        self.world_size
    }

    /// The training's life.
    #[must_use]
    pub const fn epoch(self) -> u64 {
        self.epoch
    }

    /// Whom it sends to.
    #[must_use]
    pub const fn next(self) -> u32 {
        (self.rank + 1) % self.world_size
    }

    /// Whom it receives from.
    #[must_use]
    pub const fn previous(self) -> u32 {
        (self.rank + self.world_size - 1) % self.world_size
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WORLD_SIZE, MemberError, ParallelRank};

    #[test]
    fn places_that_are_none_are_refused() {
        let member = ParallelRank::new(3, 4, 1).unwrap();
        assert_eq!((member.previous(), member.next()), (2, 0));
        assert_eq!(ParallelRank::new(0, 0, 1), Err(MemberError::WorldSize { world_size: 0 }));
        let world_size = MAX_WORLD_SIZE + 1;
        assert_eq!(ParallelRank::new(0, world_size, 1), Err(MemberError::WorldSize { world_size }));
        assert_eq!(ParallelRank::new(4, 4, 1), Err(MemberError::Rank { rank: 4, world_size: 4 }));
    }
}
