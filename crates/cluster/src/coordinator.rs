//! The coordinator: knows who is there, decides who runs what, and sees it carried out.
//!
//! It is a machine: [`Coordinator::step`] takes the time and one input and appends outputs. It reports
//! no node of a decision that is not stored, and decides nothing while the last one is on its way to
//! the store. What detection computes from reports comes in as verdicts.

mod behind;
mod budget;
mod evictions;
mod health;
mod incidents;
mod leadership;
mod leaving;
mod mass_silence;
mod membership;
mod operator;
mod other_job;
mod preparing;
mod repeats;
mod roster;
mod round;

use crate::epoch::{Epoch, JobIdentity, Revision, Term};
use crate::incident::{Hold, HookOutcome, Incident, IncidentId};
use crate::message::{FromNode, NotPrepared, ToNode};
use crate::node::{NodeName, NodeState};
use crate::policy::{Job, Policy, PolicyError};
use crate::rank::RankMap;
use crate::stored::{Decision, DecisionNumber, Phase, StoreOutcome, StoredState};
use crate::time::Moment;
use crate::verdict::Verdict;
use std::time::Duration;

use thiserror::Error;

pub use behind::Behind;
pub use leadership::MAX_NODES;
pub use operator::{MAX_WAITING_ORDERS, OperatorOrder, OrderRefused, RequestId};
pub use other_job::{OtherJob, check_stored};
pub use repeats::STARTUP_WINDOW;

use behind::Takeover;
use leadership::Leadership;

/// What a coordinator receives.
#[derive(Debug, Clone)]
pub enum Input {
    /// It leads from now on, and this is what is stored; nothing, where nothing ever was.
    LeadershipGained {
        /// The term, as the election gives it.
        term: Term,
        /// What is stored, and its revision.
        stored: Option<(StoredState, Revision)>,
    },
    /// It does not lead any more.
    LeadershipLost,
    /// A node has sent this.
    Node(FromNode),
    /// A node's connection was closed at its end.
    Closed {
        /// Whose.
        node: NodeName,
    },
    /// Detection has checked one more window of this epoch, and these are all its verdicts.
    Verdicts {
        /// The epoch that the window is of.
        epoch: Epoch,
        /// What was found.
        verdicts: Vec<Verdict>,
    },
    /// This epoch seems to hang: its nodes must take the stacks of their workers.
    Examine {
        /// The epoch.
        epoch: Epoch,
        /// Whether it hangs for certain, so that they say where their workers stand.
        reports: bool,
    },
    /// An operator orders something.
    Operator {
        /// Comes back with the answer.
        request: RequestId,
        /// What.
        order: OperatorOrder,
    },
    /// The store has answered.
    Stored {
        /// The decision.
        decision: DecisionNumber,
        /// What became of it.
        outcome: StoreOutcome,
    },
    /// The command that [`Output::BeforeDrain`] asked for last has ended.
    BeforeDrainEnded(HookOutcome),
    /// Time has passed. To be given about ten times a second.
    Tick,
}

/// What a coordinator wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Send this to a node.
    Send {
        /// To whom.
        node: NodeName,
        /// What.
        message: ToNode,
    },
    /// Store this, and tell what became of it. There is never more than one under way, but the same
    /// may be asked for again.
    Store(Box<Decision>),
    /// An incident is new or stands differently.
    Incident(Box<Incident>),
    /// Run the policy's command before these nodes are taken out of a job that runs, end it when its time is over, and
    /// say how it ended. One that still runs for another incident must be ended first.
    BeforeDrain {
        /// For which incident.
        incident: IncidentId,
        /// The nodes.
        nodes: Vec<NodeName>,
    },
    /// Log that a node has said that it cannot prepare the present epoch.
    NotPrepared {
        /// Which.
        node: NodeName,
        /// Why.
        why: NotPrepared,
    },
    /// Log that an agent knows another job of this name, and was not taken.
    Stray {
        /// Whose.
        node: NodeName,
        /// The latest epoch of that job that it knows.
        epoch: Epoch,
    },
    /// Tell a node why what it has just said is not taken.
    Refuse {
        /// To whom.
        node: NodeName,
        /// Why.
        why: Stale,
    },
    /// The answer to an operator's order.
    Answer {
        /// The request.
        request: RequestId,
        /// What became of it.
        answer: Result<(), OrderRefused>,
    },
    /// It leads no longer by its own decision: give up the lease.
    StepDown(StepDown),
}

/// Why a coordinator gives up leadership by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepDown {
    /// The store had another revision, so another coordinator decides.
    Conflict,
    /// What is stored is not the job that was asked for. It will be so next time too.
    OtherJob(Box<OtherJob>),
}

