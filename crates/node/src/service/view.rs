//! What servers, history and alerts are given: the latest publication, the next ones, a fresh one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use telltale_schema::snapshot::Snapshot;
use tokio::sync::watch;

use super::metrics::ServiceMetrics;
use super::published::Published;
use super::shared::ServiceShared;
use crate::alerts::AlertStates;

/// Intervals after which what was published last is too old to call the service ready.
const READY_INTERVALS: u32 = 3;

/// How long usage is read after a call that wanted it once.
const USAGE_KEPT: Duration = Duration::from_secs(10);
/// How long such a call waits for rates: less than `--hosts` waits for an answer by default.
const LONGEST_MEASURE: Duration = Duration::from_millis(1500);
/// After how long without rates such a call has the thread collect once more. Longer than a rate takes.
const MEASURE_STEP: Duration = Duration::from_millis(250);

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

/// Reads what is published, and changes nothing. Clones are cheap.
#[derive(Debug, Clone)]
pub struct View {
    pub(super) shared: Arc<ServiceShared>,
    pub(super) latest: watch::Receiver<Arc<Published>>,
}

/// Publishes. The service's thread has the only one; a test of a server has its own.
#[derive(Debug)]
pub struct Publisher {
    pub(super) shared: Arc<ServiceShared>,
    pub(super) latest: watch::Sender<Arc<Published>>,
    alerts: Arc<AlertStates>,
}

/// Someone watches what processes and the host use: while there is one, the service reads it.
#[derive(Debug)]
pub struct UsageWatch(Arc<ServiceShared>);

// === impl UsageWatch ===

impl Drop for UsageWatch {
    fn drop(&mut self) {
        self.0.usage_watchers.fetch_sub(1, Ordering::AcqRel);
    }
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

    /// Publications have what processes and the host use from now on, until the last of these is
    /// dropped. The first makes the next one come at once.
    #[must_use]
    pub fn watch_usage(&self) -> UsageWatch {
        if self.shared.usage_watchers.fetch_add(1, Ordering::AcqRel) == 0 {
            self.shared.ring_for_change();
        }
        UsageWatch(Arc::clone(&self.shared))
    }

    /// What was published last, with rates of what processes and the host use: measured for this call
    /// where no one watches it, which takes some tenths of a second and [`LONGEST_MEASURE`] at most. It
    /// is read for a while longer, so that a client that polls need not wait again. Needs a tokio runtime with
    /// time.
    pub async fn with_usage(&self) -> Arc<Published> {
        self.shared.want_usage(USAGE_KEPT);
        let measured = async {
            let mut latest = self.latest.clone();
            if latest.borrow().snapshot.host.is_none() {
                self.shared.ring_for_change();
            }
            // The first collection brings no rate, and one that follows at once none either.
            while tokio::time::timeout(MEASURE_STEP, latest.wait_for(|one| one.has_rates()))
                .await
                .is_err()
            {
                self.shared.ring_for_change();
            }
        };
        // What is there by then is better than nothing.
        let _ = tokio::time::timeout(LONGEST_MEASURE, measured).await;
        self.latest()
    }

    /// A publication whose collection began after this call and asked everybody. Callers that wait
    /// together share one. Needs a tokio runtime with time.
    ///
    /// # Errors
    /// When none ends within `timeout`, or the service has ended.
    pub async fn fresh(&self, timeout: Duration) -> Result<Arc<Published>, FreshError> {
        let wanted = self.shared.want_fresh();
        let mut latest = self.latest.clone();
        let waited = tokio::time::timeout(timeout, latest.wait_for(|one| one.fresh >= wanted));
        match waited.await {
            Ok(Ok(published)) => Ok(Arc::clone(&published)),
            Ok(Err(_)) => Err(FreshError::Stopped),
            Err(_) => Err(FreshError::TimedOut(timeout)),
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

    /// The time from one collection to the next.
    pub fn interval(&self) -> Duration {
        self.shared.interval()
    }

    /// Waits until the collecting thread has ended.
    pub async fn stopped(&self) {
        let mut latest = self.latest.clone();
        while latest.changed().await.is_ok() {}
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
        service: ServiceMetrics,
    ) -> io::Result<(Self, View)> {
        Ok(Self::of(Arc::new(ServiceShared::new(interval)?), snapshot, service))
    }

    pub(crate) fn of(
        shared: Arc<ServiceShared>,
        snapshot: Arc<Snapshot>,
        service: ServiceMetrics,
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
    pub fn publish(&self, snapshot: Arc<Snapshot>, service: ServiceMetrics) {
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

    /// Whether a client waits for a collection that has not begun.
    pub fn is_wanted(&self) -> bool {
        self.shared.is_fresh_wanted()
    }

    /// Whether a client watches what processes and the host use.
    pub fn is_usage_watched(&self) -> bool {
        self.shared.is_usage_watched()
    }

    /// Says that a collection begins which asks everybody: the next publication is its result.
    pub fn begin(&self) {
        self.shared.begin();
    }
}
