//! A fixed number of places for events that are under way, shared without locks.
//!
//! A place is free, then filled by the thread that begins an event, open until the event ends, and
//! stopped until the reporter has read it and frees it. No thread waits for another: when no slot is
//! found in a few tries, the event is dropped and counted.
//!
//! Each event has its place's generation, and an old one finds nothing. A thread that has just found
//! its event could only then meet the next one in its place when it was held up for as long as the
//! reporter keeps an event beyond its end; a value of one event would be wrong.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::state_value::FormattedNumber;

/// Places that are tried before an event is dropped.
const TRIES: usize = 8;

const FREE: u64 = 0;
const FILLING: u64 = 1;
const OPEN: u64 = 2;
const STOPPED: u64 = 3;

/// Where an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolIndex {
    pub(crate) slot: u16,
    pub(crate) generation: u32,
}

impl PoolIndex {
    /// As one word, which is never 0.
    fn word(self) -> u64 {
        (u64::from(self.generation) << 32) | (u64::from(self.slot) << 1) | 1
    }

    fn from_word(word: u64) -> Option<Self> {
        let slot = u16::try_from((word >> 1) & 0xffff).ok()?;
        let generation = u32::try_from(word >> 32).ok()?;
        (word != 0).then_some(Self { slot, generation })
    }

    fn state(self, phase: u64) -> u64 {
        (u64::from(self.generation) << 32) | phase
    }
}

/// On cache lines of its own, so that threads with different events do not disturb each other.
#[derive(Debug)]
#[repr(align(64))]
struct PoolSlot<T> {
    /// The generation, and below it the phase.
    state: AtomicU64,
    event: T,
}

/// The places.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    slots: Box<[PoolSlot<T>]>,
    next: AtomicUsize,
    /// The places of events in the order in which they were begun, for the reporter. As many as there
    /// are slots suffice: a place is in it once at most, since only the reporter frees it.
    begun: Box<[AtomicU64]>,
    begun_in_all: AtomicUsize,
    dropped: FormattedNumber,
}

/// What the reporter finds in a place.
#[derive(Debug)]
pub(crate) struct SlotState<'a, T> {
    pub(crate) event: &'a T,
    pub(crate) stopped: bool,
}

impl<T: Default> Pool<T> {
    /// A pool of `slots` places, a power of two, whose generations begin at `first_generation`.
    pub(crate) fn new(slots: u16, first_generation: u32) -> Self {
        assert!(slots.is_power_of_two(), "places are found by a mask");
        let slot = |_| PoolSlot {
            state: AtomicU64::new((u64::from(first_generation) << 32) | FREE),
            event: T::default(),
        };
        Self {
            slots: (0..slots).map(slot).collect(),
            next: AtomicUsize::new(0),
            begun: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            begun_in_all: AtomicUsize::new(0),
            dropped: FormattedNumber::default(),
        }
    }

    /// Begins an event that `fill` describes.
    pub(crate) fn begin(&self, fill: impl FnOnce(&T)) -> Option<PoolIndex> {
        for _ in 0..TRIES {
            let index = self.next.fetch_add(1, Ordering::Relaxed) & (self.slots.len() - 1);
            let slot = &self.slots[index];
            // SYNC: freed. What the reporter read of the last event lies before this.
            let state = slot.state.load(Ordering::Acquire);
            if state & 0xffff_ffff != FREE {
                continue;
            }
            let generation = u32::try_from(state >> 32).expect("half a word").wrapping_add(1);
            let place =
                PoolIndex { slot: u16::try_from(index).expect("the slots' number"), generation };
            let (now, relaxed) = (place.state(FILLING), Ordering::Relaxed);
            if slot.state.compare_exchange(state, now, Ordering::Acquire, relaxed).is_err() {
                continue;
            }
            fill(&slot.event);
            // SYNC: filled.
            slot.state.store(place.state(OPEN), Ordering::Release);
            let turn = self.begun_in_all.fetch_add(1, Ordering::Relaxed) & (self.begun.len() - 1);
            // SYNC: begun.
            self.begun[turn].store(place.word(), Ordering::Release);
            return Some(place);
        }
        self.dropped.add(1);
        None
    }

    /// The event, unless it has been freed.
    pub(crate) fn find(&self, place: PoolIndex) -> Option<&T> {
        self.see(place).map(|seen| seen.event)
    }

