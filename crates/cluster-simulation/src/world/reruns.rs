//! An operator who runs a job repeatedly: epochs that no failure begins.
//!
//! When every rank has finished, agents end, as they do without `--stay`. The operator restarts the job, and
//! starts the agents again, at times of their own. Sometimes a job that still runs is restarted, or an agent, or several
//! agents while no coordinator is there.

use std::time::Duration;

use telltale_cluster::agent::AgentInput;
use telltale_cluster::coordinator::OperatorOrder;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::stored::Phase;

use super::troubles::Trouble;
use super::{World, WorldEvent};
use crate::clock::TrueTime;

/// How often the operator looks.
const EVALUATION_INTERVAL: Duration = Duration::from_millis(500);

/// How an agent ends that has nothing to do any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentEnd {
    /// It is asked to, and says so.
    Announced,
    /// It is asked to, and its last message comes too late.
    Unheard,
    /// It is killed, so nothing tells the next life how it ended.
    Killed,
}

/// What the operator is at.
#[derive(Debug, Default)]
pub(super) struct Reruns {
    /// The epoch whose end was seen.
    seen: Option<Epoch>,
    /// When the job is restarted after that.
    restart_at: TrueTime,
}

impl World {
    pub(super) fn plan_reruns(&mut self) {
        self.after(EVALUATION_INTERVAL, WorldEvent::Trouble(Trouble::Rerun));
    }

    /// The operator checks the job, and does what is next.
    pub(super) fn rerun(&mut self) {
        self.after(EVALUATION_INTERVAL, WorldEvent::Trouble(Trouble::Rerun));
        let Some(state) = self.store.state() else { return };
        let (epoch, is_over) = (state.epoch, matches!(state.phase, Phase::Over(_)));
        let runs = self.runs_as(state);
        if is_over && self.reruns.seen != Some(epoch) {
            self.reruns.seen = Some(epoch);
            self.end_and_start_again();
        } else if (is_over && self.now >= self.reruns.restart_at)
            || (runs && self.random.happens(0.05))
        {
            self.command(OperatorOrder::Restart);
        } else if runs && self.random.happens(0.05) {
            self.restart_agents_unheard();
        } else if runs && self.random.happens(0.05) {
            let host = self.some_host();
            let back_after = self.some_time(6);
            self.safety.ordered(None, self.now);
            self.agent_leaves(host, back_after);
        }
    }

    /// Agents are restarted while no coordinator is there, one or several in the same moment. They are back before a
    /// coordinator can miss them.
    fn restart_agents_unheard(&mut self) {
        for replica in 0..self.replicas.len() {
            let back_after = Duration::from_secs(1) + self.some_time(8);
            self.replica_crashes(replica, back_after);
        }
        // Those that have the slots, for whom no spare is waiting.
        let busy = (0..self.hosts.len()).filter(|host| !self.hosts[*host].processes.is_empty());
        let busy: Vec<usize> = busy.collect();
        let together = self.random.happens(0.5);
        for host in busy {
            if !self.random.happens(0.6) {
                continue;
            }
            self.safety.ordered(None, self.now.after(Duration::from_secs(15)));
            let most = if together { Duration::from_millis(400) } else { Duration::from_secs(1) };
            let back_after = self.random.duration(Duration::from_millis(350), most);
            self.agent_leaves(host, back_after);
        }
    }

    /// The job is over: most agents end, and are started again after the order.
    fn end_and_start_again(&mut self) {
        let wait = self.random.duration(Duration::from_millis(10), Duration::from_secs(8));
        self.reruns.restart_at = self.now.after(wait);
        for host in 0..self.hosts.len() {
            if self.random.happens(0.2) {
                continue;
            }
            let ends = self.random.duration(Duration::from_millis(10), Duration::from_millis(100));
            let end = match (self.random.happens(0.8), self.random.happens(0.5)) {
                (true, _) => AgentEnd::Announced,
                (false, true) => AgentEnd::Unheard,
                (false, false) => AgentEnd::Killed,
            };
            self.after(ends, WorldEvent::Trouble(Trouble::AgentEnds { host, end }));
            let most = if self.random.happens(0.1) { 25 } else { 8 };
            let back = wait + Duration::from_millis(500) + self.some_time(most);
            self.after(back, WorldEvent::Trouble(Trouble::AgentIsBack { host }));
        }
        if self.random.happens(0.2) {
            let replica =
                self.random.index(self.replicas.len()).expect("there are two coordinators");
            let back_after = self.some_time(5);
            self.replica_crashes(replica, back_after);
        }
    }

    /// An agent ends because the job is over. It runs nothing.
    pub(super) fn agent_ends(&mut self, index: usize, end: AgentEnd) {
        self.safety.left(&self.hosts[index].name, self.now);
        if self.hosts[index].agent.is_none() || !self.hosts[index].processes.is_empty() {
            return;
        }
        // Once the job goes on, a killed node is charged for it.
        let is_over = self.store.state().is_some_and(|state| matches!(state.phase, Phase::Over(_)));
        if end == AgentEnd::Announced {
            self.agent_step(index, AgentInput::Leave);
        }
        let host = &mut self.hosts[index];
        // The mark stays also where no coordinator hears the goodbye.
        if end != AgentEnd::Killed || !is_over {
            host.mark_planned_end();
        }
        host.agent = None;
        host.life += 1;
    }

    pub(super) fn agent_is_back(&mut self, index: usize) {
        self.safety.left(&self.hosts[index].name, self.now);
        let life = self.hosts[index].life;
        self.agent_starts(index, life);
    }
}
