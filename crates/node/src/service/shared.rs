//! What views, the service's control and the collecting thread share.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::metrics::HistoryMetrics;
use super::tally::Tallies;
use super::wake_up::WakeUp;
use crate::alerts::{Notices, Rule};

/// How long a collection may take before its thread counts as stuck: all deadlines together, and
/// as much again for a machine that is busy.
const LONGEST_COLLECTION: Duration = Duration::from_secs(20);

/// What views and the collecting thread share.
#[derive(Debug)]
pub(crate) struct ServiceShared {
    pub(super) eventfd: WakeUp,
    pub(super) interval_ns: AtomicU64,
    /// The number of the last collection that has begun asking everybody.
    pub(super) begun: AtomicU64,
    /// The number of the last such collection that a client waits for.
    pub(super) wanted: AtomicU64,
    pub(super) stop: AtomicBool,
    /// A part has seen a process come or go.
    pub(super) changed: AtomicBool,
    /// Who watches what processes and the host use.
    pub(super) usage_watchers: AtomicUsize,
    /// Until then it is wanted without one who watches, counted from `started`.
    pub(super) usage_until_ns: AtomicU64,
    /// When the thread's next sign of life is due at the latest, counted from `started`.
    pub(super) alive_until_ns: AtomicU64,
    pub(super) started: Instant,
    pub(super) tallies: Tallies,
    /// Configurations that were read again, and those of them that were refused.
    pub(super) reloads: AtomicU64,
    pub(super) refused_reloads: AtomicU64,
    /// Rules that the collecting thread has not taken over yet.
    pub(super) rules: Mutex<Option<Vec<Rule>>>,
    pub(super) notices: Arc<Notices>,
    /// How the history does, where one is wanted.
    pub(super) history: Mutex<Option<HistoryMetrics>>,
}

// === impl ServiceShared ===

impl ServiceShared {
    pub(crate) fn new(interval: Duration) -> io::Result<Self> {
        Ok(Self {
            eventfd: WakeUp::new()?,
            interval_ns: AtomicU64::new(nanoseconds(interval)),
            begun: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            changed: AtomicBool::new(false),
            usage_watchers: AtomicUsize::new(0),
            usage_until_ns: AtomicU64::new(0),
            alive_until_ns: AtomicU64::new(nanoseconds(LONGEST_COLLECTION)),
            started: Instant::now(),
            tallies: Tallies::default(),
            reloads: AtomicU64::new(0),
            refused_reloads: AtomicU64::new(0),
            rules: Mutex::default(),
            notices: Arc::default(),
            history: Mutex::default(),
        })
    }

    pub(crate) fn eventfd(&self) -> &WakeUp {
        &self.eventfd
    }

    pub(crate) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns.load(Ordering::Relaxed))
    }

    pub(super) fn set_interval(&self, interval: Duration) {
        self.interval_ns.store(nanoseconds(interval), Ordering::Relaxed);
        self.eventfd.ring();
    }

    /// How often the configuration was read again, and how often it was refused.
    pub(crate) fn reloads(&self) -> (u64, u64) {
        (self.reloads.load(Ordering::Relaxed), self.refused_reloads.load(Ordering::Relaxed))
    }

    /// Rules that were set since the last call.
    pub(crate) fn take_rules(&self) -> Option<Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn notices(&self) -> &Arc<Notices> {
        &self.notices
    }

    /// How the history did at last.
    pub(crate) fn history(&self) -> Option<HistoryMetrics> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Asks for a collection that begins from now on; gives its number.
    pub(super) fn want_fresh(&self) -> u64 {
        // One that has begun may have asked some before this call.
        let wanted = self.begun.load(Ordering::Acquire) + 1;
        self.wanted.fetch_max(wanted, Ordering::AcqRel);
        self.eventfd.ring();
        wanted
    }

    pub(crate) fn is_fresh_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > self.begun.load(Ordering::Acquire)
    }

    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    /// A sign of life of the collecting thread, which waits until `next` at the latest before it
    /// collects.
    pub(crate) fn beat(&self, next: Instant) {
        let until = next.saturating_duration_since(self.started) + LONGEST_COLLECTION;
        self.alive_until_ns.store(nanoseconds(until), Ordering::Relaxed);
    }

    /// Whether the thread has not missed its next sign of life.
    pub(crate) fn is_alive(&self) -> bool {
        nanoseconds(self.started.elapsed()) <= self.alive_until_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.eventfd.ring();
    }

    /// Whether someone watches what processes and the host use, or has asked for it a moment ago.
    pub(crate) fn is_usage_watched(&self) -> bool {
        self.usage_watchers.load(Ordering::Acquire) > 0
            || nanoseconds(self.started.elapsed()) < self.usage_until_ns.load(Ordering::Acquire)
    }

    /// Has it read for so long from now on.
    pub(super) fn want_usage(&self, span: Duration) {
        let until = nanoseconds(self.started.elapsed() + span);
        self.usage_until_ns.fetch_max(until, Ordering::AcqRel);
    }

    /// Has the thread collect soon, as when a process came or went.
    pub(super) fn ring_for_change(&self) {
        self.changed.store(true, Ordering::Release);
        self.eventfd.ring();
    }

    /// Whether a part has seen a process come or go since the last call.
    pub(crate) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
