//! What the metrics say of this moment.

use telltale_cluster::coordinator::CoordinatorCounts;
use telltale_cluster::detection::DetectionCounts;
use telltale_cluster::policy::Mode;

/// The state of a coordinator at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gauges {
    pub(super) leads: bool,
    pub(super) streams: usize,
    pub(super) metrics: CoordinatorCounts,
    pub(super) detection: DetectionCounts,
    pub(super) dropped_incidents: u64,
    /// Only of one that leads.
    pub(super) job: Option<JobGauges>,
}

/// What only a leader knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobGauges {
    pub(super) term: u64,
    pub(super) epoch: u64,
    pub(super) runs: bool,
    pub(super) mode: Mode,
    pub(super) restarts: u32,
    pub(super) incident_open: bool,
    pub(super) active: usize,
    pub(super) standby: usize,
    pub(super) silent: usize,
    pub(super) barred: usize,
    pub(super) ended: usize,
}
