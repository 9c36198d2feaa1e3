//! The programs that are there and those that are being compiled.
//!
//! Finding one takes no lock and writes to no memory that threads share. Everything else (adding,
//! dropping, joining a compilation) is done under one lock and is rare. No program is compiled,
//! dropped or waited for while that lock is held.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use papaya::{Equivalent, Guard, HashMap, LocalGuard};

use super::counters::ThreadNumber;
use super::entry::{Entry, InUseElsewhere, Reentered, StoredKey, WantedKey};
use super::flight::{Flight, Leading};

/// The programs of a cache: `P` a program, `S` what is kept beside it, `F` why none could be made.
pub(crate) struct Table<P, S, F> {
    by_key: HashMap<StoredKey, Arc<Entry<P, S>>, BuildHasherDefault<KeyHasher>>,
    cold: Mutex<Cold<P, S, F>>,
    limit_bytes: u64,
    /// Copies of what is behind the lock, so that reading them waits for nobody.
    entry_count: AtomicUsize,
    weight_bytes: AtomicU64,
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

/// Programs that left the cache, to be dropped once its lock is released.
pub(crate) struct Left<P> {
    programs: Vec<P>,
    /// How many of them had to make room.
    pub(crate) evictions: u64,
}

/// Passes a key's own hash on.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys write one `u64`; anything else still has to give equal hashes for equal input.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Equivalent<StoredKey> for WantedKey<'_> {
    #[inline]
    fn equivalent(&self, stored: &StoredKey) -> bool {
        self.is(stored)
    }
}

// === impl Table ===

