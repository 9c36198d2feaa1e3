//! The cache of compiled programs.
//!
//! Any number of threads may use one cache. A program that is found is used by one thread at a
//! time: its arguments are written and it is handed to the device under its own lock, so the
//! `run` of a dispatch should enqueue and return. Programs that many threads miss at once are
//! compiled once. What a failed compilation gave is told to those who waited for it and kept for
//! nobody.

mod counters;
mod dispatching;
mod entry;
mod error;
mod flight;
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
use counters::{Counters, Event, ThreadNumber, Watch, nanoseconds};
use entry::{Entry, WantedKey};
use error::Failure;
use table::{Joined, Lead, Table};

/// The weight that a cache may have if nothing else is said: 256 MiB.
pub const DEFAULT_LIMIT_BYTES: u64 = 256 << 20;
/// How often a dispatch looks again for a program that others drop as fast as it is compiled.
/// After that it compiles one for itself alone.
const MAX_ATTEMPTS: usize = 8;
/// What an entry weighs beside its program, key and plan.
const ENTRY_OVERHEAD_BYTES: usize = 512;

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
    table: Table<B::Program, Side, Failure<B::Error>>,
    counters: Counters,
}

/// What is kept beside a program.
struct Side {
    /// What people call it: the operation's name, or the first kernel's.
    name: Text,
    /// The slots that a hit writes; none for a program that was described in full.
    plan: Option<PatchPlan>,
    /// What the program was made from, in checking mode.
    symbolic: Option<ProgramDescriptor<Argument>>,
}

/// A program that was just compiled.
struct Made<P> {
    program: P,
    side: Side,
}

/// A program in the hands of one dispatch.
struct Using<'a, P> {
    side: &'a Side,
    program: &'a mut P,
    /// It was compiled for this dispatch and has its words; else it has those of another.
    is_fresh: bool,
}

type CacheEntry<B> = Entry<<B as Backend>::Program, Side>;
type CacheLead<B> = Lead<<B as Backend>::Program, Side, Failure<<B as Backend>::Error>>;
/// A compilation that gave an entry, not landed yet.
type Led<B> = (CacheLead<B>, Arc<CacheEntry<B>>);

// === impl ProgramCache ===

