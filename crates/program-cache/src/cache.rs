//! The cache of compiled programs.
//!
//! Any number of threads may use one cache. A program that is found is used by one thread at a
//! time: its arguments are written and it is handed to the device under its own lock, so the
//! `run` of a dispatch should enqueue and return. Programs that many threads miss at once are
//! compiled once. What a failed compilation gave goes to those who waited for it and kept for
//! no other.

mod counters;
mod dispatching;
mod entry;
mod error;
mod flight;
mod index;
mod missing;
mod mode;
mod table;

pub use counters::{CacheCounts, PHASES, Phase, TIMED_EACH, TIMED_FIRST};
pub use error::{CheckError, DispatchError};
pub use mode::{CacheMode, MODE_VARIABLE, ModeError};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::argument::Argument;
use crate::backend::Backend;
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::kernel::Text;
use crate::plan::PatchPlan;
use counters::{CacheEvent, Counters, PhaseTimer, ThreadNumber, nanoseconds};
use entry::{Entry, InUse, Made, Using, WantedKey};
use error::Failure;
use table::ProgramTable;

/// The weight that a cache may have if nothing else is said: 256 MiB.
pub const DEFAULT_LIMIT_BYTES: u64 = 256 << 20;
/// Compilations that are tried again at the most, when the device lacks memory.
const MAX_RETRIES: usize = 2;

/// How a cache works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Whether programs are cached, and whether hits are checked.
    pub mode: CacheMode,
    /// The most that programs, keys and plans may weigh together. What is in use is never
    /// dropped, so the cache may be above it while a great part of it is in use. A program is
    /// compiled before room is made for it.
    pub limit_bytes: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { mode: CacheMode::On, limit_bytes: DEFAULT_LIMIT_BYTES }
    }
}

/// Compiled programs of a back end.
pub struct ProgramCache<B: Backend> {
    backend: B,
    mode: CacheMode,
    enabled: AtomicBool,
    table: ProgramTable<B::Program, SideData, Failure<B::Error>>,
    counters: Counters,
}

/// A program in the hands of one dispatch.
type Found<'a, B> = InUse<'a, <B as Backend>::Program, SideData>;

/// What is kept beside a program.
struct SideData {
    /// What people call it: the operation's name, or the first kernel's.
    name: Text,
    /// The slots that a hit writes; none for a program that was described in full.
    plan: Option<PatchPlan>,
    /// What the program was made from, in checking mode.
    symbolic: Option<ProgramDescriptor<Argument>>,
}

// === impl ProgramCache ===

impl<B: Backend> ProgramCache<B> {
    /// An empty cache in front of `backend`.
    pub fn new(backend: B, options: CacheOptions) -> Self {
        Self {
            backend,
            mode: options.mode,
            enabled: AtomicBool::new(true),
            table: ProgramTable::new(options.limit_bytes),
            counters: Counters::default(),
        }
    }

    /// An empty cache that works as the environment says ([`CacheMode::from_environment`]).
    ///
    /// # Errors
    /// When the variable has a value that means nothing.
    pub fn from_environment(backend: B) -> Result<Self, ModeError> {
        let mode = CacheMode::from_environment()?;
        Ok(Self::new(backend, CacheOptions { mode, ..CacheOptions::default() }))
    }

    /// What compiles the programs.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// How the cache was made to work.
    pub fn mode(&self) -> CacheMode {
        self.mode
    }

    /// Caches again after [`ProgramCache::disable`]; does nothing in mode [`CacheMode::Off`].
    pub fn enable(&self) {
        self.enabled.store(true, Ordering::Relaxed);
    }

    /// Recompiles each program from now on. What the cache holds stays in it.
    pub fn disable(&self) {
        self.enabled.store(false, Ordering::Relaxed);
    }

    /// Whether programs are cached at present.
    pub fn is_enabled(&self) -> bool {
        self.mode != CacheMode::Off && self.enabled.load(Ordering::Relaxed)
    }

    /// Drops all programs. Those in use are dropped when their use ends; one whose use ends at this
    /// very moment may stay until the next miss or clear.
    pub fn clear(&self) {
        drop(self.table.clear());
    }

    /// How many programs the cache holds.
    pub fn entries(&self) -> usize {
        self.table.size().0
    }

