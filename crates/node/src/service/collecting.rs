//! What the collecting thread does: collects when the schedule says so, publishes, and waits for
//! processes that come and go.

use std::sync::Arc;
use std::time::Instant;
use tracing::warn;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use telltale_schema::clock::Clock;
use telltale_schema::snapshot::Snapshot;

use super::changes::Changes;
use super::control::Control;
use super::metrics::{CollectionTotals, ServiceMetrics};
use super::schedule::{CollectionCause, Schedule, ScheduleStep};
use super::shared::ServiceShared;
use super::tally::Tally;
use super::truncated::Truncated;
use super::view::Publisher;
use crate::alerts::Watching;
use crate::service::LegacySocket;
use telltale_collector::EndpointUse;
use telltale_collector::clock::thread_cpu;
use telltale_collector::{Collector, Round};

/// The thread's own state.
pub(crate) struct Collecting {
    collector: Collector,
    legacy: Option<Arc<dyn LegacySocket>>,
    shared: Arc<ServiceShared>,
    publisher: Publisher,
    metrics: CollectionTotals,
    schedule: Schedule,
    changes: Option<Changes>,
    overflows: Tally,
    alerts: Watching,
    clock: Arc<dyn Clock>,
    /// It was reported that something cannot be watched.
    complained: bool,
    /// Directories reported because they have too many names.
    truncated: Truncated,
}

// === impl Collecting ===

impl Collecting {
    /// Collects everything for the first time.
    pub(crate) fn begin(
        mut collector: Collector,
        legacy: Option<Arc<dyn LegacySocket>>,
        shared: Arc<ServiceShared>,
        clock: Arc<dyn Clock>,
    ) -> (Self, Control) {
        let mut metrics = CollectionTotals::new(clock.now());
        shared.begin();
        let now = Instant::now();
        let mut schedule = Schedule::new(shared.interval(), now);
        let round = Round { sensors: true, endpoints: EndpointUse::Always };
        let cpu_before = thread_cpu();
        schedule.begin(CollectionCause::Interval);
        let snapshot = Arc::new(collector.collect_round(round));
        schedule.end(
            CollectionCause::Interval,
            round,
            thread_cpu().saturating_sub(cpu_before),
            Instant::now(),
        );
        metrics.count(&snapshot, &collector.repeated());
        let own = own_metrics((&collector, legacy.as_deref()), &metrics, &shared, &*clock);
        let (publisher, _) = Publisher::of(Arc::clone(&shared), snapshot, own);
        let control = publisher.control();
        let changes = Changes::new();
        if let Err(error) = &changes {
            warn!(
                "no inotify descriptor: {error}: new processes appear at the next interval; \
                    raise fs.inotify.max_user_instances"
            );
        }
        let overflows = shared.tallies().of("directory_events");
        let alerts = Watching::new(Arc::clone(shared.notices()));
        let mut collecting = Self {
            collector,
            legacy,
            shared,
            publisher,
            metrics,
            schedule,
            changes: changes.ok(),
            overflows,
            alerts,
            clock,
            complained: false,
            truncated: Truncated::default(),
        };
        collecting.follow();
        // What came while nothing was watched.
        collecting.schedule.note_change();
        (collecting, control)
    }

    /// Goes on until it is asked to stop.
    pub(crate) fn run(&mut self) {
        while !self.shared.is_asked_to_stop() {
            self.schedule.set_interval(self.shared.interval(), Instant::now());
            match self.schedule.next(Instant::now(), self.shared.is_fresh_wanted()) {
                ScheduleStep::Collect(cause, round) => {
                    self.shared.beat(Instant::now());
                    self.collect(cause, round);
                }
                ScheduleStep::Wait { until, for_changes } => {
                    self.shared.beat(until);
                    self.wait(until, for_changes);
                }
            }
        }
    }

