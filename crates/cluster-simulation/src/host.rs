//! One simulated node: its agent, and the processes that the agent runs.
//!
//! Processes outlive an agent that crashes, as real ones do.

use telltale_cluster::agent::{Agent, LocalRank};
use telltale_cluster::epoch::{Epoch, Term};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};

use crate::clock::{MachineClock, TrueTime};
use crate::safety::CheckedProcess;

/// A node.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: NodeName,
    pub(crate) address: HostAddress,
    pub(crate) clock: MachineClock,
    pub(crate) agent: Option<Agent>,
    /// Counts the lives of its agent; what is meant for an earlier one is dropped.
    pub(crate) life: u64,
    /// Nothing on it moves before this.
    pub(crate) paused_until: TrueTime,
    pub(crate) processes: Vec<SimulatedWorker>,
    /// The leader that it has a way to.
    pub(crate) leader: Option<(usize, Term)>,
    /// What a life of its agent that was asked to end has left for the next: the first of such lives in a row.
    pub(crate) planned_since: Option<Incarnation>,
    /// What the present life of its agent has found of that.
    pub(crate) began_after: Option<Incarnation>,
    /// It will not come back.
    pub(crate) dead: bool,
}

/// A worker's process.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedWorker {
    pub(crate) id: u64,
    pub(crate) epoch: Epoch,
    pub(crate) local: LocalRank,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) master: String,
    /// Whether it has come to be; before, it is only on its way.
    pub(crate) runs: bool,
}

impl SimulatedWorker {
    pub(crate) fn seen(&self, host: usize) -> CheckedProcess {
        CheckedProcess { host, epoch: self.epoch.number(), rank: self.rank }
    }
}

impl Host {
    pub(crate) fn new(index: usize, clock: MachineClock) -> Self {
        let checked = "letters and digits make a name";
        Self {
            name: NodeName::new(&format!("node{index}")).expect(checked),
            address: HostAddress::new(&format!("host{index}")).expect(checked),
            clock,
            agent: None,
            life: 0,
            paused_until: TrueTime::default(),
            processes: Vec::new(),
            leader: None,
            planned_since: None,
            began_after: None,
            dead: false,
        }
    }

    /// Leaves word for the next life that this one was asked to end.
    pub(crate) fn mark_planned_end(&mut self) {
        self.planned_since = self.began_after.or(Some(Incarnation::new(self.life)));
    }

    pub(crate) fn worker(&self, id: u64) -> Option<&SimulatedWorker> {
        self.processes.iter().find(|worker| worker.id == id)
    }

    pub(crate) fn worker_of(&self, epoch: Epoch, local: LocalRank) -> Option<u64> {
        let is_it = |worker: &&SimulatedWorker| worker.epoch == epoch && worker.local == local;
        self.processes.iter().find(is_it).map(|worker| worker.id)
    }
}
