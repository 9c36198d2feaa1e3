//! What the collecting thread does: collects when it is time or when somebody asks, and publishes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::figures::Figures;
use super::view::{Publisher, Shared, View};
use crate::clock::SystemClock;
use crate::collector::Collector;
use telltale_schema::clock::Clock;

/// The thread's own state.
pub(crate) struct Collecting {
    collector: Collector,
    shared: Arc<Shared>,
    publisher: Publisher,
    figures: Figures,
}

// === impl Collecting ===

impl Collecting {
    /// Collects for the first time.
    pub(crate) fn begin(mut collector: Collector, shared: Arc<Shared>) -> (Self, View) {
        let mut figures = Figures::new(SystemClock.now());
        shared.begin();
        let snapshot = Arc::new(collector.collect());
        figures.count(&snapshot);
        let own = figures.now(shared.tallies().all(), SystemClock.now());
        let (publisher, view) = Publisher::of(Arc::clone(&shared), snapshot, own);
        (Self { collector, shared, publisher, figures }, view)
    }

    /// Goes on until it is asked to stop.
    pub(crate) fn run(&mut self) {
        let mut due = Instant::now() + self.shared.interval();
        while !self.shared.is_asked_to_stop() {
            let now = Instant::now();
            if now >= due || self.shared.is_fresh_wanted() {
                self.collect();
                // A late collection is not made up for.
                due = (due + self.shared.interval()).max(Instant::now());
                continue;
            }
            self.wait(due - now);
        }
    }

    fn collect(&mut self) {
        self.publisher.begin();
        let snapshot = Arc::new(self.collector.collect());
        self.figures.count(&snapshot);
        let own = self.figures.now(self.shared.tallies().all(), SystemClock.now());
        self.publisher.publish(snapshot, own);
    }

    /// Waits until something is to be done, but no longer than `span`.
    fn wait(&self, span: Duration) {
        let mut descriptors = [PollFd::new(self.shared.bell(), PollFlags::IN)];
        let timeout = Timespec::try_from(span).ok();
        // An error (a signal) only means that we look earlier.
        let _ = poll(&mut descriptors, timeout.as_ref());
        self.shared.bell().silence();
    }
}
