//! Coordinators and what drives them, and the mistakes that may be put into them.

use std::num::NonZeroU64;
use std::time::Duration;

use telltale_cluster::coordinator::{Coordinator, Input, OperatorOrder, Output};
use telltale_cluster::epoch::{Epoch, JobIdentity, Revision, Term};
use telltale_cluster::incident::Standing;
use telltale_cluster::message::{FromNode, FromNodeBody, Order, OrderStep, ToNode};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::WorkerState;
use telltale_cluster::policy::{Mode, NoSpare, Policy};
use telltale_cluster::rank::{RankMap, Slot};
use telltale_cluster::stored::{Decision, DecisionNumber, Phase, StoreOutcome, Why};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects, Verdict, VerdictKind};

use super::{World, WorldEvent};
use crate::defect::Defect;
use crate::network::NetworkMachine;
use crate::replica::{CAMPAIGN_INTERVAL, HeldLease, STORE_TIMEOUT, SimulatedCoordinator};
use crate::store::Grant;

/// How often a coordinator's time passes.
const TICK: Duration = Duration::from_millis(100);

/// How long after an event a held incident may be reported without it: longer than the store fails.
const TOLD_WITHIN: Duration = Duration::from_secs(12);

/// How often detection looks.
const EVALUATION_INTERVAL: Duration = Duration::from_secs(1);

impl World {
    pub(super) fn replica_starts(&mut self, index: usize, life: u64) {
        if self.replicas[index].life != life || self.replicas[index].coordinator.is_some() {
            return;
        }
        let policy = self.policy();
        let mut coordinator = Coordinator::new(self.scenario.job.clone(), policy)
            .expect("scenarios are drawn so that they can be run");
        // Each draws another, and the first that is stored holds.
        self.requests += 1;
        coordinator.name_new_job(JobIdentity::new(NonZeroU64::MIN.saturating_add(self.requests)));
        let replica = &mut self.replicas[index];
        *replica =
            SimulatedCoordinator { life: life + 1, ..SimulatedCoordinator::new(replica.clock) };
        replica.coordinator = Some(coordinator);
        self.after(TICK, WorldEvent::ReplicaTick { replica: index, life: life + 1 });
    }

    fn policy(&self) -> Policy {
        let mut policy = self.scenario.policy.clone();
        match self.defect {
            Some(Defect::SilenceIgnored) => {
                policy.keep_alive = Duration::from_secs(100_000);
                policy.command_retries = u32::MAX;
                policy.prepare_deadline = Duration::from_secs(100_000);
            }
            Some(Defect::EveryReportEvicts) => {
                policy.coalescing = Duration::ZERO;
                policy.settling = Duration::ZERO;
            }
            Some(Defect::BudgetIgnored) => policy.eviction_budget = u32::MAX,
            Some(Defect::CrowdsEvicted) => policy.mass_silence_share = 1.0,
            Some(Defect::SilentlyShrunk) => {
                policy.no_spare = NoSpare::Shrink { least_slots: 1, timeout: Duration::ZERO };
            }
            _ => {}
        }
        policy
    }

    pub(super) fn replica_tick(&mut self, index: usize, life: u64) {
        if self.replicas[index].life != life {
            return;
        }
        if let Some(wait) = self.replica_pause(index) {
            self.after(wait, WorldEvent::ReplicaTick { replica: index, life });
            return;
        }
        self.after(TICK, WorldEvent::ReplicaTick { replica: index, life });
        let now = self.replicas[index].clock.shows(self.now);
        self.campaign(index, now);
        if let Some((decision, until)) = self.replicas[index].storing
            && now >= until
        {
            self.replicas[index].storing = None;
            self.replica_step(index, Input::Stored { decision, outcome: StoreOutcome::Unknown });
        }
        self.evaluate(index, now);
        self.replica_step(index, Input::Tick);
        self.check_what_is_reported(index, now);
    }

    /// The report of a held incident has all its events.
    fn check_what_is_reported(&mut self, index: usize, now: Moment) {
        let replica = &self.replicas[index];
        let Some(incident) = replica.coordinator.as_ref().and_then(Coordinator::incident) else {
            return;
        };
        let held = matches!(incident.standing, Standing::Held(_));
        if held && now.since(incident.last_event) > TOLD_WITHIN {
            self.safety.held(self.now, incident, replica.reported.as_deref());
        }
    }

    fn replica_pause(&self, index: usize) -> Option<Duration> {
        let until = self.replicas[index].paused_until;
        (self.now < until).then(|| until.since(self.now))
    }