impl<B: Backend> ProgramCache<B> {
    /// An empty cache in front of `backend`.
    pub fn new(backend: B, options: CacheOptions) -> Self {
        Self {
            backend,
            mode: options.mode,
            enabled: AtomicBool::new(true),
            table: Table::new(options.limit_bytes),
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

    /// Compiles each program anew from now on. What the cache holds stays in it.
    pub fn disable(&self) {
        self.enabled.store(false, Ordering::Relaxed);
    }

    /// Whether programs are cached at present.
    pub fn is_enabled(&self) -> bool {
        self.mode != CacheMode::Off && self.enabled.load(Ordering::Relaxed)
    }

    /// Drops all programs; those in use are dropped when their use ends.
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
        CacheCounts { entries, weight_bytes, ..self.counters.read() }
    }

    /// Finds or compiles the program with this key and uses it. `make` and `use_it` are called
    /// once at most.
    #[inline]
    fn obtain<R>(
        &self,
        wanted: &WantedKey<'_>,
        thread: ThreadNumber,
        watch: &mut Watch,
        make: impl FnOnce() -> Result<Made<B::Program>, Failure<B::Error>>,
        use_it: impl FnOnce(Using<'_, B::Program>, &mut Watch) -> Result<R, DispatchError<B::Error>>,
    ) -> Result<R, DispatchError<B::Error>> {
        let pin = self.table.pin();
        if let Some(entry) = self.table.find(wanted, &pin)
            && let Some(mut in_use) = entry.enter(thread)?
        {
            watch.mark(Phase::LookUp);
            self.counters.count(thread, Event::Hit);
            if wanted.collided.get() {
                self.counters.count(thread, Event::Collision);
            }
            let side = &entry.side;
            return use_it(Using { side, program: in_use.program(), is_fresh: false }, watch);
        }
        drop(pin);
        watch.mark(Phase::LookUp);
        self.counters.count(thread, Event::Miss);
        let result = self.obtain_missing(wanted, thread, make, |using| use_it(using, watch));
        if wanted.collided.get() {
            self.counters.count(thread, Event::Collision);
        }
        result
    }

    /// The same for a program that was not found.
    #[cold]
    fn obtain_missing<R>(
        &self,
        wanted: &WantedKey<'_>,
        thread: ThreadNumber,
        make: impl FnOnce() -> Result<Made<B::Program>, Failure<B::Error>>,
        use_it: impl FnOnce(Using<'_, B::Program>) -> Result<R, DispatchError<B::Error>>,
    ) -> Result<R, DispatchError<B::Error>> {
        for _ in 0..MAX_ATTEMPTS {
            let entry = match self.table.join(wanted, thread)? {
                Joined::Here(entry) => entry,
                Joined::Wait(flight) => match flight.wait() {
                    Some(landed) => landed?,
                    None => continue,
                },
                Joined::Lead(leading) => {
                    let (leading, entry) = self.lead(leading, thread, make)?;
                    let mut in_use = entry.enter(thread)?.expect("nobody else has it yet");
                    let left = self.table.land(leading, &entry);
                    self.counters.add(thread, Event::Eviction, left.evictions);
                    drop(left);
                    let program = in_use.program();
                    return use_it(Using { side: &entry.side, program, is_fresh: true });
                }
            };
            if let Some(mut in_use) = entry.enter(thread)? {
                let program = in_use.program();
                return use_it(Using { side: &entry.side, program, is_fresh: false });
            }
            // Dropped since, or spoilt by a user that panicked.
            self.table.discard(&entry);
        }
        self.use_alone(thread, make, use_it)
    }

    /// Compiles a program for one use.
    fn use_alone<R>(
        &self,
        thread: ThreadNumber,
        make: impl FnOnce() -> Result<Made<B::Program>, Failure<B::Error>>,
        use_it: impl FnOnce(Using<'_, B::Program>) -> Result<R, DispatchError<B::Error>>,
    ) -> Result<R, DispatchError<B::Error>> {
        let mut made = self.make_counted(thread, make)?;
        use_it(Using { side: &made.side, program: &mut made.program, is_fresh: true })
    }

    /// Makes the entry of a compilation that this thread leads, or ends it.
    fn lead(
        &self,
        leading: CacheLead<B>,
        thread: ThreadNumber,
        make: impl FnOnce() -> Result<Made<B::Program>, Failure<B::Error>>,
    ) -> Result<Led<B>, DispatchError<B::Error>> {
        let key = leading.flight.key();
        match self.make_counted(thread, make) {
            Ok(Made { program, side }) => {
                let plan_bytes = side.plan.as_ref().map_or(0, PatchPlan::size_bytes);
                let own_bytes = key.size_bytes() + plan_bytes + ENTRY_OVERHEAD_BYTES;
                let own_bytes = u64::try_from(own_bytes).unwrap_or(u64::MAX);
                let weight_bytes = self.backend.weight_bytes(&program).saturating_add(own_bytes);
                let entry = Arc::new(Entry::new(key.clone(), program, side, weight_bytes));
                Ok((leading, entry))
            }
            Err(failure) => {
                let error = failure.clone().into();
                if failure.concerns_all() {
                    self.table.fail(leading, failure);
                }
                Err(error)
            }
        }
    }

    /// Counts and times what `make` does.
    fn make_counted(
        &self,
        thread: ThreadNumber,
        make: impl FnOnce() -> Result<Made<B::Program>, Failure<B::Error>>,
    ) -> Result<Made<B::Program>, Failure<B::Error>> {
        let started = Instant::now();
        let made = make();
        self.counters.add_time(thread, Phase::Compile, nanoseconds(started.elapsed()));
        let event = if made.is_ok() { Event::Compile } else { Event::FailedCompile };
        self.counters.count(thread, event);
        made
    }
}
