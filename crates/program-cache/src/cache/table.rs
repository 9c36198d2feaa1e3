//! The programs that are there and those that are being compiled.
//!
//! Finding one is the business of the index. Everything else (adding, dropping, joining a
//! compilation) is done under one lock and is rare. No program is compiled, dropped or waited for
//! while that lock is held.

use std::collections::VecDeque;
use std::sync::Arc;

use super::counters::ThreadNumber;
use super::entry::{Entry, InUseElsewhere, WantedKey};
use super::flight::{Flight, Leading};
use super::index::Index;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};
use crate::waiting::CannotWait;

/// The programs of a cache: `P` a program, `S` what is kept beside it, `F` why none could be made.
pub(crate) struct ProgramTable<P, S, F> {
    /// Who looks here only finds; what is in it changes under the lock.
    pub(crate) index: Index<P, S>,
    cold: Mutex<Cold<P, S, F>>,
    limit_bytes: u64,
    /// Copies of what is behind the lock, so that reading them never waits.
    entry_count: AtomicUsize,
    weight_bytes: AtomicU64,
    evictions: AtomicU64,
}

type Taking<P, S, F> = Flight<Arc<Entry<P, S>>, F>;
pub(crate) type Lead<P, S, F> = Leading<Arc<Entry<P, S>>, F>;

/// What is behind the lock.
struct Cold<P, S, F> {
    /// Every entry of the table, in the order in which the eviction's hand passes.
    ring: VecDeque<Arc<Entry<P, S>>>,
    weight_bytes: u64,
    /// Entries that have left while in use. Their last user drops the program, except if it ended
    /// at the very moment when the entry left: then it is dropped from here, at the next change.
    leaving: Vec<Arc<Entry<P, S>>>,
    flights: Vec<Arc<Taking<P, S, F>>>,
    /// How often the cache was cleared.
    generation: u64,
}

/// What a thread that found no program does next.
pub(crate) enum Joined<P, S, F: Clone> {
    /// The program came in the meantime.
    Here(Arc<Entry<P, S>>),
    /// Compile it.
    Lead(Lead<P, S, F>),
    /// Another thread compiles it.
    Wait(Arc<Taking<P, S, F>>),
}

// === impl ProgramTable ===

