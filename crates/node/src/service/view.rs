//! What servers, history and alerts are given: the latest publication, the next ones, a fresh one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use telltale_schema::snapshot::Snapshot;
use tokio::sync::watch;

use super::bell::Bell;
use super::figures::HistoryFigures;
use super::figures::ServiceFigures;
use super::published::Published;
use super::tally::{Tallies, Tally};
use crate::alerts::{AlertStates, Notices, Rule};

/// Intervals after which what was published last is too old to call the service ready.
const READY_INTERVALS: u32 = 3;

/// How long a collection may take before its thread counts as stuck: all deadlines together, and
/// as much again for a machine that is busy.
const LONGEST_COLLECTION: Duration = Duration::from_secs(20);

/// Why there is no fresh publication.
#[derive(Debug, thiserror::Error)]
pub enum FreshError {
    /// Collecting takes longer than the caller waits.
    #[error("no collection ended within {0:?}; ask for the latest one instead")]
    TimedOut(Duration),
    /// The collecting thread has ended.
    #[error("the service has stopped collecting; restart it")]
    Stopped,
}

/// Why the service is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// Nothing new for too long.
    #[error("nothing was published for {age:?}, and {allowed:?} are allowed")]
    TooOld {
        /// The age of what was published last.
        age: Duration,
        /// The age up to which the service is ready.
        allowed: Duration,
    },
    /// The collecting thread has ended.
    #[error("the service has stopped collecting")]
    Stopped,
}

/// Reads what is published. Clones are cheap.
#[derive(Debug, Clone)]
pub struct View {
    shared: Arc<Shared>,
    latest: watch::Receiver<Arc<Published>>,
}

/// Publishes. The service's thread has the only one; a test of a server has its own.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    latest: watch::Sender<Arc<Published>>,
    alerts: Arc<AlertStates>,
}

/// What views and the collecting thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    bell: Bell,
    interval_ns: AtomicU64,
    /// The number of the last collection that has begun asking everybody.
    begun: AtomicU64,
    /// The number of the last such collection that somebody waits for.
    wanted: AtomicU64,
    stop: AtomicBool,
    /// A part has seen a process come or go.
    changed: AtomicBool,
    /// When the thread's next sign of life is due at the latest, counted from `started`.
    alive_until_ns: AtomicU64,
    started: Instant,
    tallies: Tallies,
    /// Configurations that were read again, and those of them that were refused.
    reloads: AtomicU64,
    refused_reloads: AtomicU64,
    /// Rules that the collecting thread has not taken over yet.
    rules: Mutex<Option<Vec<Rule>>>,
    notices: Arc<Notices>,
    /// How the history does, where one is wanted.
    history: Mutex<Option<HistoryFigures>>,
}

// === impl View ===

impl View {
    /// What was published last.
    pub fn latest(&self) -> Arc<Published> {
        Arc::clone(&self.latest.borrow())
    }

