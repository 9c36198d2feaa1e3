//! The agent: runs its node's workers as a coordinator orders, and reports how they are.
//!
//! It is a machine: [`Agent::step`] takes the time and one input and appends outputs. It starts nothing
//! by itself, never runs workers of two epochs at once, and goes on as it is when no coordinator is
//! to be reached.

mod environment;
mod orders;
mod resting;
mod workers;

use crate::epoch::{Epoch, Term};
use crate::message::{
    Acknowledgement, AgentActivity, Assignment, FromNode, FromNodeBody, JobOutcome, KnownJob,
    OrderStep, Ports, Registration, Report, ToNode,
};
use crate::node::{HostAddress, Incarnation, NodeName};
use crate::observation::{FailureDetail, Observation};
use crate::policy::AgentPolicy;
use crate::rank::{Rank, WorkersPerNode};
use crate::time::Moment;

pub use environment::environment;
pub use resting::Rest;
pub use workers::{Exit, LocalRank};

use std::num::NonZeroU16;

use orders::PortSearch;
use resting::Resting;
use workers::Workers;

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its node.
    pub node: NodeName,
    /// This life of it.
    pub incarnation: Incarnation,
    /// The first life of it since which every one was asked to end, up to the last before this one.
    pub planned_since: Option<Incarnation>,
    /// Where its workers are reached.
    pub address: HostAddress,
    /// How many workers it can run.
    pub workers: WorkersPerNode,
}

/// What an agent receives.
#[derive(Debug, Clone)]
pub enum AgentInput {
    /// Whatever an earlier life of this agent left running is gone.
    LeftoversGone,
    /// There is a way to a coordinator, perhaps another one than before.
    Connected,
    /// There is none.
    Disconnected,
    /// A coordinator orders this.
    Order(ToNode),
    /// A worker runs.
    WorkerStarted {
        /// The epoch it was started for.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
    },
    /// A worker could not be started.
    WorkerNotStarted {
        /// The epoch it was to be started for.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
    },
    /// A worker has ended, and nothing of its process group is left.
    WorkerExited {
        /// The epoch it was started for.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
        /// How.
        exit: Exit,
        /// What it left.
        detail: FailureDetail,
    },
    /// What became of [`AgentOutput::HoldPort`].
    PortHeld {
        /// The ports that were to be tried.
        ports: Ports,
        /// The one that is held now; nothing if none was free.
        port: Option<NonZeroU16>,
    },
    /// What the workers of this epoch have reported since this was last given. Of its workers only those
    /// count that the system says are stopped; how they ended is known here. Latencies of two that come
    /// between two reports are reported together; of the rest the later counts.
    Observed {
        /// The epoch.
        epoch: Epoch,
        /// What they reported.
        observation: Observation,
    },
    /// The workers of this epoch were examined, as [`AgentOutput::Examine`] asked with `reports`.
    Examined {
        /// The epoch.
        epoch: Epoch,
    },
    /// The agent was asked to end, and its workers will. It says so, and then nothing more; it starts and
    /// obeys nothing from here on.
    Leave,
    /// Time has passed. To be given at the time that [`Agent::due`] reports, or more often.
    Tick,
}

/// What an agent wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentOutput {
    /// Kill what an earlier life of this agent left running, and say when it is gone.
    ClearLeftovers,
    /// Send this to the coordinator, if there is a way to it.
    Send(Box<FromNode>),
    /// Start a worker with these variables added to its environment, and say what became of it.
    Start {
        /// The epoch.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
        /// The variables.
        environment: Vec<(&'static str, String)>,
    },
    /// Ask a worker to stop (`SIGTERM`). It may be on its way to being started.
    Terminate {
        /// The epoch.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
    },
    /// Kill a worker (`SIGKILL`), and then what it has started.
    Kill {
        /// The epoch.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
    },
    /// Find a free port and hold it in the place of the one before, as long as
    /// [`Agent::needs_port`], and say which.
    HoldPort(Ports),
    /// Take the stacks of the workers of this epoch.
    Examine {
        /// The epoch.
        epoch: Epoch,
        /// Whether to compare them with those before, and say that it is done.
        reports: bool,
    },
    /// The job is over and no worker is left: the agent may end.
    Over(JobOutcome),
}

/// What an agent has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AgentMetrics {
    /// Orders of a leader that another one has followed.
    pub stale_terms: u64,
    /// Orders that came again or after a later one.
    pub stale_orders: u64,
    /// Orders of an epoch that is over, or out of turn within theirs.
    pub stale_epochs: u64,
    /// Events of workers that are not those of the present epoch.
    pub stale_workers: u64,
    /// Workers that were started.
    pub starts: u64,
    /// Workers that had to be killed because they did not stop.
    pub kills: u64,
    /// Latency windows that were dropped because a report was full.
    pub dropped_windows: u64,
}