impl<P, S, F: Clone> ProgramTable<P, S, F> {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let cold = Cold {
            ring: VecDeque::new(),
            weight_bytes: 0,
            leaving: Vec::new(),
            flights: Vec::new(),
            generation: 0,
        };
        Self {
            index: Index::new(),
            cold: Mutex::new(cold),
            limit_bytes,
            entry_count: AtomicUsize::new(0),
            weight_bytes: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// Joins the compilation of a program that was not found, or starts it.
    ///
    /// # Errors
    /// When this thread compiles it already, further up on its stack.
    pub(crate) fn join(
        &self,
        wanted: &WantedKey<'_>,
        thread: ThreadNumber,
    ) -> Result<Joined<P, S, F>, CannotWait> {
        let mut cold = self.cold();
        // Entries are added under the lock, so what is not there now is only in flight.
        if let Some(entry) = self.index.get(wanted) {
            return Ok(Joined::Here(entry));
        }
        cold.flights.retain(|flight| !flight.is_lost());
        if let Some(flight) = cold.flights.iter().find(|flight| wanted.is(flight.key())) {
            return match flight.leader() == thread {
                true => Err(CannotWait::Reentered),
                false => Ok(Joined::Wait(Arc::clone(flight))),
            };
        }
        let flight = Arc::new(Flight::new(wanted.to_stored(), thread, cold.generation));
        cold.flights.push(Arc::clone(&flight));
        Ok(Joined::Lead(Leading { flight }))
    }

    /// Adds what was compiled and ends the flight; gives the programs that made room, to be dropped.
    /// The caller holds the entry's program, so that it is not dropped before its first use. An
    /// entry that is too heavy for the cache, or whose flight began before the cache was cleared,
    /// is for this one use only.
    #[must_use = "programs are dropped where no lock is held"]
    pub(crate) fn land(&self, leading: Lead<P, S, F>, entry: &Arc<Entry<P, S>>) -> Vec<P> {
        let mut cold = self.cold();
        cold.end(&leading.flight);
        let stays =
            entry.weight_bytes <= self.limit_bytes && leading.flight.generation == cold.generation;
        let mut left = cold.sweep();
        if stays {
            let most_bytes = self.limit_bytes - entry.weight_bytes;
            self.make_room(&mut cold, most_bytes, &mut left);
            cold.weight_bytes += entry.weight_bytes;
            cold.ring.push_back(Arc::clone(entry));
            self.index.insert(entry);
        } else {
            entry.retire();
        }
        self.publish_size(&cold);
        drop(cold);
        leading.land(Ok(Arc::clone(entry)));
        left
    }

    /// Drops programs that are unused until the cache is lighter by `bytes`, or all of them; gives
    /// them, to be dropped.
    #[must_use = "programs are dropped where no lock is held"]
    pub(crate) fn evict(&self, bytes: u64) -> Vec<P> {
        let mut cold = self.cold();
        let mut left = cold.sweep();
        let most_bytes = cold.weight_bytes.saturating_sub(bytes);
        self.make_room(&mut cold, most_bytes, &mut left);
        self.publish_size(&cold);
        left
    }

    /// Ends the flight of a compilation that failed. Nothing of it is kept.
    pub(crate) fn fail(&self, leading: Lead<P, S, F>, failure: F) {
        self.cold().end(&leading.flight);
        leading.land(Err(failure));
    }

    /// Removes an entry whose program was found to be spoilt.
    pub(crate) fn discard(&self, entry: &Arc<Entry<P, S>>) {
        let mut cold = self.cold();
        if let Some(place) = cold.ring.iter().position(|one| Arc::ptr_eq(one, entry)) {
            cold.ring.remove(place);
            cold.weight_bytes -= entry.weight_bytes;
            self.index.remove(entry);
            self.publish_size(&cold);
        }
    }

    /// Removes everything. Programs in use are dropped by their users, and what is being compiled
    /// is used once and not kept.
    #[must_use = "programs are dropped where no lock is held"]
    pub(crate) fn clear(&self) -> Vec<P> {
        let mut cold = self.cold();
        cold.generation += 1;
        cold.weight_bytes = 0;
        self.index.clear();
        let all = std::mem::take(&mut cold.ring);
        cold.leaving.extend(all);
        let left = cold.sweep();
        self.publish_size(&cold);
        left
    }

    /// How many programs there are, and what they weigh. Takes no lock.
    pub(crate) fn size(&self) -> (usize, u64) {
        (self.entry_count.load(Ordering::Relaxed), self.weight_bytes.load(Ordering::Relaxed))
    }

    /// How many programs had to make room so far. Takes no lock.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Copies what [`ProgramTable::size`] reports, after each change.
    fn publish_size(&self, cold: &Cold<P, S, F>) {
        self.entry_count.store(cold.ring.len(), Ordering::Relaxed);
        self.weight_bytes.store(cold.weight_bytes, Ordering::Relaxed);
    }

    /// Every entry, for looking at.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry<P, S>>> {
        self.cold().ring.iter().cloned().collect()
    }

    /// Brings the weight down to `most_bytes`: who was used since the hand last passed is spared
    /// once, who is in use is spared always. Two turns are enough for both; what then remains is in
    /// use, and the cache is over its limit until the next time.
    fn make_room(&self, cold: &mut Cold<P, S, F>, most_bytes: u64, left: &mut Vec<P>) {
        for _ in 0..2 * cold.ring.len() {
            if cold.weight_bytes <= most_bytes {
                return;
            }
            let Some(entry) = cold.ring.pop_front() else { return };
            if entry.was_used() || entry.is_in_use() {
                cold.ring.push_back(entry);
                continue;
            }
            cold.weight_bytes -= entry.weight_bytes;
            self.evictions.fetch_add(1, Ordering::Relaxed);
            self.index.remove(&entry);
            cold.leaving.push(entry);
            left.append(&mut cold.sweep());
        }
    }

    fn cold(&self) -> MutexGuard<'_, Cold<P, S, F>> {
        // Nothing in this file panics between two changes that belong together.
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Cold ===

impl<P, S, F: Clone> Cold<P, S, F> {
    fn end(&mut self, flight: &Arc<Taking<P, S, F>>) {
        self.flights.retain(|one| !Arc::ptr_eq(one, flight));
    }

    /// Takes the programs out of entries that have left, unless still in use.
    fn sweep(&mut self) -> Vec<P> {
        let mut left = Vec::new();
        self.leaving.retain(|entry| {
            entry.retire();
            match entry.take() {
                Ok(program) => {
                    left.extend(program);
                    false
                }
                Err(InUseElsewhere) => true,
            }
        });
        left
    }
}
