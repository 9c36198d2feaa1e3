//! The service's inputs: its configuration, and what its parts have done.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::metrics::HistoryMetrics;
use super::shared::ServiceShared;
use super::tally::Tally;
use super::view::{Publisher, View};
use crate::alerts::{Notices, Rule};

/// Tells the service what to do, and what its parts have done. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<ServiceShared>,
    view: View,
}

// === impl Control ===

impl Control {
    /// Has the collecting thread end.
    pub(crate) fn ask_to_stop(&self) {
        self.shared.ask_to_stop();
    }

    /// What reads what is published.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// Says that a process has come or gone, of which nothing in the file system reports.
    pub(crate) fn note_change(&self) {
        self.shared.ring_for_change();
    }

    /// From now on collects each `interval`.
    pub fn set_interval(&self, interval: Duration) {
        self.shared.set_interval(interval);
    }

    /// Evaluates these rules from now on.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        *self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        self.shared.eventfd.ring();
    }

    /// What to report of alerts.
    pub fn notices(&self) -> &Arc<Notices> {
        &self.shared.notices
    }

    /// The counter of what the queue or limit of this name drops or refuses, which is published
    /// with the service's metrics. The name is part of a metric: lower case, words by underscores.
    pub fn tally(&self, queue: &'static str) -> Tally {
        self.shared.tallies.of(queue)
    }

    /// Notes how the history does, for the publications from now on.
    pub fn note_history(&self, metrics: HistoryMetrics) {
        *self.shared.history.lock().unwrap_or_else(PoisonError::into_inner) = Some(metrics);
    }

    /// Counts that the configuration was read again, and `taken` or refused.
    pub fn note_reload(&self, taken: bool) {
        self.shared.reloads.fetch_add(1, Ordering::Relaxed);
        self.shared.refused_reloads.fetch_add(u64::from(!taken), Ordering::Relaxed);
    }
}

// === impl Publisher ===

impl Publisher {
    /// What tells the service what to do, of this publisher's view.
    pub fn control(&self) -> Control {
        let shared = Arc::clone(&self.shared);
        let view = View { shared: Arc::clone(&shared), latest: self.latest.subscribe() };
        Control { shared, view }
    }
}