    /// The event and whether it was stopped, unless it has been freed.
    pub(crate) fn see(&self, place: PoolIndex) -> Option<SlotState<'_, T>> {
        let slot = self.slots.get(usize::from(place.slot))?;
        // SYNC: filled, stopped.
        let state = slot.state.load(Ordering::Acquire);
        let stopped = state == place.state(STOPPED);
        (stopped || state == place.state(OPEN)).then_some(SlotState { event: &slot.event, stopped })
    }

    /// Says that the event has ended; what this thread wrote of it before is seen with that. Says
    /// whether it was open.
    pub(crate) fn stop(&self, place: PoolIndex) -> bool {
        let Some(slot) = self.slots.get(usize::from(place.slot)) else { return false };
        let (from, to) = (place.state(OPEN), place.state(STOPPED));
        // SYNC: stopped.
        slot.state.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Frees the place. Only the reporter does.
    pub(crate) fn free(&self, place: PoolIndex) {
        if let Some(slot) = self.slots.get(usize::from(place.slot)) {
            // SYNC: freed.
            slot.state.store(place.state(FREE), Ordering::Release);
        }
    }

    /// The next event that was begun; `turn` is how many the reporter has taken. Only it does.
    pub(crate) fn next_begun(&self, turn: &mut usize) -> Option<PoolIndex> {
        // SYNC: begun.
        let word = self.begun[*turn & (self.begun.len() - 1)].swap(0, Ordering::Acquire);
        let place = PoolIndex::from_word(word)?;
        *turn = turn.wrapping_add(1);
        Some(place)
    }

    /// How many places there are.
    pub(crate) const fn places(&self) -> usize {
        self.slots.len()
    }

    /// Events for which there was no place.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_goes_through_its_phases_and_old_places_find_nothing() {
        let pool = Pool::<FormattedNumber>::new(2, u32::MAX);
        let place = pool.begin(|event| event.set(7)).unwrap();
        assert_eq!(place.generation, 0);
        assert!(!pool.see(place).unwrap().stopped);
        assert!(pool.stop(place) && !pool.stop(place));
        let seen = pool.see(place).unwrap();
        assert!(seen.stopped);
        assert_eq!(seen.event.get(), 7);
        let mut turn = 0;
        assert_eq!(pool.next_begun(&mut turn), Some(place));
        assert_eq!(pool.next_begun(&mut turn), None);
        pool.free(place);
        assert!(pool.find(place).is_none());
        assert!(!pool.stop(place));
        assert!(pool.find(PoolIndex { slot: 9, ..place }).is_none());
        assert_eq!(pool.dropped(), 0);
    }

    #[test]
    fn a_full_pool_drops_and_counts() {
        let pool = Pool::<FormattedNumber>::new(4, 0);
        let begun: Vec<_> = (0..6).filter_map(|_| pool.begin(|_| ())).collect();
        assert_eq!((begun.len(), pool.dropped()), (4, 2));
        pool.free(begun[1]);
        let again = pool.begin(|_| ()).unwrap();
        assert_eq!((again.slot, again.generation), (begun[1].slot, 2));
    }

    #[test]
    fn threads_and_a_reporter_lose_and_double_nothing() {
        const EACH: u64 = 20_000;
        let pool = Pool::<FormattedNumber>::new(64, 0);
        let begun = FormattedNumber::default();
        let (mut sum, mut taken, mut turn) = (0, 0, 0);
        std::thread::scope(|scope| {
            let threads = [1_u64, 1_000_000].map(|value| {
                let (pool, begun) = (&pool, &begun);
                scope.spawn(move || {
                    for _ in 0..EACH {
                        if let Some(place) = pool.begin(|event| event.set(value)) {
                            begun.add(value);
                            pool.stop(place);
                        }
                    }
                })
            });
            let mut take = || {
                while let Some(place) = pool.next_begun(&mut turn) {
                    // Its thread stops it in a moment.
                    while !pool.see(place).unwrap().stopped {
                        std::thread::yield_now();
                    }
                    sum += pool.find(place).unwrap().get();
                    taken += 1;
                    pool.free(place);
                }
            };
            while threads.iter().any(|thread| !thread.is_finished()) {
                take();
            }
            take();
        });
        assert_eq!(sum, begun.get());
        assert_eq!(taken + pool.dropped(), 2 * EACH);
    }
}