/// What an agent is at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AgentTask {
    /// It sees to it that nothing is left of an earlier life.
    Clearing,
    /// It runs nothing, or stops what it ran.
    Idle,
    /// It stops what it ran, and has a port held if it is asked to.
    Preparing { epoch: Epoch, search: PortSearch },
    /// It has started its workers.
    Committed { epoch: Epoch, assignment: Assignment, at: Moment },
}

/// The agent of one node.
#[derive(Debug)]
pub struct Agent {
    identity: Identity,
    policy: AgentPolicy,
    task: AgentTask,
    workers: Workers,
    /// The latest leader that was heard, and its latest order.
    heard: Option<(Term, u64)>,
    /// The latest epoch that was heard of; nothing is done for an earlier one.
    epoch: Epoch,
    /// The job that orders were about, and its latest epoch that was heard of.
    known: Option<KnownJob>,
    connected: bool,
    registered: bool,
    /// Whether it has said goodbye.
    leaving: bool,
    sequence: u64,
    next_message: Moment,
    observed: Observation,
    /// How often workers were started since an epoch lasted.
    starts: u32,
    resting: Resting,
    /// How the job ended, until that is reported.
    over: Option<JobOutcome>,
    metrics: AgentMetrics,
}

impl Agent {
    /// An agent that begins at the time `now`, and what it wants done first.
    #[must_use]
    pub fn new(identity: Identity, policy: AgentPolicy, now: Moment) -> (Self, AgentOutput) {
        let agent = Self {
            identity,
            policy,
            task: AgentTask::Clearing,
            workers: Workers::default(),
            heard: None,
            epoch: Epoch::NONE_RAN,
            known: None,
            connected: false,
            registered: false,
            leaving: false,
            sequence: 0,
            next_message: now,
            observed: Observation::default(),
            starts: 0,
            resting: Resting::default(),
            over: None,
            metrics: AgentMetrics::default(),
        };
        (agent, AgentOutput::ClearLeftovers)
    }

    /// Takes one input at the time `now`, which never goes back, and appends the actions to take.
    pub fn step(&mut self, now: Moment, input: AgentInput, outputs: &mut Vec<AgentOutput>) {
        match input {
            AgentInput::LeftoversGone => {
                if self.task == AgentTask::Clearing {
                    self.task = AgentTask::Idle;
                    self.next_message = now;
                }
            }
            AgentInput::Connected => {
                self.connected = true;
                self.registered = false;
                self.next_message = now;
            }
            AgentInput::Disconnected => {
                self.connected = false;
                self.registered = false;
            }
            AgentInput::Order(_) if self.leaving => {}
            AgentInput::Order(message) => self.obey(now, message, outputs),
            AgentInput::WorkerStarted { epoch, local } => {
                self.worker_started(now, (epoch, local), outputs);
            }
            AgentInput::WorkerNotStarted { epoch, local } => {
                self.worker_ended(now, (epoch, local), None, FailureDetail::default(), outputs);
            }
            AgentInput::WorkerExited { epoch, local, exit, detail } => {
                self.worker_ended(now, (epoch, local), Some(exit), detail, outputs);
            }
            AgentInput::Examined { epoch } => {
                if self.is_attended() && !self.leaving && self.running() == Some(epoch) {
                    self.send(FromNodeBody::Examined, outputs);
                }
            }
            AgentInput::PortHeld { ports, port } => self.port_held(ports, port, outputs),
            AgentInput::Observed { epoch, observation } => {
                if self.running() == Some(epoch) {
                    self.resting.observe(&observation);
                    self.observe(observation);
                }
            }
            AgentInput::Leave => self.leave(outputs),
            AgentInput::Tick => {
                self.kill_the_slow(now, outputs);
                self.end_rest(now, outputs);
            }
        }
        self.report(now, outputs);
    }

    /// The epoch whose workers were started and have not been ordered to stop.
    #[must_use]
    pub const fn running(&self) -> Option<Epoch> {
        match self.task {
            AgentTask::Committed { epoch, .. } => Some(epoch),
            _ => None,
        }
    }

    /// Whether rank 0's port is for this node to hold.
    #[must_use]
    pub fn needs_port(&self) -> bool {
        match &self.task {
            AgentTask::Preparing { search, .. } => search.asked().is_some(),
            AgentTask::Committed { assignment, .. } => assignment.first_rank == Rank(0),
            AgentTask::Clearing | AgentTask::Idle => false,
        }
    }

