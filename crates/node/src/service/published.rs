//! What the service publishes: a snapshot and the service's own metrics, never changed again.

use std::sync::Arc;
use std::time::Instant;

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
