//! NCCL's communicators, as the program made them: who is in them and what they are called.
//!
//! They are looked up by the reporter, which has time for a lock. On NCCL's threads only whether a
//! communicator is still there is asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::pool::PoolIndex;

/// Communicators that are known at a time. One beyond is not followed, and counted.
pub(crate) const MAX_COMMUNICATORS: u16 = 1024;
/// The longest name of a communicator that is kept, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 96;

/// A communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Communicator {
    /// The name of its process group; `None` if it is that of all ranks, in their order.
    pub(crate) group: Option<String>,
    /// This process's rank in it.
    pub(crate) rank: u32,
    /// How many ranks it has.
    pub(crate) size: u32,
}

/// The communicators.
#[derive(Debug)]
pub(crate) struct Communicators {
    /// The generation that lives at each number; 0 for none.
    living: Box<[AtomicU32]>,
    /// How many transfers and collectives have begun in the one at each number.
    begun: Box<[[AtomicU64; 2]]>,
    count: AtomicUsize,
    known: Mutex<KnownCommunicator>,
}

#[derive(Debug)]
struct KnownCommunicator {
    /// What was last at each number; kept after its end for its pending reports.
    at: Vec<Option<(u32, Communicator)>>,
    /// Free numbers, the one that was freed longest ago first.
    free: VecDeque<u16>,
    generation: u32,
}

impl Communicators {
    /// None yet; generations begin at `first_generation`.
    pub(crate) fn new(first_generation: u32) -> Self {
        Self {
            living: (0..MAX_COMMUNICATORS).map(|_| AtomicU32::new(0)).collect(),
            begun: (0..MAX_COMMUNICATORS).map(|_| Default::default()).collect(),
            count: AtomicUsize::new(0),
            known: Mutex::new(KnownCommunicator {
                at: vec![None; usize::from(MAX_COMMUNICATORS)],
                free: (0..MAX_COMMUNICATORS).collect(),
                generation: first_generation,
            }),
        }
    }

    /// Takes in a communicator; `None` when there are too many.
    pub(crate) fn add(&self, communicator: Communicator) -> Option<PoolIndex> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = known.free.pop_front()?;
        // 0 stands for nothing living.
        known.generation = known.generation.wrapping_add(1).max(1);
        let generation = known.generation;
        known.at[usize::from(slot)] = Some((generation, communicator));
        self.begun[usize::from(slot)].iter().for_each(|begun| begun.store(0, Ordering::Relaxed));
        self.living[usize::from(slot)].store(generation, Ordering::Release);
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(PoolIndex { slot, generation })
    }

    /// The program is done with it. What was reported of it before is still sent.
    pub(crate) fn remove(&self, place: PoolIndex) {
        let (gone, relaxed) = (0, Ordering::Relaxed);
        let Some(living) = self.living.get(usize::from(place.slot)) else { return };
        if living.compare_exchange(place.generation, gone, Ordering::AcqRel, relaxed).is_ok() {
            self.count.fetch_sub(1, Ordering::Relaxed);
            self.known.lock().unwrap_or_else(PoisonError::into_inner).free.push_back(place.slot);
        }
    }

    /// The number of the next collective or transfer in it, from 1 on; `None` if it is not there.
    pub(crate) fn number(&self, place: PoolIndex, is_collective: bool) -> Option<u64> {
        let begun = self.begun.get(usize::from(place.slot))?;
        self.lives(place)
            .then(|| begun[usize::from(is_collective)].fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Whether it is there.
    fn lives(&self, place: PoolIndex) -> bool {
        let living = self.living.get(usize::from(place.slot));
        living.is_some_and(|living| living.load(Ordering::Acquire) == place.generation)
    }

    /// Whether there is any.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// What is known of it, also after its end until another has its number.
    pub(crate) fn find(&self, place: PoolIndex) -> Option<Communicator> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, communicator) = known.at.get(usize::from(place.slot))?.as_ref()?;
        (*generation == place.generation).then(|| communicator.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn communicator(rank: u32) -> Communicator {
        Communicator { group: None, rank, size: 8 }
    }

    #[test]
    fn a_number_is_used_again_late_and_never_for_the_same_place() {
        let all = Communicators::new(7);
        let first = all.add(communicator(1)).unwrap();
        let next = |is_collective| all.number(first, is_collective);
        assert_eq!([next(true), next(false), next(true)], [Some(1), Some(1), Some(2)]);
        all.remove(first);
        all.remove(first);
        assert_eq!((all.number(first, true), all.any()), (None, false));
        assert_eq!(all.find(first), Some(communicator(1)));
        let others: Vec<_> =
            (0..MAX_COMMUNICATORS).map(|_| all.add(communicator(2)).unwrap()).collect();
        assert_eq!(others.last().unwrap().slot, first.slot);
        assert_eq!((all.find(first), all.number(first, false)), (None, None));
        let same_slot = others.last().unwrap();
        assert_eq!(all.number(*same_slot, true), Some(1));
        assert_eq!(all.number(PoolIndex { slot: u16::MAX, generation: 7 }, true), None);
        assert_eq!(all.add(communicator(3)), None);
    }
}
