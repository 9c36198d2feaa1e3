//! The simulated cluster: everything that happens, one event after the other.
//!
//! The order of events follows from the seed alone.

mod hosts;
mod job;
mod replicas;
mod reruns;
mod stale_store;
mod troubles;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use telltale_cluster::agent::{AgentInput, Exit};
use telltale_cluster::coordinator::Input;
use telltale_cluster::epoch::Term;
use telltale_cluster::message::{FromNode, ToNode};
use telltale_cluster::node::NodeName;
use telltale_cluster::stored::{Decision, Phase, StoredState};
use telltale_cluster::time::Moment;

use crate::clock::{MachineClock, TrueTime};
use crate::defect::Defect;
use crate::host::Host;
use crate::network::{Network, NetworkMachine};
use crate::random::Random;
use crate::replica::SimulatedCoordinator;
use crate::safety::Safety;
use crate::scenario::Scenario;
use crate::store::{Grant, Store};

use job::JobWatch;
use reruns::Reruns;
use troubles::{Suspicion, Trouble};

/// Something that happens at its time.
#[derive(Debug, Clone)]
enum WorldEvent {
    HostTick {
        host: usize,
        life: u64,
    },
    HostInput {
        host: usize,
        life: u64,
        input: AgentInput,
    },
    HostOrder {
        host: usize,
        message: ToNode,
    },
    AgentStarts {
        host: usize,
        life: u64,
    },
    ProcessBegins {
        host: usize,
        id: u64,
        life: u64,
    },
    ProcessEnds {
        host: usize,
        id: u64,
        exit: Exit,
    },
    JobDone {
        deaths: u64,
    },
    ReplicaTick {
        replica: usize,
        life: u64,
    },
    ReplicaInput {
        replica: usize,
        life: u64,
        input: Box<Input>,
    },
    ReplicaMessage {
        replica: usize,
        message: Box<FromNode>,
    },
    ReplicaGrant {
        replica: usize,
        life: u64,
        asked: Moment,
        renews: Option<Term>,
        grant: Option<Box<Grant>>,
    },
    ReplicaStarts {
        replica: usize,
        life: u64,
    },
    StoreCampaign {
        replica: usize,
        life: u64,
        asked: Moment,
        renews: Option<Term>,
    },
    StoreResign {
        term: Term,
    },
    StorePut {
        replica: usize,
        life: u64,
        decision: Box<Decision>,
    },
    Trouble(Trouble),
    Heal,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunSummary {
    /// Events that happened.
    pub events: u64,
    /// The last epoch that was stored.
    pub epochs: u64,
    /// Processes that were begun.
    pub processes: u64,
    /// Nodes that lost their slots by a coordinator's own judgement.
    pub evictions: u64,
    /// Failures that were attributed to a node.
    pub charges: u64,
    /// Terms that began.
    pub terms: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// From the healing until the job ran or was over.
    pub recovered_after: Duration,
}

/// A run that must not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct RunFailure {
    /// The seed.
    pub seed: u64,
    /// What was wrong.
    pub what: String,
}

/// The simulated cluster.
#[derive(Debug)]
pub struct World {
    scenario: Scenario,
    defect: Option<Defect>,
    random: Random,
    now: TrueTime,
    queue: BTreeMap<(TrueTime, u64), WorldEvent>,
    queued: u64,
    network: Network,
    store: Store,
    hosts: Vec<Host>,
    replicas: Vec<SimulatedCoordinator>,
    safety: Safety,
    job: JobWatch,
    reruns: Reruns,
    copies: stale_store::Copies,
    /// Hosts whose agents were restarted while an epoch was prepared.
    reborn: BTreeSet<NodeName>,
    suspicions: Vec<Suspicion>,
    healed: bool,
    next_process: u64,
    requests: u64,
    cuts: u64,
    first_master: Option<telltale_cluster::message::Master>,
    /// Whether an operator has last ordered to observe only.
    observes: bool,
    summary: RunSummary,
    narrates: bool,
}