    fn campaign(&mut self, index: usize, now: Moment) {
        let replica = &mut self.replicas[index];
        let early = replica.last_campaign.is_some_and(|last| now.since(last) < CAMPAIGN_INTERVAL);
        if early || now < replica.rests_until || replica.stuck {
            return;
        }
        replica.last_campaign = Some(now);
        let renews = replica.lease.map(|lease| lease.term);
        let event =
            WorldEvent::StoreCampaign { replica: index, life: replica.life, asked: now, renews };
        self.travel(NetworkMachine::Replica(index), NetworkMachine::Store, &event);
    }

    pub(super) fn store_campaign(
        &mut self,
        (replica, life): (usize, u64),
        asked: Moment,
        renews: Option<Term>,
    ) {
        let before = self.store.leader(self.now).map(|leader| leader.1);
        let grant = self.store.campaign(self.now, replica, renews).map(Box::new);
        if grant.as_ref().is_some_and(|grant| Some(grant.term) != before) {
            self.summary.terms += 1;
        }
        let event = WorldEvent::ReplicaGrant { replica, life, asked, renews, grant };
        self.travel(NetworkMachine::Store, NetworkMachine::Replica(replica), &event);
    }

    pub(super) fn replica_grant(
        &mut self,
        (index, life): (usize, u64),
        asked: Moment,
        renews: Option<Term>,
        grant: Option<Box<Grant>>,
    ) {
        if self.replicas[index].life != life {
            return;
        }
        if let Some(wait) = self.replica_pause(index) {
            self.after(
                wait,
                WorldEvent::ReplicaGrant { replica: index, life, asked, renews, grant },
            );
            return;
        }
        let now = self.replicas[index].clock.shows(self.now);
        let until = SimulatedCoordinator::lease_until(asked);
        let Some(grant) = grant.filter(|_| now < until) else { return };
        match self.replicas[index].lease {
            Some(held) if held.term == grant.term => {
                self.replicas[index].lease =
                    Some(HeldLease { until: held.until.max(until), ..held });
            }
            None if renews.is_none() => {
                let term = grant.term;
                self.replicas[index].lease = Some(HeldLease { term, until });
                let forgetful = self.defect == Some(Defect::Forgetful);
                let mut stored = grant.stored.filter(|_| !forgetful);
                if let (Some((state, _)), Some(Defect::ObserveIgnored)) = (&mut stored, self.defect)
                {
                    state.mode = Mode::Act;
                }
                self.replica_step(index, Input::LeadershipGained { term, stored });
            }
            _ => {}
        }
    }

    fn evaluate(&mut self, index: usize, now: Moment) {
        let replica = &self.replicas[index];
        if now.since(replica.last_verdicts) < EVALUATION_INTERVAL {
            return;
        }
        let Some(state) = replica.coordinator.as_ref().and_then(Coordinator::state) else { return };
        if !matches!(state.phase, Phase::Committed(_)) {
            return;
        }
        let epoch = state.epoch;
        self.replicas[index].last_verdicts = now;
        if self.defect == Some(Defect::VerdictsUnread) {
            return;
        }
        let verdicts = self.verdicts(now);
        self.replica_step(index, Input::Verdicts { epoch, verdicts });
    }

    pub(super) fn replica_message(&mut self, index: usize, message: FromNode) {
        if self.replicas[index].coordinator.is_none() {
            return;
        }
        if let Some(wait) = self.replica_pause(index) {
            self.after(
                wait,
                WorldEvent::ReplicaMessage { replica: index, message: Box::new(message) },
            );
            return;
        }
        let message = self.corrupted(index, message);
        self.replica_step(index, Input::Node(message.clone()));
        match self.defect {
            Some(Defect::EveryReportEvicts) => self.evict_the_reporter(index, &message),
            Some(Defect::LockedUp) if reports_failure(&message) => {
                self.replicas[index].stuck = true
            }
            Some(Defect::ReturnedIsActive) => self.activate_the_returned(index, &message),
            _ => {}
        }
    }

    pub(super) fn replica_input(&mut self, index: usize, life: u64, input: Input) {
        if self.replicas[index].life != life {
            return;
        }
        if let Some(wait) = self.replica_pause(index) {
            self.after(
                wait,
                WorldEvent::ReplicaInput { replica: index, life, input: Box::new(input) },
            );
            return;
        }
        if let Input::Stored { decision, .. } = &input {
            // An answer that comes after it was given up is not the driver's any more.
            if self.replicas[index].storing.is_none_or(|(number, _)| number != *decision) {
                return;
            }
            self.replicas[index].storing = None;
        }
        self.replica_step(index, input);
    }

    pub(super) fn replica_step(&mut self, index: usize, input: Input) {
        let replica = &mut self.replicas[index];
        let now = replica.clock.shows(self.now);
        let ignores_lease = self.defect == Some(Defect::LeaseIgnored);
        if replica.stuck {
            return;
        }
        let Some(coordinator) = &mut replica.coordinator else { return };
        let mut outputs = Vec::new();
        if replica.lease.is_some_and(|lease| now >= lease.until) && !ignores_lease {
            replica.lease = None;
            replica.storing = None;
            coordinator.step(now, Input::LeadershipLost, &mut outputs);
        }
        coordinator.step(now, input, &mut outputs);
        for output in outputs {
            self.replica_output(index, now, output);
        }
    }

