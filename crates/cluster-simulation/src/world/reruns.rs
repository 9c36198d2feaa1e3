//! An operator who runs a job again and again: epochs that nobody's failure begins.
//!
//! When every rank has finished, agents end, as they do without `--stay`. The operator restarts the job, and
//! starts the agents again, at times of their own. Sometimes a job that still runs is restarted, or an agent.

use std::time::Duration;

use telltale_cluster::agent::AgentInput;
use telltale_cluster::coordinator::OperatorOrder;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::stored::Phase;

use super::troubles::Trouble;
use super::{Event, World};
use crate::clock::TrueTime;

/// How often the operator looks.
const LOOK: Duration = Duration::from_millis(500);

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
        self.after(LOOK, Event::Trouble(Trouble::Rerun));
    }

    /// The operator looks at the job, and does what is next.
    pub(super) fn rerun(&mut self) {
        self.after(LOOK, Event::Trouble(Trouble::Rerun));
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
            let host = self.some_host();
            let back_after = self.some_time(6);
            self.safety.ordered(None, self.now);
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
            // One that is killed, or whose last message comes too late, is not heard to end.
            let says_so = self.random.happens(0.8);
            self.after(ends, Event::Trouble(Trouble::AgentEnds { host, says_so }));
            let most = if self.random.happens(0.1) { 25 } else { 8 };
            let back = wait + Duration::from_millis(500) + self.some_time(most);
            self.after(back, Event::Trouble(Trouble::AgentIsBack { host }));
        }
        if self.random.happens(0.2) {
            let seat = self.random.index(self.seats.len()).expect("there are two coordinators");
            let back_after = self.some_time(5);
            self.seat_crashes(seat, back_after);
        }
    }

    /// An agent ends because the job is over. It runs nothing.
    pub(super) fn agent_ends(&mut self, index: usize, says_so: bool) {
        self.safety.left(&self.hosts[index].name, self.now);
        if self.hosts[index].agent.is_none() || !self.hosts[index].processes.is_empty() {
            return;
        }
        if says_so {
            self.agent_step(index, AgentInput::Leave);
        }
        let host = &mut self.hosts[index];
        host.agent = None;
        host.life += 1;
    }

    pub(super) fn agent_is_back(&mut self, index: usize) {
        self.safety.left(&self.hosts[index].name, self.now);
        let life = self.hosts[index].life;
        self.agent_starts(index, life);
    }
}
