//! What the service publishes: a snapshot and the service's own metrics, never changed again.

use std::sync::Arc;
use std::time::Instant;

use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::Snapshot;

use super::metrics::ServiceMetrics;
use crate::alerts::AlertStates;

/// One publication.
#[derive(Debug, Clone)]
pub struct Published {
    /// Grows by one with each publication; a reader that sees a gap has missed some.
    pub sequence: u64,
    /// The machine.
    pub snapshot: Arc<Snapshot>,
    /// The service itself.
    pub service: ServiceMetrics,
    /// What is wrong with the machine, by the rules of the configuration.
    pub alerts: Arc<AlertStates>,
    /// When it was published, on a clock that never goes back.
    pub made_at: Instant,
    /// The number of the last collection that asked everybody, for those that wait for one.
    pub(crate) fresh: u64,
}

impl Published {
    /// Whether it has rates of what processes and the host use, as far as waiting can bring them: those of
    /// the host, or of the processes where the host's cannot be read.
    pub(super) fn has_rates(&self) -> bool {
        let Some(host) = &self.snapshot.host else { return false };
        let will_come =
            |cpu: &Reading<f64>| cpu.absence().is_some_and(|(reason, _)| reason == Absence::NotYet);
        let mut used = self.snapshot.processes.iter().filter_map(|one| one.usage.as_ref());
        match host.cpu_ratio.value() {
            Some(_) => true,
            None => !will_come(&host.cpu_ratio) && !used.any(|used| will_come(&used.cpu_ratio)),
        }
    }
}
