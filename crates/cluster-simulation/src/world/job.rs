//! The job's processes: they begin, work, fail together, and end.

use std::time::Duration;

use telltale_cluster::agent::{AgentInput, Exit};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::observation::FailureDetail;
use telltale_cluster::rank::Rank;
use telltale_cluster::stored::{Phase, StoredState};

use super::{World, WorldEvent};
use crate::scenario::Kinds;

/// How the job is doing.
#[derive(Debug, Default)]
pub(super) struct JobWatch {
    /// Counts processes that have ended, so that a plan made before is seen to be old.
    deaths: u64,
}

impl World {
    pub(super) fn process_begins(&mut self, index: usize, id: u64, life: u64) {
        let host = &mut self.hosts[index];
        let Some(worker) = host.processes.iter_mut().find(|worker| worker.id == id) else { return };
        let (epoch, local) = (worker.epoch, worker.local);
        if self.random.happens(self.scenario.failing_starts()) && !self.healed {
            host.processes.retain(|worker| worker.id != id);
            let name = host.name.clone();
            self.safety.excuse(&name, self.now);
            let input = AgentInput::WorkerNotStarted { epoch, local };
            self.after(Duration::ZERO, WorldEvent::HostInput { host: index, life, input });
            return;
        }
        worker.runs = true;
        let seen = worker.seen(index);
        self.summary.processes += 1;
        self.safety.process_began(self.now, seen);
        let input = AgentInput::WorkerStarted { epoch, local };
        self.after(Duration::ZERO, WorldEvent::HostInput { host: index, life, input });
        self.plan_the_end(epoch);
    }

    /// Whether a state's ranks all run, on the nodes and with the rank 0 that it says.
    pub(super) fn runs_as(&self, state: &StoredState) -> bool {
        let Phase::Committed(master) = &state.phase else { return false };
        let place = format!("{}:{}", master.address.as_str(), master.port);
        let first = state.map.node_of_rank(Rank(0));
        let reachable = self
            .hosts
            .iter()
            .any(|host| Some(&host.name) == first && host.address == master.address);
        reachable
            && (0..state.map.world_size()).map(Rank).all(|rank| {
                let node = state.map.node_of_rank(rank);
                let host = self.hosts.iter().find(|host| Some(&host.name) == node);
                host.is_some_and(|host| {
                    self.now >= host.paused_until
                        && host.processes.iter().any(|worker| {
                            worker.runs
                                && worker.epoch == state.epoch
                                && worker.rank == rank.0
                                && worker.world == state.map.world_size()
                                && worker.master == place
                        })
                })
            })
    }

    fn plan_the_end(&mut self, epoch: Epoch) {
        let Some(work) = self.scenario.work else { return };
        let state = self.store.state().filter(|state| state.epoch == epoch);
        if state.is_some_and(|state| self.runs_as(state)) {
            let deaths = self.job.deaths;
            self.after(work, WorldEvent::JobDone { deaths });
        }
    }

    pub(super) fn job_done(&mut self, deaths: u64) {
        let state = self.store.state();
        if self.job.deaths != deaths || !state.is_some_and(|state| self.runs_as(state)) {
            return;
        }
        for host in 0..self.hosts.len() {
            let ids: Vec<u64> = self.hosts[host].processes.iter().map(|worker| worker.id).collect();
            for id in ids {
                let wait = self.random.duration(Duration::ZERO, Duration::from_millis(300));
                self.after(wait, WorldEvent::ProcessEnds { host, id, exit: Exit::Code(0) });
            }
        }
    }

    pub(super) fn process_ends(&mut self, index: usize, id: u64, exit: Exit) {
        let host = &self.hosts[index];
        let killed = exit == Exit::Signal(9);
        let Some(worker) = host.worker(id).cloned() else { return };
        if self.now < host.paused_until && !killed {
            let wait = host.paused_until.since(self.now);
            self.after(wait, WorldEvent::ProcessEnds { host: index, id, exit });
            return;
        }
        let life = host.life;
        self.hosts[index].processes.retain(|worker| worker.id != id);
        self.job.deaths += 1;
        if worker.runs {
            self.safety.process_ended(worker.seen(index));
        }
        let (epoch, local) = (worker.epoch, worker.local);
        let input =
            AgentInput::WorkerExited { epoch, local, exit, detail: FailureDetail::default() };
        self.after(Duration::from_millis(1), WorldEvent::HostInput { host: index, life, input });
        if exit != Exit::Code(0) {
            self.echo(epoch);
        }
    }

    /// When a worker fails, those that it talked to fail soon after.
    pub(super) fn echo(&mut self, epoch: Epoch) {
        if self.scenario.kinds == Kinds::CrowdCutAmongFailures {
            return;
        }
        for host in 0..self.hosts.len() {
            let peers = self.hosts[host].processes.iter();
            let peers: Vec<u64> =
                peers.filter(|one| one.runs && one.epoch == epoch).map(|one| one.id).collect();
            for id in peers {
                let wait =
                    self.random.duration(Duration::from_millis(5), Duration::from_millis(150));
                self.after(wait, WorldEvent::ProcessEnds { host, id, exit: Exit::Code(1) });
            }
        }
    }
}
