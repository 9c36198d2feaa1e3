//! What is wrong, as it was noticed: the events of an incident.

use crate::node::NodeName;
use crate::observation::FailureDetail;
use crate::observation::WorkerEnd;
use crate::rank::Rank;
use crate::time::Moment;
use crate::verdict::Verdict;
use crate::vitals::NodeFault;
use std::time::Duration;

/// Something that is wrong, as it was noticed.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultEvent {
    /// A worker failed.
    WorkerFailed {
        /// Where.
        node: NodeName,
        /// Which.
        rank: Rank,
        /// How.
        end: WorkerEnd,
        /// When, as near as the report's way allows.
        at: Moment,
        /// What it left.
        detail: FailureDetail,
    },
    /// A node is not heard any more.
    Silent {
        /// Which.
        node: NodeName,
    },
    /// A node's agent was restarted, and with it its workers are gone.
    AgentRestarted {
        /// Which.
        node: NodeName,
    },
    /// A node does not start its workers, though it was ordered often enough.
    NotStarted {
        /// Which.
        node: NodeName,
    },
    /// Detection suspects something.
    Suspected(Verdict),
    /// The health of a node has failed, and its workers may still run.
    Unhealthy {
        /// Which.
        node: NodeName,
        /// Why.
        fault: NodeFault,
        /// Whether it began in this epoch: an older one was there while the job ran well.
        is_new: bool,
    },
    /// The command that runs before nodes are drained has ended. Nothing is wrong by it.
    BeforeDrain(HookOutcome),
}

/// How the command that runs before nodes are drained has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOutcome {
    /// How its process ended; `None` if it was ended because its time was over.
    pub end: Option<WorkerEnd>,
    /// The last line that it printed, in at most 256 bytes; empty if it printed none.
    pub last_line: String,
    /// How long it took.
    pub took: Duration,
}

/// How much depends on an event, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// The job may go on.
    Doubt,
    /// The job cannot go on.
    End,
    /// Nor can it, and this says whose failure it is.
    Cause,
}

impl FaultEvent {
    /// Whether the job cannot go on after this, whatever else is true.
    #[must_use]
    pub const fn ends_the_epoch(&self) -> bool {
        match self {
            Self::WorkerFailed { .. } | Self::AgentRestarted { .. } | Self::NotStarted { .. } => {
                true
            }
            Self::Silent { .. }
            | Self::Suspected(_)
            | Self::Unhealthy { .. }
            | Self::BeforeDrain(_) => false,
        }
    }

    /// When and where a worker was killed, if this says so.
    pub(super) const fn killed(&self) -> Option<(Moment, &NodeName)> {
        match self {
            Self::WorkerFailed { node, end, at, .. } if end.is_cause() => Some((*at, node)),
            _ => None,
        }
    }

    /// How much depends on it: which event gives way where there are too many.
    pub(super) const fn weight(&self) -> Weight {
        if self.killed().is_some() {
            Weight::Cause
        } else if self.ends_the_epoch() {
            Weight::End
        } else {
            Weight::Doubt
        }
    }
}