    /// Whether a coordinator knows it, as far as it was notified.
    #[must_use]
    pub const fn is_attended(&self) -> bool {
        self.connected && self.registered
    }

    /// Why nothing is started yet, if it rests after workers that ended soon.
    #[must_use]
    pub fn resting(&self) -> Option<Rest> {
        self.resting.present()
    }

    /// Whether a worker is there, be it only until it has stopped.
    #[must_use]
    pub fn has_workers(&self) -> bool {
        self.workers.any_alive()
    }

    /// The latest leader whose orders it has heard, and the number of the last one.
    #[must_use]
    pub const fn heard(&self) -> Option<(Term, u64)> {
        self.heard
    }

    /// What it has counted.
    #[must_use]
    pub const fn metrics(&self) -> AgentMetrics {
        self.metrics
    }

    /// When it has something to do next if nothing happens: to tell, to kill, or to end a rest. It may be
    /// past already.
    #[must_use]
    pub fn due(&self) -> Option<Moment> {
        let word = self.may_report().then_some(self.next_message);
        let kill = self.workers.kill_at.filter(|_| self.workers.any_alive());
        [word, kill, self.resting.until()].into_iter().flatten().min()
    }

    /// What it says that it does. Until all workers are started it only prepares, so that a new
    /// leader tells it again.
    fn activity(&self) -> AgentActivity {
        match self.task {
            AgentTask::Clearing | AgentTask::Idle => AgentActivity::Idle,
            AgentTask::Preparing { epoch, .. } => AgentActivity::Preparing(epoch),
            AgentTask::Committed { epoch, .. } if self.workers.any_starting() => {
                AgentActivity::Preparing(epoch)
            }
            AgentTask::Committed { epoch, .. } => AgentActivity::Committed(epoch),
        }
    }

    /// Whether there is a receiver, and something to send.
    fn may_report(&self) -> bool {
        self.connected && !self.leaving && self.task != AgentTask::Clearing
    }

    /// Registers or reports, when it is time.
    fn report(&mut self, now: Moment, outputs: &mut Vec<AgentOutput>) {
        if !self.may_report() || now < self.next_message {
            return;
        }
        let activity = self.activity();
        if self.registered {
            self.next_message = now.after(self.policy.report_interval);
            let mut observation = std::mem::take(&mut self.observed);
            let first = match &self.task {
                AgentTask::Committed { assignment, .. } => Some(assignment.first_rank),
                _ => None,
            };
            observation.workers = first
                .map_or_else(Vec::new, |first| self.workers.reported(now, first, &observation));
            observation.failures =
                first.map_or_else(Vec::new, |first| self.workers.failures(first));
            let report = Report { activity, observation, fault: None };
            self.send(FromNodeBody::Report(report), outputs);
        } else {
            self.next_message = now.after(self.policy.register_interval);
            let (address, workers) = (self.identity.address.clone(), self.identity.workers);
            let (known, planned_since) = (self.known, self.identity.planned_since);
            let registration = Registration { address, workers, activity, known, planned_since };
            self.send(FromNodeBody::Register(registration), outputs);
        }
    }

    /// Says goodbye, to a coordinator that knows it.
    fn leave(&mut self, outputs: &mut Vec<AgentOutput>) {
        if self.is_attended() && !self.leaving {
            self.send(FromNodeBody::Leave, outputs);
        }
        self.leaving = true;
    }

    /// Adds to what the next report contains.
    fn observe(&mut self, news: Observation) {
        let (observed, dropped) = news.with_unsent(std::mem::take(&mut self.observed));
        let dropped = u64::try_from(dropped).unwrap_or(u64::MAX);
        self.metrics.dropped_windows = self.metrics.dropped_windows.saturating_add(dropped);
        self.observed = observed;
    }

    fn send(&mut self, body: FromNodeBody, outputs: &mut Vec<AgentOutput>) {
        self.sequence += 1;
        let (node, incarnation) = (self.identity.node.clone(), self.identity.incarnation);
        let message = FromNode { node, incarnation, sequence: self.sequence, body };
        outputs.push(AgentOutput::Send(Box::new(message)));
    }

    fn acknowledge(&mut self, epoch: Epoch, step: OrderStep, outputs: &mut Vec<AgentOutput>) {
        let acknowledgement = Acknowledgement { epoch, step };
        self.send(FromNodeBody::Acknowledge(acknowledgement), outputs);
    }
}

#[cfg(test)]
mod tests;