    /// What people call each program that the cache holds, sorted.
    pub fn names(&self) -> Vec<Text> {
        let mut names: Vec<Text> =
            self.table.entries().iter().map(|entry| entry.side.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// What the cache did and holds. Takes no lock.
    pub fn counts(&self) -> CacheCounts {
        let (entries, weight_bytes) = self.table.size();
        let entries = u64::try_from(entries).unwrap_or(u64::MAX);
        let evictions = self.table.evictions();
        CacheCounts { entries, weight_bytes, evictions, ..self.counters.read() }
    }

    /// Finds or compiles the program with this key and uses it. `make` and `use_it` are called
    /// once at most.
    #[inline]
    fn obtain<R>(
        &self,
        wanted: &WantedKey<'_>,
        thread: ThreadNumber,
        watch: &mut PhaseTimer,
        make: impl FnOnce() -> Result<Made<B::Program, SideData>, Failure<B::Error>>,
        use_it: impl FnOnce(
            Using<'_, B::Program, SideData>,
            &mut PhaseTimer,
        ) -> Result<R, DispatchError<B::Error>>,
    ) -> Result<R, DispatchError<B::Error>> {
        let pin = self.table.index.pin();
        if let Some(entry) = self.table.index.find(wanted, &pin)
            && let Some(mut in_use) = entry.enter(thread, || self.backend.interrupt_check())?
            && self.is_current(entry, &mut in_use)
        {
            watch.mark(Phase::LookUp);
            self.counters.count(thread, CacheEvent::Hit);
            if wanted.collided.get() {
                self.counters.count(thread, CacheEvent::Collision);
            }
            let side = &entry.side;
            return use_it(Using { side, program: in_use.program(), is_fresh: false }, watch);
        }
        drop(pin);
        watch.mark(Phase::LookUp);
        self.counters.count(thread, CacheEvent::Miss);
        let make = || self.make_counted(thread, make);
        let check = self.backend.interrupt_check();
        let result = self.table.obtain(wanted, thread, check, make, |using| use_it(using, watch));
        if wanted.collided.get() {
            self.counters.count(thread, CacheEvent::Collision);
        }
        result
    }

    /// Whether a program that was found may be used. One whose files have changed leaves the cache.
    #[inline]
    fn is_current(
        &self,
        entry: &Arc<Entry<B::Program, SideData>>,
        found: &mut Found<'_, B>,
    ) -> bool {
        self.backend.is_current(found.program()) || self.leave_out(entry)
    }

    #[cold]
    fn leave_out(&self, entry: &Arc<Entry<B::Program, SideData>>) -> bool {
        entry.retire();
        self.table.discard(entry);
        false
    }

    /// Compiles a program for one use.
    fn use_alone<R>(
        &self,
        thread: ThreadNumber,
        make: impl FnOnce() -> Result<Made<B::Program, SideData>, Failure<B::Error>>,
        use_it: impl FnOnce(Using<'_, B::Program, SideData>) -> Result<R, DispatchError<B::Error>>,
    ) -> Result<R, DispatchError<B::Error>> {
        let mut made = self.make_counted(thread, make)?;
        use_it(Using { side: &made.side, program: &mut made.program, is_fresh: true })
    }

    /// Counts and times what `make` does.
    fn make_counted(
        &self,
        thread: ThreadNumber,
        make: impl FnOnce() -> Result<Made<B::Program, SideData>, Failure<B::Error>>,
    ) -> Result<Made<B::Program, SideData>, Failure<B::Error>> {
        let started = Instant::now();
        let made = make();
        self.counters.add_time(thread, Phase::Compile, nanoseconds(started.elapsed()));
        let event = if made.is_ok() { CacheEvent::Compile } else { CacheEvent::FailedCompile };
        self.counters.count(thread, event);
        made
    }

    /// A program and what is kept beside it, weighed.
    fn made(&self, program: B::Program, side: SideData) -> Made<B::Program, SideData> {
        let plan_bytes = side.plan.as_ref().map_or(0, PatchPlan::size_bytes);
        let plan_bytes = u64::try_from(plan_bytes).unwrap_or(u64::MAX);
        let weight_bytes = self.backend.weight_bytes(&program).saturating_add(plan_bytes);
        Made { program, side, weight_bytes }
    }

    /// Compiles. When the device lacks memory, programs that are unused make room, first as much
    /// as is needed and then all of them.
    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<B::Program, B::Error> {
        let mut result = self.backend.compile(descriptor);
        for retry in 1..=MAX_RETRIES {
            let Err(error) = &result else { break };
            let Some(lacking_bytes) = self.backend.lacking_bytes(error) else { break };
            let left = match retry {
                MAX_RETRIES => self.table.evict(u64::MAX),
                _ => self.table.evict(lacking_bytes),
            };
            // What was dropped before the first try may not have been given back until now.
            if retry > 1 && left.is_empty() {
                break;
            }
            drop(left);
            self.backend.reclaim();
            result = self.backend.compile(descriptor);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::counters::ThreadNumber;
    use super::entry::{Entry, Made, WantedKey};
    use super::table::{Joined, ProgramTable};

    fn wanted(hash: u64, bytes: &[u8]) -> WantedKey<'_> {
        WantedKey { hash, operation: None, bytes, collided: Cell::new(false) }
    }

    fn add(table: &ProgramTable<u32, (), ()>, key: &WantedKey<'_>, program: u32) {
        let Ok(Joined::Lead(leading)) = table.join(key, ThreadNumber::current()) else {
            panic!("nobody else compiles it");
        };
        let made = Made { program, side: (), weight_bytes: 1 };
        let entry = Entry::new(leading.flight.key().clone(), made);
        assert_eq!(table.land(leading, &Arc::new(entry)), []);
    }

    fn found(table: &ProgramTable<u32, (), ()>, key: &WantedKey<'_>) -> Option<u32> {
        let entry = table.index.get(key)?;
        let mut in_use =
            entry.enter(ThreadNumber::current(), || None).expect("it is not in use")?;
        Some(*in_use.program())
    }

    #[test]
    fn keys_with_the_same_hash_are_distinguished_and_counted() {
        let table = ProgramTable::new(10_000);
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
        let table: ProgramTable<u32, (), ()> = ProgramTable::new(10_000);
        let key = wanted(7, b"one");
        let leading = table.join(&key, ThreadNumber::current());
        assert!(matches!(leading, Ok(Joined::Lead(_))));
        assert!(table.join(&key, ThreadNumber::current()).is_err(), "it would wait for itself");
        drop(leading);
        add(&table, &key, 1);
        assert_eq!(found(&table, &key), Some(1));
    }
}
