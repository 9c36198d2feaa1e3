//! Agents and what drives them.

use std::time::Duration;

use telltale_cluster::agent::{Agent, AgentInput, AgentOutput, Exit, Identity, LocalRank};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::message::{Assignment, Order, ToNode};
use telltale_cluster::node::Incarnation;
use telltale_cluster::stored::Phase;

use super::{World, WorldEvent};
use crate::defect::Defect;
use crate::host::SimulatedWorker;
use crate::network::NetworkMachine;

/// How often an agent's time passes.
const TICK: Duration = Duration::from_millis(250);

/// The signals by which workers are ended (signal(7)).
const KILL: Exit = Exit::Signal(9);
pub(super) const TERMINATE: Exit = Exit::Signal(15);

impl World {
    pub(super) fn agent_starts(&mut self, index: usize, life: u64) {
        let host = &mut self.hosts[index];
        if host.life != life || host.agent.is_some() || host.dead {
            return;
        }
        host.life += 1;
        host.leader = None;
        host.began_after = host.planned_since.take();
        let identity = Identity {
            node: host.name.clone(),
            incarnation: Incarnation::new(host.life),
            planned_since: host.began_after,
            address: host.address.clone(),
            workers: self.scenario.job.workers,
        };
        let now = host.clock.shows(self.now);
        let (agent, first) = Agent::new(identity, self.scenario.agent.clone(), now);
        host.agent = Some(agent);
        let (life, name) = (host.life, host.name.clone());
        if self.store.state().is_some_and(|state| state.phase == Phase::Preparing) {
            self.reborn.insert(name);
        }
        self.after(TICK, WorldEvent::HostTick { host: index, life });
        self.carry_out(index, first);
    }

    pub(super) fn host_tick(&mut self, index: usize, life: u64) {
        let host = &self.hosts[index];
        if host.life != life || host.agent.is_none() {
            return;
        }
        if self.now < host.paused_until {
            let wait = host.paused_until.since(self.now);
            self.after(wait, WorldEvent::HostTick { host: index, life });
            return;
        }
        // Where the leader is, an agent learns from the store; here by looking.
        let leader = self.store.leader(self.now);
        if leader.is_some() && leader != self.hosts[index].leader {
            self.hosts[index].leader = leader;
            self.agent_step(index, AgentInput::Connected);
        }
        self.agent_step(index, AgentInput::Tick);
        self.after(TICK, WorldEvent::HostTick { host: index, life });
    }

    pub(super) fn host_input(&mut self, index: usize, life: u64, input: AgentInput) {
        let host = &self.hosts[index];
        if host.life != life {
            return;
        }
        if self.now < host.paused_until {
            let wait = host.paused_until.since(self.now);
            self.after(wait, WorldEvent::HostInput { host: index, life, input });
            return;
        }
        self.agent_step(index, input);
    }

    pub(super) fn host_order(&mut self, index: usize, message: ToNode) {
        let host = &self.hosts[index];
        if host.agent.is_none() {
            return;
        }
        if self.now < host.paused_until {
            let wait = host.paused_until.since(self.now);
            self.after(wait, WorldEvent::HostOrder { host: index, message });
            return;
        }
        if let (Some(Defect::Unfenced), Order::Commit(assignment)) = (self.defect, &message.order) {
            self.start_unfenced(index, message.epoch, &assignment.clone());
            return;
        }
        if let (Some(Defect::StragglersLeft), Order::Standby) = (self.defect, &message.order) {
            return;
        }
        self.agent_step(index, AgentInput::Order(message));
    }

    pub(super) fn agent_step(&mut self, index: usize, input: AgentInput) {
        let host = &mut self.hosts[index];
        let Some(agent) = &mut host.agent else { return };
        let mut outputs = Vec::new();
        agent.step(host.clock.shows(self.now), input, &mut outputs);
        for output in outputs {
            self.carry_out(index, output);
        }
    }

