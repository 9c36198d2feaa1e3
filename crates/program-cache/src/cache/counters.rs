//! What a cache has done, and how long each phase of it took.
//!
//! A thread counts in a stripe of its own, so two threads that hit do not pull one cache line back
//! and forth, and no other writes there, so that counting is a load and a store. Threads beyond
//! the first [`OWN_STRIPES`] share some stripes and add atomically. Misses, compilations and checks are timed each; of the hits of a stripe the first
//! [`TIMED_FIRST`] dispatches of a thread, and then for one in [`TIMED_EACH`], which stands for the
//! others: reading the clock each time would cost as much as the look-up itself.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Threads that have a stripe of a cache to themselves: the first ones of a process.
const OWN_STRIPES: usize = 32;
/// Stripes that all later threads share.
const SHARED_STRIPES: usize = 16;
/// Dispatches of a thread that are timed one by one.
pub const TIMED_FIRST: u64 = 64;
/// After these, one dispatch in this many is timed and stands for all of them.
pub const TIMED_EACH: u64 = 64;

/// A part of a dispatch that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Phase {
    /// Writing and hashing the key.
    Key,
    /// Finding the entry, its key compared in full, and taking it for use.
    LookUp,
    /// A factory's `create` and the back end's `compile`.
    Compile,
    /// Writing arguments into a program that was found.
    Update,
    /// Rebuilding a descriptor and comparing it.
    Check,
}

/// All phases, in the order of [`CacheCounts::phases_ns`].
pub const PHASES: [Phase; 5] =
    [Phase::Key, Phase::LookUp, Phase::Compile, Phase::Update, Phase::Check];

/// What happened, as counted in a stripe.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum CacheEvent {
    Hit,
    Miss,
    Compile,
    FailedCompile,
    Collision,
    Check,
    FailedCheck,
}

const EVENTS: usize = 7;

/// What a cache did since it was made, and what it holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheCounts {
    /// Dispatches that found their program.
    pub hits: u64,
    /// Dispatches that did not, those that then waited for another's compilation included.
    pub misses: u64,
    /// Programs compiled.
    pub compiles: u64,
    /// Compilations that failed, in a factory or in the back end.
    pub failed_compiles: u64,
    /// Programs dropped to make room.
    pub evictions: u64,
    /// Look-ups that met another key with the same 64-bit hash and were distinguished from it.
    pub collisions: u64,
    /// Hits that were compared with a descriptor rebuilt.
    pub checks: u64,
    /// Of these, the ones that differed.
    pub failed_checks: u64,
    /// Programs in the cache.
    pub entries: u64,
    /// Their weight, in the back end's bytes, keys included.
    pub weight_bytes: u64,
    /// Nanoseconds in each of [`PHASES`]; key, look-up and update are extrapolated from samples.
    pub phases_ns: [u64; PHASES.len()],
}

impl Phase {
    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::LookUp => "look_up",
            Self::Compile => "compile",
            Self::Update => "update",
            Self::Check => "check",
        }
    }
}

impl CacheCounts {
    /// The sums of two caches.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let mut phases_ns = self.phases_ns;
        for (sum, ns) in phases_ns.iter_mut().zip(other.phases_ns) {
            *sum = sum.saturating_add(ns);
        }
        Self {
            hits: self.hits.saturating_add(other.hits),
            misses: self.misses.saturating_add(other.misses),
            compiles: self.compiles.saturating_add(other.compiles),
            failed_compiles: self.failed_compiles.saturating_add(other.failed_compiles),
            evictions: self.evictions.saturating_add(other.evictions),
            collisions: self.collisions.saturating_add(other.collisions),
            checks: self.checks.saturating_add(other.checks),
            failed_checks: self.failed_checks.saturating_add(other.failed_checks),
            entries: self.entries.saturating_add(other.entries),
            weight_bytes: self.weight_bytes.saturating_add(other.weight_bytes),
            phases_ns,
        }
    }

    /// Nanoseconds in one phase.
    #[must_use]
    pub fn phase_ns(&self, phase: Phase) -> u64 {
        self.phases_ns[phase as usize]
    }
}

/// One stripe, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    events: [AtomicU64; EVENTS],
    phases_ns: [AtomicU64; PHASES.len()],
}

/// The stripes of a cache.
#[derive(Default)]
pub(crate) struct Counters {
    own: [Stripe; OWN_STRIPES],
    shared: [Stripe; SHARED_STRIPES],
}

