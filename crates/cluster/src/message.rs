//! What agents and the coordinator tell each other, as plain data.
//!
//! Receivers check a message from outside against the limits here before it becomes one
//! of these types. What is stale or repeated is for the machines to see.

use std::fmt;
use std::num::NonZeroU16;

use crate::epoch::{Epoch, JobIdentity, Term};
use crate::node::{HostAddress, Incarnation, NodeName};
use crate::observation::Observation;
use crate::rank::{Rank, Slot, WorkersPerNode};
use crate::vitals::NodeFault;

/// What an agent tells the coordinator.
#[derive(Debug, Clone, PartialEq)]
pub struct FromNode {
    /// Which node.
    pub node: NodeName,
    /// Which life of its agent.
    pub incarnation: Incarnation,
    /// Larger than in every message that this incarnation sent before. A registration or report that
    /// comes after a later one is dropped.
    pub sequence: u64,
    /// What it reports.
    pub body: FromNodeBody,
}

/// What an agent reports.
#[derive(Debug, Clone, PartialEq)]
pub enum FromNodeBody {
    /// Here I am. Sent until a coordinator answers, and again to each new one.
    Register(Registration),
    /// How my workers are. Sent each second, and at once when a worker ends.
    Report(Report),
    /// What became of an order.
    Acknowledge(Acknowledgement),
    /// I have examined my workers, as I was ordered. Where they stand is evidence for people, which travels beside
    /// this.
    Examined,
    /// My agent was asked to end, and my workers end with it: no need to wait for my silence. The last
    /// word of an incarnation.
    Leave,
}

/// What a node says about itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Where other nodes reach its workers.
    pub address: HostAddress,
    /// How many workers it can run.
    pub workers: WorkersPerNode,
    /// What it is doing.
    pub activity: AgentActivity,
    /// What this life of its agent heard of a job before.
    pub known: Option<KnownJob>,
    /// The first life of its agent since which every one was asked to end, up to the last before this one: a
    /// goodbye that may not have been heard. `None` if the last life failed, or nothing is known of it.
    pub planned_since: Option<Incarnation>,
}

/// What an agent knows of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KnownJob {
    /// Which.
    pub job: JobIdentity,
    /// The latest epoch that it heard of.
    pub epoch: Epoch,
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentActivity {
    /// It runs nothing.
    Idle,
    /// It has stopped everything, or is about to, and waits for the order what to run in this epoch.
    Preparing(Epoch),
    /// Its workers of this epoch were started; some or all of them may have ended since.
    Committed(Epoch),
}

impl AgentActivity {
    /// The epoch of the workers that were started last and not yet stopped for another.
    #[must_use]
    pub const fn running(self) -> Option<Epoch> {
        match self {
            Self::Committed(epoch) => Some(epoch),
            Self::Idle | Self::Preparing(_) => None,
        }
    }

    /// The epoch that it prepares or runs.
    #[must_use]
    pub const fn epoch(self) -> Option<Epoch> {
        match self {
            Self::Preparing(epoch) | Self::Committed(epoch) => Some(epoch),
            Self::Idle => None,
        }
    }
}

/// How a node's workers are.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What the agent is doing.
    pub activity: AgentActivity,
    /// Its workers, their progress and latencies, all of the epoch that it has committed to.
    pub observation: Observation,
    /// Why its health has failed, if it has ([`NodeHealth::failed`](crate::vitals::NodeHealth::failed)). The agent leaves it out: it travels in the vitals.
    pub fault: Option<Box<NodeFault>>,
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The epoch of the order.
    pub epoch: Epoch,
    /// What became of it.
    pub step: OrderStep,
}

/// How far an agent has come with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderStep {
    /// It has the order to prepare, and stops its workers.
    Stopping,
    /// No worker runs any more, and, where the order named ports, this one is free.
    Prepared {
        /// The free port, when the order named some.
        port: Option<NonZeroU16>,
    },
    /// It cannot prepare.
    NotPrepared(NotPrepared),
    /// All of its workers were started.
    Started,
}