    fn replica_output(&mut self, index: usize, now: Moment, output: Output) {
        if self.narrates && !matches!(output, Output::Send { .. }) {
            println!("{:10.4} seat {index}: {output:?}", self.now.0.as_secs_f64());
        }
        match output {
            Output::Send { node, message } => self.replica_sends(index, &node, message),
            Output::Store(decision) => {
                self.replicas[index].storing = Some((decision.number, now.after(STORE_TIMEOUT)));
                let number = decision.number;
                let life = self.replicas[index].life;
                let decision = Box::new(self.spoilt(*decision));
                let event = WorldEvent::StorePut { replica: index, life, decision };
                self.travel(NetworkMachine::Replica(index), NetworkMachine::Store, &event);
                if self.defect == Some(Defect::CommandedUnstored) {
                    self.assume_stored(index, number);
                }
            }
            Output::StepDown(_) => {
                if let Some(lease) = self.replicas[index].lease.take() {
                    let event = WorldEvent::StoreResign { term: lease.term };
                    self.travel(NetworkMachine::Replica(index), NetworkMachine::Store, &event);
                }
                self.replicas[index].storing = None;
                self.replicas[index].rests_until = now.after(Duration::from_secs(1));
            }
            Output::Incident(incident) => self.replicas[index].reported = Some(incident),
            Output::Answer { .. }
            | Output::Refuse { .. }
            | Output::Stray { .. }
            | Output::BeforeDrain { .. }
            | Output::NotPrepared { .. } => {}
        }
    }

    fn replica_sends(&mut self, index: usize, node: &NodeName, mut message: ToNode) {
        if let Order::Commit(assignment) = &mut message.order
            && self.defect == Some(Defect::MasterKept)
        {
            let first = self.first_master.get_or_insert_with(|| assignment.master.clone());
            assignment.master.address = first.address.clone();
        }
        self.safety.commanded(self.now, node, &message);
        let prepares = matches!(message.order, Order::Prepare { .. });
        let assumes = [Defect::AcknowledgementAssumed, Defect::Unfenced].map(Some);
        if prepares && assumes.contains(&self.defect) {
            self.assume_prepared(index, node, message.epoch);
        }
        let Some(host) = self.hosts.iter().position(|host| host.name == *node) else { return };
        let event = WorldEvent::HostOrder { host, message };
        self.travel(NetworkMachine::Replica(index), NetworkMachine::Host(host), &event);
    }

    pub(super) fn store_put(&mut self, replica: usize, life: u64, decision: &Decision) {
        let any_revision = self.defect == Some(Defect::Forgetful);
        let before = self.store.state().map(|state| state.failures.clone()).unwrap_or_default();
        let (outcome, written) = self.store.put(decision, any_revision);
        if written {
            let failures = decision.state.failures.iter();
            let charged =
                failures.filter(|(node, count)| before.get(*node).is_none_or(|one| one < *count));
            self.summary.charges += u64::try_from(charged.count()).unwrap_or(u64::MAX);
            self.summary.epochs = decision.state.epoch.number();
            self.summary.evictions +=
                u64::try_from(decision.why.evicted().len()).unwrap_or(u64::MAX);
            self.safety.stored(self.now, &decision.why, &decision.state);
        }
        let input = Box::new(Input::Stored { decision: decision.number, outcome });
        let event = WorldEvent::ReplicaInput { replica, life, input };
        self.travel(NetworkMachine::Store, NetworkMachine::Replica(replica), &event);
    }

    // What follows are the mistakes.

    fn corrupted(&self, index: usize, mut message: FromNode) -> FromNode {
        if let (Some(Defect::FinishedIsFailed), FromNodeBody::Report(report)) =
            (self.defect, &mut message.body)
        {
            for worker in &mut report.observation.workers {
                if worker.state == WorkerState::Finished {
                    let end = telltale_cluster::observation::WorkerEnd::Code(1);
                    worker.state = WorkerState::Failed { end, age: Duration::ZERO };
                }
            }
        }
        debug_assert!(index < self.replicas.len(), "messages go to coordinators that exist");
        message
    }