/// A thread, as this crate distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber(usize);

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// This thread's number; 0 until it is first asked for.
    static THREAD: Cell<usize> = const { Cell::new(0) };
    /// Dispatches of this thread, to choose those that are timed.
    static DISPATCHES: Cell<u64> = const { Cell::new(0) };
}

impl ThreadNumber {
    /// The number of the calling thread, never 0.
    #[inline]
    pub(crate) fn current() -> Self {
        let known = THREAD.get();
        if known != 0 {
            return Self(known);
        }
        let fresh = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
        THREAD.set(fresh);
        Self(fresh)
    }

    pub(crate) const fn get(self) -> usize {
        self.0
    }
}

impl Counters {
    #[inline]
    pub(crate) fn count(&self, thread: ThreadNumber, event: CacheEvent) {
        self.add(thread, |stripe| &stripe.events[event as usize], 1);
    }

    pub(crate) fn add_time(&self, thread: ThreadNumber, phase: Phase, ns: u64) {
        self.add(thread, |stripe| &stripe.phases_ns[phase as usize], ns);
    }

    #[inline]
    fn add(&self, thread: ThreadNumber, counter: impl Fn(&Stripe) -> &AtomicU64, more: u64) {
        // Numbers are given once, so no other thread ever writes to a stripe of one's own.
        if let Some(own) = self.own.get(thread.get()) {
            let counter = counter(own);
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        } else {
            let shared = &self.shared[thread.get() % SHARED_STRIPES];
            counter(shared).fetch_add(more, Ordering::Relaxed);
        }
    }

    fn stripes(&self) -> impl Iterator<Item = &Stripe> {
        self.own.iter().chain(&self.shared)
    }

    /// The sums over all threads. They are read one after the other while threads go on.
    pub(crate) fn read(&self) -> CacheCounts {
        let event = |event: CacheEvent| {
            let each = self.stripes().map(|one| &one.events[event as usize]);
            each.fold(0, |sum: u64, one| sum.wrapping_add(one.load(Ordering::Relaxed)))
        };
        let mut phases_ns = [0u64; PHASES.len()];
        for stripe in self.stripes() {
            for (sum, ns) in phases_ns.iter_mut().zip(&stripe.phases_ns) {
                *sum = sum.wrapping_add(ns.load(Ordering::Relaxed));
            }
        }
        CacheCounts {
            hits: event(CacheEvent::Hit),
            misses: event(CacheEvent::Miss),
            compiles: event(CacheEvent::Compile),
            failed_compiles: event(CacheEvent::FailedCompile),
            evictions: 0,
            collisions: event(CacheEvent::Collision),
            checks: event(CacheEvent::Check),
            failed_checks: event(CacheEvent::FailedCheck),
            entries: 0,
            weight_bytes: 0,
            phases_ns,
        }
    }
}

/// Measures the phases of one dispatch, if it is one of those that are timed.
pub(crate) struct PhaseTimer {
    last: Option<Instant>,
    weight: u64,
    marks: [u64; PHASES.len()],
}

impl PhaseTimer {
    /// Starts with the next dispatch of this thread.
    #[inline]
    pub(crate) fn start() -> Self {
        let before = DISPATCHES.get();
        DISPATCHES.set(before.wrapping_add(1));
        let weight = match before {
            0..TIMED_FIRST => 1,
            _ if before.is_multiple_of(TIMED_EACH) => TIMED_EACH,
            _ => return Self { last: None, weight: 0, marks: [0; PHASES.len()] },
        };
        Self { last: Some(Instant::now()), weight, marks: [0; PHASES.len()] }
    }

    /// The time since the last mark belongs to `phase`.
    #[inline]
    pub(crate) fn mark(&mut self, phase: Phase) {
        if self.last.is_some() {
            self.mark_timed(phase);
        }
    }

    #[cold]
    fn mark_timed(&mut self, phase: Phase) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            let ns = nanoseconds(now.duration_since(last)).saturating_mul(self.weight);
            self.marks[phase as usize] = self.marks[phase as usize].saturating_add(ns);
        }
    }

    /// Adds what was measured to the counters.
    #[inline]
    pub(crate) fn finish(&self, counters: &Counters, thread: ThreadNumber) {
        if self.last.is_some() {
            self.finish_timed(counters, thread);
        }
    }

    #[cold]
    fn finish_timed(&self, counters: &Counters, thread: ThreadNumber) {
        for (phase, ns) in PHASES.into_iter().zip(self.marks) {
            if ns > 0 {
                counters.add_time(thread, phase, ns);
            }
        }
    }
}

/// A duration in nanoseconds, as long as 584 years at most.
pub(crate) fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