impl World {
    /// The cluster of a scenario, before anything has happened; with a mistake, if one is given.
    #[must_use]
    pub fn new(scenario: Scenario, defect: Option<Defect>) -> Self {
        let mut random = Random::new(scenario.seed);
        let network = Network::new(random.split());
        let hosts = usize::try_from(scenario.hosts()).unwrap_or(0);
        let hosts =
            (0..hosts).map(|index| Host::new(index, MachineClock::drawn(&mut random))).collect();
        let replicas =
            (0..2).map(|_| SimulatedCoordinator::new(MachineClock::drawn(&mut random))).collect();
        let mut world = Self {
            safety: Safety::new(&scenario),
            scenario,
            defect,
            random,
            now: TrueTime::default(),
            queue: BTreeMap::new(),
            queued: 0,
            network,
            store: Store::default(),
            hosts,
            replicas,
            job: JobWatch::default(),
            reruns: Reruns::default(),
            copies: stale_store::Copies::default(),
            reborn: BTreeSet::new(),
            suspicions: Vec::new(),
            healed: false,
            next_process: 0,
            requests: 0,
            cuts: 0,
            first_master: None,
            observes: false,
            summary: RunSummary::default(),
            narrates: false,
        };
        world.arrange();
        world
    }

    /// Prints what happens.
    pub const fn narrate(&mut self) {
        self.narrates = true;
    }

    fn arrange(&mut self) {
        for replica in 0..self.replicas.len() {
            self.after(Duration::ZERO, WorldEvent::ReplicaStarts { replica, life: 0 });
        }
        for host in 0..self.hosts.len() {
            let wait = self.random.duration(Duration::ZERO, Duration::from_secs(3));
            self.after(wait, WorldEvent::AgentStarts { host, life: 0 });
        }
        self.draw_troubles();
        self.after(self.scenario.troubled, WorldEvent::Heal);
    }

    fn after(&mut self, wait: Duration, event: WorldEvent) {
        self.queued += 1;
        self.queue.insert((self.now.after(wait), self.queued), event);
    }

    /// Sends something that may be lost, late or doubled.
    fn travel(&mut self, from: NetworkMachine, to: NetworkMachine, event: &WorldEvent) {
        for wait in self.network.arrivals(from, to) {
            self.after(wait, event.clone());
        }
    }

    /// Runs until the job has run undisturbed for some time after everything was mended, or is over.
    ///
    /// # Errors
    /// When something happened that must never happen, or the job does not run again in time.
    pub fn run(mut self) -> Result<RunSummary, RunFailure> {
        let bound = self.scenario.troubled + self.scenario.recovery_bound();
        let mut settled: Option<TrueTime> = None;
        while let Some(((time, _), event)) = self.queue.pop_first() {
            self.now = time;
            self.summary.events += 1;
            self.happen(event);
            if let Some(violation) = self.safety.violations().first() {
                let what = violation.clone();
                return Err(RunFailure { seed: self.scenario.seed, what });
            }
            if !self.is_well() {
                settled = None;
            } else if settled.is_none() {
                settled = Some(time);
            }
            if let Some(since) = settled
                && time.since(since) > Duration::from_secs(10)
            {
                self.summary.recovered_after = since.0.saturating_sub(self.scenario.troubled);
                break;
            }
            if time.0 > bound {
                let what = self.why_not_well();
                return Err(RunFailure { seed: self.scenario.seed, what });
            }
        }
        self.summary.simulated = self.now.0;
        Ok(self.summary)
    }

    /// Whether everything is mended and the job runs as it was decided, or is over.
    fn is_well(&self) -> bool {
        let Some(stored) = self.store.state().filter(|_| self.healed) else { return false };
        match stored.phase {
            Phase::Committed(_) => {
                let mut running = self.awake().flat_map(|host| &host.processes);
                !self.suspect_has_slot(stored)
                    && self.runs_as(stored)
                    && running.all(|process| process.epoch == stored.epoch)
            }
            Phase::Over(_) => self.awake().all(|host| host.processes.is_empty()),
            Phase::Forming | Phase::Preparing => false,
        }
    }