    fn collect(&mut self, cause: CollectionCause, round: Round) {
        let cpu_before = thread_cpu();
        self.schedule.begin(cause);
        if round.sensors && round.endpoints == EndpointUse::Always {
            self.publisher.begin();
        }
        self.collector.read_usage(self.publisher.is_usage_watched());
        let snapshot = Arc::new(self.collector.collect_round(round));
        self.metrics.count(&snapshot, &self.collector.repeated());
        self.evaluate_alerts(&snapshot);
        let own = own_metrics(
            (&self.collector, self.legacy.as_deref()),
            &self.metrics,
            &self.shared,
            &*self.clock,
        );
        self.publisher.publish(snapshot, own);
        self.follow();
        self.schedule.end(cause, round, thread_cpu().saturating_sub(cpu_before), Instant::now());
    }

    /// Evaluates the rules on a snapshot before it is published with what was found.
    fn evaluate_alerts(&mut self, snapshot: &Snapshot) {
        if let Some(rules) = self.shared.take_rules() {
            self.alerts.replace_rules(rules, snapshot.taken_at);
        }
        self.publisher.set_alerts(self.alerts.evaluate(self.clock.monotonic_ns(), snapshot));
    }

    /// Watches the processes and directories that the last collection has found.
    fn follow(&mut self) {
        if self.collector.watch() {
            self.schedule.note_change();
        }
        self.truncated.tell(self.collector.truncated());
        let Some(changes) = &mut self.changes else { return };
        let missed = changes.follow(self.collector.directories(), &self.collector.places());
        if missed > 0 && !self.complained {
            warn!(
                "cannot watch runtime directories: {missed}: changes appear at the next \
                    interval; raise fs.inotify.max_user_watches"
            );
        }
        self.complained = missed > 0;
    }

    /// Waits until there is something to do, but no longer than `until`.
    fn wait(&mut self, until: Instant, for_changes: bool) {
        let wake_up = self.shared.eventfd();
        let mut descriptors = vec![PollFd::new(wake_up, PollFlags::IN)];
        if for_changes {
            let ends = self.collector.ends();
            descriptors.extend(ends.map(|ends| PollFd::from_borrowed_fd(ends, PollFlags::IN)));
            let changes = self.changes.as_ref();
            descriptors.extend(changes.map(|changes| PollFd::new(changes, PollFlags::IN)));
        }
        let span = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(span).ok();
        // An error (a signal) only means that we look earlier.
        let _ = poll(&mut descriptors, timeout.as_ref());
        let something = descriptors.iter().skip(1).any(|one| !one.revents().is_empty());
        wake_up.silence();
        if self.shared.take_change() {
            self.schedule.note_change();
        }
        if something {
            self.check_changes();
        }
    }

    /// Takes note of what has come or gone.
    fn check_changes(&mut self) {
        let Some(changes) = &mut self.changes else { return self.schedule.note_change() };
        let change = changes.take();
        self.overflows.add(u64::from(change.overflown));
        if change.relevant || self.has_ended() {
            self.schedule.note_change();
        } else {
            // Files of others in a directory that everybody writes to must not keep us busy.
            self.schedule.note_noise(Instant::now());
        }
    }

    /// Whether a process has ended that the next collection is to see.
    fn has_ended(&self) -> bool {
        let Some(ends) = self.collector.ends() else { return false };
        let mut descriptors = [PollFd::from_borrowed_fd(ends, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut descriptors, Some(&now)).is_ok_and(|found| found > 0)
    }
}

/// What the service says of itself after a collection.
fn own_metrics(
    (collector, legacy): (&Collector, Option<&dyn LegacySocket>),
    metrics: &CollectionTotals,
    shared: &ServiceShared,
    clock: &dyn Clock,
) -> ServiceMetrics {
    ServiceMetrics {
        legacy: legacy.and_then(LegacySocket::metrics),
        truncated_directories: u64::try_from(collector.truncated().len()).unwrap_or(u64::MAX),
        ..metrics.now(shared, clock.now())
    }
}