/// Why an agent cannot prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotPrepared {
    /// All ports that it tried are taken.
    NoPort,
    /// It has started its workers too often without one epoch that lasted.
    RestartsUsedUp,
}

impl fmt::Display for NotPrepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoPort => "all ports that it tried are taken",
            Self::RestartsUsedUp => {
                "its restart budget is used up (`restart_budget` of the agent); `telltale cluster restart` \
                 starts a new count"
            }
        })
    }
}

/// What a coordinator tells an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToNode {
    /// Which leadership orders this. An agent that has heard of a later one does not listen.
    pub term: Term,
    /// Larger than in every message that this leader sent before, to any node. An agent that has
    /// heard a later one of this term does not listen.
    pub sequence: u64,
    /// The epoch that the order is about.
    pub epoch: Epoch,
    /// The job that it is about, once that has a stored decision.
    pub job: Option<JobIdentity>,
    /// What to do.
    pub order: Order,
}

/// What an agent is ordered to do. Every order may come twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// You are registered; go on with what you do.
    Welcome,
    /// I do not know you: register.
    Register,
    /// Stop all workers, and find a free port if some are named; then say so.
    Prepare {
        /// Named to the node that will run rank 0.
        ports: Option<Ports>,
        /// Whether no failure began the epoch: the count of starts restarts, since the budget is for failures.
        planned: bool,
    },
    /// Start these workers; then say so.
    Commit(Assignment),
    /// Take the stacks of your workers, which seem to hang; they go on.
    Examine {
        /// Whether it is for the last time, so that you say where they stand.
        reports: bool,
    },
    /// Stop all workers, and stand by.
    Standby,
    /// Stop all workers: the job is over.
    Stop(JobOutcome),
    /// Stop all workers: this node is out of the job until an operator readmits it.
    Evict,
    /// This job is over by an operator's will: stop all workers, forget it and who led it, and register. Obeyed
    /// whatever leader was heard before, and only by who knows that job.
    Forget(JobIdentity),
}

/// The ports of which rank 0 is given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The port behind the last epoch's, which is not taken again; the lowest in the first epoch.
    pub first: NonZeroU16,
    /// The lowest port of the range.
    pub least: NonZeroU16,
    /// The highest port of the range.
    pub greatest: NonZeroU16,
}

impl Ports {
    /// The port behind `port`, which is the lowest behind the highest.
    #[must_use]
    pub fn after(&self, port: NonZeroU16) -> NonZeroU16 {
        match port.checked_add(1) {
            Some(next) if next <= self.greatest && next >= self.least => next,
            _ => self.least,
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobOutcome {
    /// Every rank ended with exit code 0.
    Finished,
    /// It was restarted too often, or failed in the same way at each start.
    GivenUp,
}

/// What one node runs in one epoch: its own ranks, and a number that stands for the whole map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The node's slot (PyTorch's `GROUP_RANK`).
    pub slot: Slot,
    /// How many slots there are (`GROUP_WORLD_SIZE`).
    pub slots: u32,
    /// The rank of its first worker; the others follow without a gap.
    pub first_rank: Rank,
    /// How many workers it runs (`LOCAL_WORLD_SIZE`).
    pub workers: WorkersPerNode,
    /// How many ranks there are (`WORLD_SIZE`).
    pub world_size: u32,
    /// Where rank 0 is reached.
    pub master: Master,
    /// How often the job was restarted before (`TORCHELASTIC_RESTART_COUNT`).
    pub restarts: u32,
    /// [`crate::rank::RankMap::digest`] of the whole map.
    pub digest: u64,
    /// The job's name (`TORCHELASTIC_RUN_ID`).
    pub job: String,
    /// Restarts after which the job is given up (`TORCHELASTIC_MAX_RESTARTS`); 0 where the coordinator does not say.
    pub max_restarts: u32,
}

/// Where rank 0 is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Master {
    /// Its host (`MASTER_ADDR`).
    pub address: HostAddress,
    /// Its port (`MASTER_PORT`), another one than in the epoch before.
    pub port: NonZeroU16,
}