    fn awake(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| self.now >= host.paused_until)
    }

    fn why_not_well(&self) -> String {
        let stored = self.store.state().map(|state: &StoredState| {
            let holders: Vec<String> =
                state.map.holders().map(|(slot, node)| format!("{slot}={node}")).collect();
            format!(
                "epoch {} {:?} {holders:?} of {}, barred {:?}",
                state.epoch,
                state.phase,
                state.map.slot_count(),
                state.barred
            )
        });
        let leader = self.store.leader(self.now);
        let incident =
            self.replicas.iter().find_map(|replica| replica.coordinator.as_ref()?.incident());
        let running: Vec<String> = self
            .hosts
            .iter()
            .map(|host| {
                let workers: Vec<String> = host
                    .processes
                    .iter()
                    .map(|one| format!("{}/{}", one.epoch, one.rank))
                    .collect();
                let dead = if host.dead { " dead" } else { "" };
                format!("{}{dead}: {}", host.name, workers.join(" "))
            })
            .collect();
        format!(
            "the job does not run again: stored {stored:?}; leader {leader:?}; incident {incident:?}; processes {running:?}"
        )
    }

    fn happen(&mut self, event: WorldEvent) {
        if self.narrates {
            self.trace(&event);
        }
        match event {
            WorldEvent::HostTick { host, life } => self.host_tick(host, life),
            WorldEvent::HostInput { host, life, input } => self.host_input(host, life, input),
            WorldEvent::HostOrder { host, message } => self.host_order(host, message),
            WorldEvent::AgentStarts { host, life } => self.agent_starts(host, life),
            WorldEvent::ProcessBegins { host, id, life } => self.process_begins(host, id, life),
            WorldEvent::ProcessEnds { host, id, exit } => self.process_ends(host, id, exit),
            WorldEvent::JobDone { deaths } => self.job_done(deaths),
            WorldEvent::ReplicaTick { replica, life } => self.replica_tick(replica, life),
            WorldEvent::ReplicaInput { replica, life, input } => {
                self.replica_input(replica, life, *input)
            }
            WorldEvent::ReplicaMessage { replica, message } => {
                self.replica_message(replica, *message)
            }
            WorldEvent::ReplicaGrant { replica, life, asked, renews, grant } => {
                self.replica_grant((replica, life), asked, renews, grant);
            }
            WorldEvent::ReplicaStarts { replica, life } => self.replica_starts(replica, life),
            WorldEvent::StoreCampaign { replica, life, asked, renews } => {
                self.store_campaign((replica, life), asked, renews);
            }
            WorldEvent::StoreResign { term } => self.store.resign(term),
            WorldEvent::StorePut { replica, life, decision } => {
                self.store_put(replica, life, &decision)
            }
            WorldEvent::Trouble(trouble) => self.trouble(trouble),
            WorldEvent::Heal => {
                if !self.healed {
                    self.heal();
                }
                self.let_in();
                self.after(Duration::from_secs(5), WorldEvent::Heal);
            }
        }
    }

    fn trace(&self, event: &WorldEvent) {
        let quiet = matches!(
            event,
            WorldEvent::HostTick { .. }
                | WorldEvent::ReplicaTick { .. }
                | WorldEvent::ReplicaGrant { .. }
                | WorldEvent::StoreCampaign { .. }
        );
        let is_report = matches!(event, WorldEvent::ReplicaMessage { message, .. }
            if matches!(message.body, telltale_cluster::message::FromNodeBody::Report(_)));
        if !quiet && !is_report {
            println!("{:10.4} {event:?}", self.now.0.as_secs_f64());
        }
    }
}