    fn spoilt(&mut self, mut decision: Decision) -> Decision {
        let map = &decision.state.map;
        if self.defect == Some(Defect::RanksSorted) && map.is_complete() {
            let mut nodes: Vec<NodeName> = map.holders().map(|(_, node)| node.clone()).collect();
            nodes.sort();
            let mut sorted = RankMap::vacant(map.slot_count(), map.workers_per_node());
            for (slot, node) in (0..).map(Slot).zip(&nodes) {
                let filled = sorted.fill(slot, node);
                assert!(filled, "each node is in the map once");
            }
            decision.state.map = sorted;
        }
        if self.defect == Some(Defect::ObserveIgnored) && self.observes {
            decision.state.mode = Mode::Observe;
        }
        if self.defect == Some(Defect::PortKept)
            && let Phase::Committed(master) = &mut decision.state.phase
        {
            master.port = self.scenario.policy.least_port;
        }
        if decision.why == Why::Prepared {
            let reborn = std::mem::take(&mut self.reborn);
            let held = |node: &NodeName| decision.state.map.slot_of(node).is_some();
            let charged: Vec<NodeName> = reborn.into_iter().filter(held).collect();
            for node in charged.into_iter().filter(|_| self.defect == Some(Defect::RerunsCharged)) {
                *decision.state.failures.entry(node).or_default() += 1;
            }
        }
        decision
    }

    /// An operator's order as the coordinators take it.
    pub(super) fn misheard(&self, order: OperatorOrder) -> OperatorOrder {
        let observe = OperatorOrder::SetMode(Mode::Observe);
        if self.defect != Some(Defect::ObserveIgnored) || order != observe {
            return order;
        }
        // A mode that is not the present one, so that something is stored.
        let state = self.replicas.iter().find_map(|replica| replica.coordinator.as_ref()?.state());
        let acts = state.is_some_and(|state| state.mode == Mode::Act);
        OperatorOrder::SetMode(if acts { Mode::Recover } else { Mode::Act })
    }

    fn evict_the_reporter(&mut self, index: usize, message: &FromNode) {
        let FromNodeBody::Report(report) = &message.body else { return };
        let Some(epoch) = report.activity.running().filter(|_| reports_failure(message)) else {
            return;
        };
        let verdict = Verdict {
            kind: VerdictKind::SlowNode,
            suspects: Suspects::One(Suspect::Node(message.node.clone())),
            confidence: 1.0,
            evidence: Vec::new(),
            first_seen: self.replicas[index].clock.shows(self.now),
            windows: u32::MAX,
        };
        self.replica_step(index, Input::Verdicts { epoch, verdicts: vec![verdict] });
    }

    fn activate_the_returned(&mut self, index: usize, message: &FromNode) {
        let FromNodeBody::Register(_) = &message.body else { return };
        let coordinator = self.replicas[index].coordinator.as_ref();
        let Some(state) = coordinator.and_then(Coordinator::state) else { return };
        let Phase::Committed(master) = &state.phase else { return };
        if state.map.slot_of(&message.node).is_some() {
            return;
        }
        let assignment = telltale_cluster::message::Assignment {
            slot: Slot(0),
            slots: state.map.slot_count(),
            first_rank: state.map.first_rank(Slot(0)),
            workers: state.map.workers_per_node(),
            world_size: state.map.world_size(),
            master: master.clone(),
            restarts: state.restarts,
            digest: state.map.digest(),
            job: self.scenario.job.name.clone(),
            max_restarts: 0,
        };
        let term = self.replicas[index].lease.map_or(Term::new(0), |lease| lease.term);
        let order = Order::Commit(assignment);
        let message_to = ToNode { term, sequence: u64::MAX, epoch: state.epoch, job: None, order };
        self.replica_sends(index, &message.node, message_to);
    }

    fn assume_prepared(&mut self, index: usize, node: &NodeName, epoch: Epoch) {
        let Some(host) = self.hosts.iter().find(|host| host.name == *node) else { return };
        let step = OrderStep::Prepared { port: std::num::NonZeroU16::new(29_508) };
        let acknowledgement = telltale_cluster::message::Acknowledgement { epoch, step };
        let message = FromNode {
            node: node.clone(),
            incarnation: telltale_cluster::node::Incarnation::new(host.life),
            sequence: 0,
            body: FromNodeBody::Acknowledge(acknowledgement),
        };
        let life = self.replicas[index].life;
        let input = Box::new(Input::Node(message));
        self.after(Duration::ZERO, WorldEvent::ReplicaInput { replica: index, life, input });
    }

    fn assume_stored(&mut self, index: usize, decision: DecisionNumber) {
        let outcome = StoreOutcome::Stored(Revision::new(decision.0));
        let life = self.replicas[index].life;
        let input = Box::new(Input::Stored { decision, outcome });
        self.after(Duration::ZERO, WorldEvent::ReplicaInput { replica: index, life, input });
    }
}

fn reports_failure(message: &FromNode) -> bool {
    let FromNodeBody::Report(report) = &message.body else { return false };
    let failed = |state: &WorkerState| matches!(state, WorkerState::Failed { .. });
    report.observation.workers.iter().any(|worker| failed(&worker.state))
}
