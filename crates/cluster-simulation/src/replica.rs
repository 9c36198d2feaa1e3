//! One simulated coordinator process, with its lease and what it waits for from the store.
//!
//! It does what a driver must: it does not lead longer than its own clock allows, and it tells the
//! machine that a write has failed when no answer comes.

use std::time::Duration;

use telltale_cluster::coordinator::Coordinator;
use telltale_cluster::epoch::Term;
use telltale_cluster::incident::Incident;
use telltale_cluster::stored::DecisionNumber;
use telltale_cluster::time::Moment;

use crate::clock::{MachineClock, TrueTime};
use crate::store::LEASE;

/// How often the lease is asked for or renewed.
pub(crate) const CAMPAIGN_INTERVAL: Duration = Duration::from_millis(500);

/// How long an answer of the store is waited for.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// A coordinator process.
#[derive(Debug)]
pub(crate) struct SimulatedCoordinator {
    pub(crate) clock: MachineClock,
    pub(crate) coordinator: Option<Coordinator>,
    /// Counts its lives; what is meant for an earlier one is dropped.
    pub(crate) life: u64,
    pub(crate) paused_until: TrueTime,
    pub(crate) lease: Option<HeldLease>,
    pub(crate) last_campaign: Option<Moment>,
    /// It does not try to lead before this.
    pub(crate) rests_until: Moment,
    /// The decision that is with the store, and until when an answer is waited for.
    pub(crate) storing: Option<(DecisionNumber, Moment)>,
    pub(crate) last_verdicts: Moment,
    /// Its last report of an incident.
    pub(crate) reported: Option<Box<Incident>>,
    /// It does nothing any more ([`crate::defect::Defect::LockedUp`]).
    pub(crate) stuck: bool,
}

/// A lease as its holder sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLease {
    pub(crate) term: Term,
    pub(crate) until: Moment,
}

impl SimulatedCoordinator {
    pub(crate) const fn new(clock: MachineClock) -> Self {
        let start = Moment::from_ns(0);
        Self {
            clock,
            coordinator: None,
            life: 0,
            paused_until: TrueTime(Duration::ZERO),
            lease: None,
            last_campaign: None,
            rests_until: start,
            storing: None,
            last_verdicts: start,
            reported: None,
            stuck: false,
        }
    }

    /// Until when a lease that was asked for at `asked` may be relied on: a tenth less than the store
    /// gives, for clocks that differ.
    pub(crate) fn lease_until(asked: Moment) -> Moment {
        asked.after(LEASE - LEASE / 10)
    }
}