    /// The publications from now on. A slow reader sees the newest and, by the gap in
    /// [`Published::sequence`], that it missed some.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Published>> {
        self.latest.clone()
    }

    /// A publication whose collection began after this call and asked everybody. Callers that wait
    /// together share one. Needs a tokio runtime with time.
    ///
    /// # Errors
    /// When none ends within `patience`, or the service has ended.
    pub async fn fresh(&self, patience: Duration) -> Result<Arc<Published>, FreshError> {
        let wanted = self.shared.want_fresh();
        let mut latest = self.latest.clone();
        let waited = tokio::time::timeout(patience, latest.wait_for(|one| one.fresh >= wanted));
        match waited.await {
            Ok(Ok(published)) => Ok(Arc::clone(&published)),
            Ok(Err(_)) => Err(FreshError::Stopped),
            Err(_) => Err(FreshError::TimedOut(patience)),
        }
    }

    /// Whether what is published is young enough to be believed, and more will come.
    ///
    /// # Errors
    /// Why not.
    pub fn is_ready(&self) -> Result<(), NotReady> {
        if self.latest.has_changed().is_err() {
            return Err(NotReady::Stopped);
        }
        let age = self.latest.borrow().made_at.elapsed();
        let allowed = self.interval() * READY_INTERVALS;
        if age > allowed {
            return Err(NotReady::TooOld { age, allowed });
        }
        Ok(())
    }

    /// Whether the collecting thread still runs and is not stuck.
    pub fn is_alive(&self) -> bool {
        self.latest.has_changed().is_ok() && self.shared.is_alive()
    }

    /// Says that a process has come or gone, of which nothing in the file system tells.
    pub(crate) fn note_change(&self) {
        self.shared.changed.store(true, Ordering::Release);
        self.shared.bell.ring();
    }

    /// From now on collects each `interval`.
    pub fn set_interval(&self, interval: Duration) {
        self.shared.set_interval(interval);
    }

    /// The time from one collection to the next.
    pub fn interval(&self) -> Duration {
        self.shared.interval()
    }

    /// From now on looks for what these rules say.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        *self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        self.shared.bell.ring();
    }

    /// What is to be told of alerts.
    pub fn notices(&self) -> &Arc<Notices> {
        &self.shared.notices
    }

    /// The counter of what the queue or limit of this name drops or refuses, which is published
    /// with the service's figures. The name is part of a metric: lower case, words by underscores.
    pub fn tally(&self, queue: &'static str) -> Tally {
        self.shared.tallies.of(queue)
    }

    /// Notes how the history does, for the publications from now on.
    pub fn note_history(&self, figures: HistoryFigures) {
        *self.shared.history.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
    }

    /// Counts that the configuration was read again, and `taken` or refused.
    pub fn note_reload(&self, taken: bool) {
        self.shared.reloads.fetch_add(1, Ordering::Relaxed);
        self.shared.refused_reloads.fetch_add(u64::from(!taken), Ordering::Relaxed);
    }

    /// Waits until the collecting thread has ended.
    pub async fn stopped(&self) {
        let mut latest = self.latest.clone();
        while latest.changed().await.is_ok() {}
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

// === impl Publisher ===

impl Publisher {
    /// A publisher that has published `snapshot`, and the view of it.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub fn new(
        interval: Duration,
        snapshot: Arc<Snapshot>,
        service: ServiceFigures,
    ) -> io::Result<(Self, View)> {
        Ok(Self::of(Arc::new(Shared::new(interval)?), snapshot, service))
    }

    pub(crate) fn of(
        shared: Arc<Shared>,
        snapshot: Arc<Snapshot>,
        service: ServiceFigures,
    ) -> (Self, View) {
        let fresh = shared.begun.load(Ordering::Acquire);
        let (alerts, made_at) = (Arc::default(), Instant::now());
        let first = Published {
            sequence: 1,
            snapshot,
            service,
            alerts: Arc::clone(&alerts),
            made_at,
            fresh,
        };
        let (sender, receiver) = watch::channel(Arc::new(first));
        let view = View { shared: Arc::clone(&shared), latest: receiver };
        (Self { shared, latest: sender, alerts }, view)
    }

    /// Publishes; answers everybody who waits for a collection that has begun.
    pub fn publish(&self, snapshot: Arc<Snapshot>, service: ServiceFigures) {
        let fresh = self.shared.begun.load(Ordering::Acquire);
        let sequence = self.latest.borrow().sequence + 1;
        let (alerts, made_at) = (Arc::clone(&self.alerts), Instant::now());
        let next = Published { sequence, snapshot, service, alerts, made_at, fresh };
        self.latest.send_replace(Arc::new(next));
    }

    /// What alerts there are, for the publications from now on.
    pub fn set_alerts(&mut self, alerts: Arc<AlertStates>) {
        self.alerts = alerts;
    }

    /// Whether somebody waits for a collection that has not begun.
    pub fn is_wanted(&self) -> bool {
        self.shared.is_fresh_wanted()
    }

    /// Says that a collection begins which asks everybody: the next publication is its result.
    pub fn begin(&self) {
        self.shared.begin();
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(interval: Duration) -> io::Result<Self> {
        Ok(Self {
            bell: Bell::new()?,
            interval_ns: AtomicU64::new(nanoseconds(interval)),
            begun: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            changed: AtomicBool::new(false),
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

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(crate) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns.load(Ordering::Relaxed))
    }

    fn set_interval(&self, interval: Duration) {
        self.interval_ns.store(nanoseconds(interval), Ordering::Relaxed);
        self.bell.ring();
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
    pub(crate) fn history(&self) -> Option<HistoryFigures> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Asks for a collection that begins from now on; gives its number.
    fn want_fresh(&self) -> u64 {
        // One that has begun may have asked some before this call.
        let wanted = self.begun.load(Ordering::Acquire) + 1;
        self.wanted.fetch_max(wanted, Ordering::AcqRel);
        self.bell.ring();
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
        self.bell.ring();
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