/// What a coordinator has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CoordinatorCounts {
    /// Messages of an incarnation that is not the node's latest.
    pub stale_incarnations: u64,
    /// Registrations and reports that came after a later one.
    pub stale_sequences: u64,
    /// Acknowledgements and verdicts of another epoch or another phase.
    pub stale_epochs: u64,
    /// Reports of other ranks than the node's own.
    pub foreign_ranks: u64,
    /// Messages of nodes that are not registered.
    pub unknown_nodes: u64,
    /// Registrations beyond [`MAX_NODES`].
    pub refused_nodes: u64,
    /// Messages and orders that came while it did not lead.
    pub not_leading: u64,
    /// Incidents that were opened.
    pub incidents: u64,
    /// Decisions that were stored.
    pub decisions: u64,
    /// Decisions that could not be stored.
    pub failed_decisions: u64,
    /// Nodes that were taken out of their slots, other than by an operator.
    pub evictions: u64,
    /// Orders that were sent again.
    pub repeated_orders: u64,
}

/// Why a message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Stale {
    /// This coordinator does not lead.
    #[error("this coordinator does not lead")]
    NotLeading,
    /// The node is not registered, or with another incarnation.
    #[error("the node is not registered with this life of its agent")]
    Incarnation,
    /// A later message of the node was here before.
    #[error("it comes again, or after a later message of this node, and was not taken")]
    Sequence,
    /// It is of another epoch than the one that runs, or of a node without a slot in it; an
    /// acknowledgement, of another epoch or phase.
    #[error("it is about another epoch or phase than the job is in, and was not taken")]
    Epoch,
    /// Its agent knows more of the job than is stored.
    #[error(
        "this coordinator's store knows less of the job than agents do, so it decides nothing; workers go on, and \
         `telltale cluster status` says what to do"
    )]
    Behind,
    /// Its agent knows another job of this name.
    #[error(
        "this agent has run another job of this name, and workers go on; if this is the coordinator that it is to \
         serve now, restart this agent"
    )]
    OtherJob,
    /// Its workers are not exactly those of the node's slot.
    #[error("it reports other ranks than those of this node's slot, and was rejected")]
    Ranks,
}

/// The coordinator of one job.
#[derive(Debug)]
pub struct Coordinator {
    job: Job,
    policy: Policy,
    leadership: Option<Leadership>,
    metrics: CoordinatorCounts,
    /// Whether the first leadership ends another job that it finds.
    resets: bool,
    /// Whether agents of a job that the store does not know are ended for a new one.
    takeover: Takeover,
    /// The identity of a job that begins.
    identity: Option<JobIdentity>,
}

impl Coordinator {
    /// A coordinator that does not lead yet.
    ///
    /// # Errors
    /// When the job cannot be run by this policy.
    pub fn new(job: Job, policy: Policy) -> Result<Self, PolicyError> {
        policy.check(&job)?;
        Ok(Self {
            job,
            policy,
            leadership: None,
            metrics: CoordinatorCounts::default(),
            resets: false,
            takeover: Takeover::default(),
            identity: None,
        })
    }

    /// Has its first leadership end another job, should one be stored, and begin this one: an operator who runs
    /// something stops it, and the job forms again. Quarantined nodes stay so, and epochs count on. Agents that
    /// know more of the job than is stored are ended too, until ten minutes after the job has formed; later
    /// only those of jobs that were ended until then.
    pub fn reset_other_job(&mut self) {
        self.resets = true;
        self.takeover = Takeover::Granted;
    }

    /// Sets by what a job that begins is distinguished from others of its name: a number that was drawn for this.
    pub const fn name_new_job(&mut self, identity: JobIdentity) {
        self.identity = Some(identity);
    }

    /// Agents that know more than is stored, for which nothing is decided, while it leads.
    #[must_use]
    pub fn behind(&self) -> Option<Behind> {
        self.leadership.as_ref().and_then(Leadership::behind)
    }

