//! What a coordinator must not forget: decisions, and the state that follows from them.
//!
//! Heartbeats, reports and latencies are never stored. A decision is stored before any node hears of
//! it, and only on top of the state that it was made for.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;

use crate::epoch::{Epoch, JobIdentity, Revision, Term};
use crate::message::{JobOutcome, Master};
use crate::node::{Bar, NodeName};
use crate::policy::{Job, Mode};
use crate::rank::RankMap;

/// The state that the stored decisions have led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredState {
    /// The job's name; unknown where an older version stored it without one.
    pub job: Option<String>,
    /// Tells this job from another of the same name; not known before the first decision, or where a version
    /// stored it that drew none.
    pub identity: Option<JobIdentity>,
    /// The epoch that was decided last.
    pub epoch: Epoch,
    /// How far that epoch has come.
    pub phase: Phase,
    /// Whether no failure began that epoch: an operator ordered it, agents were asked to end, or it is the
    /// first. No node is charged for not being there yet, and no budget is asked.
    pub planned: bool,
    /// Who holds which slot in it.
    pub map: RankMap,
    /// How often the job was restarted.
    pub restarts: u32,
    /// The port of the last epoch that was committed, which the next one must not have.
    pub last_port: Option<NonZeroU16>,
    /// Who is kept out of the job, and why.
    pub barred: BTreeMap<NodeName, Bar>,
    /// Failures of each node that still count. A new leader counts them from when it began, since
    /// clocks of two machines tell nothing about each other.
    pub failures: BTreeMap<NodeName, u32>,
    /// Evictions that still count against the budget, likewise.
    pub evictions: u32,
    /// Restarts that still count against the budget, likewise.
    pub counted_restarts: u32,
    /// How much the coordinator does by itself.
    pub mode: Mode,
}

/// How far an epoch has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The job has not started: not enough nodes yet.
    Forming,
    /// Every node in the map stops what it ran, and slots may still be vacant.
    Preparing,
    /// Every node in the map is ordered to run, with rank 0 at this place. The map does not change any
    /// more in this epoch.
    Committed(Master),
    /// The job is over.
    Over(JobOutcome),
}

impl StoredState {
    /// Whether a node has a slot.
    #[must_use]
    pub fn has_slot(&self, node: &NodeName) -> bool {
        self.map.slot_of(node).is_some()
    }

    /// What is there before the first decision.
    #[must_use]
    pub fn initial(job: &Job, mode: Mode) -> Self {
        Self {
            job: Some(job.name.clone()),
            identity: None,
            epoch: Epoch::NONE_RAN,
            phase: Phase::Forming,
            planned: true,
            map: RankMap::vacant(job.slots, job.workers),
            restarts: 0,
            last_port: None,
            barred: BTreeMap::new(),
            failures: BTreeMap::new(),
            evictions: 0,
            counted_restarts: 0,
            mode,
        }
    }

    /// The state that prepares the epoch after this one, with the same map; `planned`, or begun by a failure.
    #[must_use]
    pub fn next_epoch(self, planned: bool) -> Self {
        let (epoch, restarts) = (self.epoch.next(), self.restarts.saturating_add(1));
        Self { epoch, phase: Phase::Preparing, planned, restarts, ..self }
    }

    /// What is there when the job is ended and this one begins in its place. Epochs and ports count on, so
    /// that no message is taken for one of an earlier epoch; quarantines, and what budgets have spent, stays.
    #[must_use]
    pub fn fresh(&self, job: &Job) -> Self {
        Self {
            epoch: self.epoch,
            last_port: self.last_port,
            barred: self.barred.clone(),
            failures: self.failures.clone(),
            evictions: self.evictions,
            counted_restarts: self.counted_restarts,
            ..Self::initial(job, self.mode)
        }
    }
}

/// One decision, to be stored on top of the state of one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The leader's term.
    pub term: Term,
    /// Counted from zero by each leader. Term and number must be stored with the state: a store that is
    /// given the same decision again, and has it, answers that it is stored.
    pub number: DecisionNumber,
    /// The revision that the store must still have.
    pub expected: Revision,
    /// Why, for the decision log.
    pub why: Why,
    /// The state that follows.
    pub state: StoredState,
}

/// The number of a decision of one leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DecisionNumber(pub u64);

/// Why something was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Enough nodes are there for the first epoch.
    Formed,
    /// An incident is answered with a new epoch.
    Incident {
        /// Its number.
        incident: crate::incident::IncidentId,
        /// Who is taken out of its slot for it.
        evicted: Vec<NodeName>,
    },
    /// Nodes that did not answer while preparing are replaced in the same epoch.
    Unanswered {
        /// Who.
        evicted: Vec<NodeName>,
    },
    /// The node that the last failure is attributed to has failed too often, and is replaced before the
    /// epoch begins.
    Quarantined {
        /// Which.
        node: NodeName,
    },
    /// Agents that were asked to end have given up their slots.
    Left {
        /// Whose.
        nodes: Vec<NodeName>,
    },
    /// Nodes that are not there for an epoch that was planned, or that its leader has never heard, have lost their
    /// slots.
    Absent {
        /// Who.
        nodes: Vec<NodeName>,
    },
    /// Spares have come for vacant slots.
    Filled,
    /// No spare has come, and the job goes on with fewer slots.
    Shrunk,
    /// Everybody is prepared.
    Prepared,
    /// The job is over.
    Over(JobOutcome),
    /// An operator ordered it.
    Ordered,
    /// Another job was stored, and was ended as the coordinator's operator wished.
    Reset,
}

impl Why {
    /// Who is taken out of its slot by the coordinator's own judgement.
    #[must_use]
    pub fn evicted(&self) -> &[NodeName] {
        match self {
            Self::Incident { evicted, .. } | Self::Unanswered { evicted } => evicted,
            Self::Quarantined { node } => std::slice::from_ref(node),
            Self::Formed
            | Self::Left { .. }
            | Self::Absent { .. }
            | Self::Filled
            | Self::Shrunk
            | Self::Prepared
            | Self::Over(_)
            | Self::Ordered
            | Self::Reset => &[],
        }
    }
}

impl fmt::Display for StoreOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stored(_) => "it is stored",
            Self::Conflict => "the store has another revision, so another coordinator decides; this one leads no more",
            Self::Failed => "the store did not take it; it is decided again; the log above has the store's error",
            Self::Unknown => {
                "the store did not say in time whether it is; it is asked until it does; the log above has its error"
            }
        })
    }
}

/// What a store says of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreOutcome {
    /// It is stored, and the store now has this revision.
    Stored(Revision),
    /// The store had another revision, and not by this decision: another coordinator decides.
    Conflict,
    /// It is certainly not stored.
    Failed,
    /// It is unknown whether it is stored. It is given to the store again until that is known.
    Unknown,
}