    fn carry_out(&mut self, index: usize, output: AgentOutput) {
        let life = self.hosts[index].life;
        match output {
            AgentOutput::ClearLeftovers => {
                let left: Vec<u64> = self.hosts[index].processes.iter().map(|one| one.id).collect();
                for id in left {
                    self.after(
                        Duration::from_millis(20),
                        WorldEvent::ProcessEnds { host: index, id, exit: KILL },
                    );
                }
                let input = AgentInput::LeftoversGone;
                self.after(
                    Duration::from_millis(40),
                    WorldEvent::HostInput { host: index, life, input },
                );
            }
            AgentOutput::Send(message) => {
                let Some((replica, _)) = self.hosts[index].leader else { return };
                let event = WorldEvent::ReplicaMessage { replica, message };
                self.travel(NetworkMachine::Host(index), NetworkMachine::Replica(replica), &event);
            }
            AgentOutput::Start { epoch, local, environment } => {
                self.start(index, epoch, local, &environment);
            }
            AgentOutput::Terminate { epoch, local } => {
                let [least, most] = self.scenario.stopping;
                let wait = self.random.duration(least, most);
                // One in ten does not heed the signal.
                if self.random.happens(0.9) {
                    self.signal(index, (epoch, local), wait, TERMINATE);
                }
            }
            AgentOutput::Kill { epoch, local } => {
                self.signal(index, (epoch, local), Duration::from_millis(5), KILL);
            }
            AgentOutput::HoldPort(ports) => {
                // Some ports are taken, and rarely all.
                let mut port = Some(ports.first);
                while let Some(taken) = port.filter(|_| self.random.happens(0.2)) {
                    port = Some(ports.after(taken)).filter(|next| *next != ports.first);
                }
                let input = AgentInput::PortHeld { ports, port };
                self.after(
                    Duration::from_millis(1),
                    WorldEvent::HostInput { host: index, life, input },
                );
            }
            AgentOutput::Over(_) | AgentOutput::Examine { .. } => {}
        }
    }

    fn signal(
        &mut self,
        host: usize,
        (epoch, local): (Epoch, LocalRank),
        wait: Duration,
        exit: Exit,
    ) {
        if let Some(id) = self.hosts[host].worker_of(epoch, local) {
            self.after(wait, WorldEvent::ProcessEnds { host, id, exit });
        }
    }

    /// Begins a worker from nothing but its environment, as a real one would know it.
    fn start(
        &mut self,
        host: usize,
        epoch: Epoch,
        local: LocalRank,
        environment: &[(&'static str, String)],
    ) {
        let value = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let master = format!("{}:{}", value("MASTER_ADDR"), value("MASTER_PORT"));
        let number = |name: &str| value(name).parse().unwrap_or(u32::MAX);
        let (rank, world) = (number("RANK"), number("WORLD_SIZE"));
        self.place_worker(
            host,
            SimulatedWorker { id: 0, epoch, local, rank, world, master, runs: false },
        );
    }

    fn start_unfenced(&mut self, host: usize, epoch: Epoch, assignment: &Assignment) {
        for local in 0..assignment.workers.get() {
            let master = &assignment.master;
            let worker = SimulatedWorker {
                id: 0,
                epoch,
                local: LocalRank(local),
                rank: assignment.first_rank.0 + local,
                world: assignment.world_size,
                master: format!("{}:{}", master.address.as_str(), master.port),
                runs: false,
            };
            self.place_worker(host, worker);
        }
    }

    fn place_worker(&mut self, host: usize, worker: SimulatedWorker) {
        self.next_process += 1;
        let id = self.next_process;
        let life = self.hosts[host].life;
        self.hosts[host].processes.push(SimulatedWorker { id, ..worker });
        let wait = self.random.duration(Duration::from_millis(5), Duration::from_millis(100));
        self.after(wait, WorldEvent::ProcessBegins { host, id, life });
    }
}