    /// Whether there are such agents: what [`Self::behind`] describes.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.leadership.as_ref().is_some_and(Leadership::is_blocked)
    }

    /// Takes one input at the time `now`, which never goes back, and appends the actions to take.
    pub fn step(&mut self, now: Moment, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::LeadershipGained { term, stored } => self.gain(now, term, stored, outputs),
            Input::LeadershipLost => self.abandon(outputs),
            input => match &mut self.leadership {
                Some(leadership) => {
                    let mut context = StepContext {
                        now,
                        job: &self.job,
                        policy: &self.policy,
                        takes_over: self.takeover.holds(now),
                        identity: self.identity,
                        metrics: &mut self.metrics,
                        outputs,
                    };
                    let outcome = leadership.step(&mut context, input);
                    self.takeover.see(now, leadership.state().phase != Phase::Forming);
                    if let Err(reason) = outcome {
                        self.abandon(outputs);
                        outputs.push(Output::StepDown(reason));
                    }
                }
                None => self.refuse(input, outputs),
            },
        }
    }

    /// Whether a report is of the epoch that runs and from a node that runs it, so that detection may
    /// take it. To be asked before the report is given to [`Self::step`].
    ///
    /// # Errors
    /// With the reason why not.
    pub fn accepts(&self, message: &FromNode) -> Result<(), Stale> {
        self.leadership.as_ref().ok_or(Stale::NotLeading)?.accepts(message)
    }

    /// Whether a message is of an earlier life of its node's agent than the one that is registered, so
    /// that it changes nothing.
    #[must_use]
    pub fn knows_later_life(&self, message: &FromNode) -> bool {
        self.leadership
            .as_ref()
            .is_some_and(|leadership| leadership.roster.knows_later_life(message))
    }

    /// Whether it leads.
    #[must_use]
    pub const fn leads(&self) -> bool {
        self.leadership.is_some()
    }

    /// The state that the decisions stored so far have led to, while it leads.
    #[must_use]
    pub fn state(&self) -> Option<&StoredState> {
        self.leadership.as_ref().map(Leadership::state)
    }

    /// The incident that is open, while it leads.
    #[must_use]
    pub fn incident(&self) -> Option<&Incident> {
        self.leadership.as_ref().and_then(Leadership::incident)
    }

    /// Why the epoch that is being prepared waits for more than its nodes, or why one that runs is not mended
    /// while a crowd is silent; while it leads.
    #[must_use]
    pub fn waits_for(&self) -> Option<Hold> {
        self.leadership.as_ref().and_then(Leadership::waits_for)
    }

    /// How much longer a crowd that is silent is held, if it stays silent. `None` where no node is held for
    /// that, or everybody is silent, which is held without a bound.
    #[must_use]
    pub fn mass_silence_left(&self, now: Moment) -> Option<Duration> {
        self.leadership.as_ref()?.mass_silence_left(now, &self.policy)
    }

    /// Whether every node of the current epoch has started its workers, while it leads.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.leadership.as_ref().is_some_and(Leadership::runs)
    }

    /// Every node that is known and what it is to the job, in the order of names.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeName, NodeState)> {
        self.leadership.iter().flat_map(Leadership::nodes)
    }

    /// What it has counted.
    #[must_use]
    pub const fn metrics(&self) -> CoordinatorCounts {
        self.metrics
    }

    fn gain(
        &mut self,
        now: Moment,
        term: Term,
        stored: Option<(StoredState, Revision)>,
        outputs: &mut Vec<Output>,
    ) {
        let (mut state, revision) = stored.unwrap_or_else(|| {
            (StoredState::initial(&self.job, self.policy.mode), Revision::EMPTY)
        });
        let resets = std::mem::take(&mut self.resets);
        let other = check_stored(&self.job, &state).err();
        if let Some(other) = other.clone().filter(|_| !resets) {
            outputs.push(Output::StepDown(StepDown::OtherJob(Box::new(other))));
            return;
        }
        if other.is_none() {
            state.job = Some(self.job.name.clone());
        }
        if state.phase == Phase::Forming {
            // No node runs anything, so this can wait for the next decision.
            state.map = RankMap::vacant(self.job.slots, self.job.workers);
        }
        let mut leadership = Leadership::new(now, &self.policy, term, state, revision);
        leadership.ends_other_job = other.is_some();
        self.leadership = Some(leadership);
    }

    fn abandon(&mut self, outputs: &mut Vec<Output>) {
        if let Some(leadership) = self.leadership.take() {
            leadership.abandon(outputs);
        }
    }

    fn refuse(&mut self, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Operator { request, .. } => {
                self.metrics.not_leading += 1;
                outputs.push(Output::Answer { request, answer: Err(OrderRefused::NotLeading) });
            }
            Input::Node(_) => self.metrics.not_leading += 1,
            _ => {}
        }
    }
}

/// What a step has at hand beside the leadership's own state.
struct StepContext<'a> {
    now: Moment,
    job: &'a Job,
    policy: &'a Policy,
    takes_over: bool,
    identity: Option<JobIdentity>,
    metrics: &'a mut CoordinatorCounts,
    outputs: &'a mut Vec<Output>,
}

impl StepContext<'_> {
    fn refuse(&mut self, node: NodeName, why: Stale) {
        self.outputs.push(Output::Refuse { node, why });
    }
}

#[cfg(test)]
mod tests;