impl<P, S, F: Clone> Table<P, S, F> {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let cold = Cold {
            ring: VecDeque::new(),
            weight_bytes: 0,
            leaving: Vec::new(),
            flights: Vec::new(),
            generation: 0,
        };
        Self {
            by_key: HashMap::default(),
            cold: Mutex::new(cold),
            limit_bytes,
            entry_count: AtomicUsize::new(0),
            weight_bytes: AtomicU64::new(0),
        }
    }

    /// Keeps what [`Table::find`] gives from being freed.
    #[inline]
    pub(crate) fn pin(&self) -> LocalGuard<'_> {
        self.by_key.guard()
    }

    /// The entry with exactly this key.
    #[inline]
    pub(crate) fn find<'g>(
        &self,
        wanted: &WantedKey<'_>,
        pin: &'g impl Guard,
    ) -> Option<&'g Arc<Entry<P, S>>> {
        self.by_key.get(wanted, pin)
    }

    /// Joins the compilation of a program that was not found, or starts it.
    ///
    /// # Errors
    /// When this thread compiles it already, further up on its stack.
    pub(crate) fn join(
        &self,
        wanted: &WantedKey<'_>,
        thread: ThreadNumber,
    ) -> Result<Joined<P, S, F>, Reentered> {
        let mut cold = self.cold();
        // Entries are added under the lock, so what is not there now is nobody's but in flight.
        if let Some(entry) = self.by_key.pin().get(wanted) {
            return Ok(Joined::Here(Arc::clone(entry)));
        }
        cold.flights.retain(|flight| !flight.is_lost());
        if let Some(flight) = cold.flights.iter().find(|flight| wanted.is(flight.key())) {
            return match flight.leader() == thread {
                true => Err(Reentered),
                false => Ok(Joined::Wait(Arc::clone(flight))),
            };
        }
        let flight = Arc::new(Flight::new(wanted.to_stored(), thread, cold.generation));
        cold.flights.push(Arc::clone(&flight));
        Ok(Joined::Lead(Leading { flight }))
    }

    /// Adds what was compiled and ends the flight. The caller holds the entry's program, so that
    /// nobody drops it before its first use. An entry that is too heavy for the cache, or whose
    /// flight began before the cache was cleared, is for this one use only.
    pub(crate) fn land(&self, leading: Lead<P, S, F>, entry: &Arc<Entry<P, S>>) -> Left<P> {
        let mut cold = self.cold();
        cold.end(&leading.flight);
        let stays =
            entry.weight_bytes <= self.limit_bytes && leading.flight.generation == cold.generation;
        let mut left = Left { programs: Vec::new(), evictions: 0 };
        cold.sweep(&mut left);
        if stays {
            self.make_room(&mut cold, entry.weight_bytes, &mut left);
            cold.weight_bytes += entry.weight_bytes;
            cold.ring.push_back(Arc::clone(entry));
            self.by_key.pin().insert(entry.key.clone(), Arc::clone(entry));
        } else {
            entry.retire();
        }
        self.publish_size(&cold);
        drop(cold);
        leading.land(Ok(Arc::clone(entry)));
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
            self.by_key.pin().remove(&entry.key.wanted());
            self.publish_size(&cold);
        }
    }

    /// Removes everything. Programs in use are dropped by their users, and what is being compiled
    /// is used once and not kept.
    pub(crate) fn clear(&self) -> Left<P> {
        let mut cold = self.cold();
        let mut left = Left { programs: Vec::new(), evictions: 0 };
        cold.generation += 1;
        cold.weight_bytes = 0;
        self.by_key.pin().clear();
        let all = std::mem::take(&mut cold.ring);
        cold.leaving.extend(all);
        cold.sweep(&mut left);
        self.publish_size(&cold);
        left
    }

    /// How many programs there are, and what they weigh. Takes no lock.
    pub(crate) fn size(&self) -> (usize, u64) {
        (self.entry_count.load(Ordering::Relaxed), self.weight_bytes.load(Ordering::Relaxed))
    }

    /// Copies what [`Table::size`] tells, after each change.
    fn publish_size(&self, cold: &Cold<P, S, F>) {
        self.entry_count.store(cold.ring.len(), Ordering::Relaxed);
        self.weight_bytes.store(cold.weight_bytes, Ordering::Relaxed);
    }

    /// Every entry, for looking at.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry<P, S>>> {
        self.cold().ring.iter().cloned().collect()
    }

    /// Makes room for `needed_bytes`: who was used since the hand last passed is spared once, who
    /// is in use is spared always. Two turns are enough for both; what then remains is in use, and
    /// the cache is over its limit until the next time.
    fn make_room(&self, cold: &mut Cold<P, S, F>, needed_bytes: u64, left: &mut Left<P>) {
        let most_bytes = self.limit_bytes.saturating_sub(needed_bytes);
        let pin = self.by_key.pin();
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
            left.evictions += 1;
            pin.remove(&entry.key.wanted());
            cold.leaving.push(entry);
            cold.sweep(left);
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

    /// Takes the programs out of entries that have left, unless somebody still uses them.
    fn sweep(&mut self, left: &mut Left<P>) {
        self.leaving.retain(|entry| {
            entry.retire();
            match entry.take() {
                Ok(program) => {
                    left.programs.extend(program);
                    false
                }
                Err(InUseElsewhere) => true,
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::{Entry, Joined, Table, ThreadNumber, WantedKey};

    fn wanted(hash: u64, bytes: &[u8]) -> WantedKey<'_> {
        WantedKey { hash, operation: None, bytes, collided: Cell::new(false) }
    }

    fn add(table: &Table<u32, (), ()>, key: &WantedKey<'_>, program: u32) {
        let Ok(Joined::Lead(leading)) = table.join(key, ThreadNumber::current()) else {
            panic!("nobody else compiles it");
        };
        let entry = Entry::new(leading.flight.key().clone(), program, (), 1);
        table.land(leading, &Arc::new(entry));
    }

    fn found(table: &Table<u32, (), ()>, key: &WantedKey<'_>) -> Option<u32> {
        let pin = table.pin();
        let entry = table.find(key, &pin)?;
        let mut in_use = entry.enter(ThreadNumber::current()).expect("nobody uses it")?;
        Some(*in_use.program())
    }

    #[test]
    fn keys_with_the_same_hash_are_told_apart_and_counted() {
        let table = Table::new(1000);
        let keys: [&[u8]; 4] = [b"one", b"two", b"three", b""];
        for (program, bytes) in (0..).zip(keys) {
            let key = wanted(7, bytes);
            assert_eq!(found(&table, &key), None);
            assert_eq!(key.collided.get(), program > 0);
            add(&table, &key, program);
        }
        for (program, bytes) in (0..).zip(keys) {
            assert_eq!(found(&table, &wanted(7, bytes)), Some(program));
        }
        assert_eq!(found(&table, &wanted(8, b"one")), None);
    }

    #[test]
    fn a_compilation_whose_thread_panicked_is_begun_again() {
        let table: Table<u32, (), ()> = Table::new(1000);
        let key = wanted(7, b"one");
        let leading = table.join(&key, ThreadNumber::current());
        assert!(matches!(leading, Ok(Joined::Lead(_))));
        assert!(table.join(&key, ThreadNumber::current()).is_err(), "it would wait for itself");
        drop(leading);
        add(&table, &key, 1);
        assert_eq!(found(&table, &key), Some(1));
    }
}
