//! The coordinator among nodes that obey at once, unless they are gone.

mod behind;
mod crowds;
mod failover;
mod faults;
mod health;
mod leaving;
mod operators;
mod repeats;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;

use super::{
    Coordinator, Input, OperatorOrder, OrderRefused, Output, RequestId, Stale, StepDown,
    check_stored,
};
use crate::epoch::{Epoch, Revision, Term};
use crate::incident::{FaultEvent, Incident, Standing};
use crate::message::{
    Acknowledgement, AgentActivity, FromNode, FromNodeBody, KnownJob, Order, OrderStep,
    Registration, Report, ToNode,
};
use crate::node::{HostAddress, Incarnation, NodeName};
use crate::observation::{FailureDetail, Observation, WorkerEnd, WorkerObservation, WorkerState};
use crate::policy::{Job, Policy};
use crate::rank::{Rank, WorkersPerNode};
use crate::stored::{Decision, Phase, StoreOutcome, StoredState, Why};
use crate::time::Moment;
use crate::verdict::{Suspects, Verdict, VerdictKind};
use crate::vitals::NodeFault;

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

/// A node of the test: what its agent would remember.
#[derive(Debug, Clone)]
struct Node {
    incarnation: u64,
    sequence: u64,
    activity: AgentActivity,
    states: Vec<WorkerState>,
    known: Option<KnownJob>,
    planned_since: Option<Incarnation>,
}

/// A coordinator, its store, and nodes.
struct Cluster {
    coordinator: Coordinator,
    now: Moment,
    store: Option<(StoredState, Revision)>,
    /// What the store answers instead of storing.
    refuses: Option<StoreOutcome>,
    decisions: Vec<Decision>,
    nodes: BTreeMap<NodeName, Node>,
    gone: BTreeSet<NodeName>,
    /// Nodes whose workers take their time to stop.
    stopping: BTreeSet<NodeName>,
    orders: Vec<(NodeName, ToNode)>,
    standings: Vec<Standing>,
    /// The incident reported last.
    reported: Option<Incident>,
    answers: Vec<Result<(), OrderRefused>>,
    refusals: Vec<(NodeName, Stale)>,
    strays: Vec<NodeName>,
    stepped_down: Option<StepDown>,
    /// The health of nodes that has failed.
    faults: BTreeMap<NodeName, NodeFault>,
    /// Before whose drains the command was to be run.
    hooks: Vec<Vec<NodeName>>,
    workers: u32,
}

const SECOND: Duration = Duration::from_secs(1);

impl Cluster {
    /// A cluster that has formed, of the given number of slots among these nodes.
    fn formed(slots: u32, nodes: &[&str], policy: Policy) -> Self {
        let mut cluster = Self::leading(slots, policy);
        for node in nodes {
            cluster.register(node);
        }
        cluster.pass(SECOND);
        cluster
    }

    fn leading(slots: u32, policy: Policy) -> Self {
        let workers = 2;
        let job =
            Job { name: "job".to_owned(), slots, workers: WorkersPerNode::new(workers).unwrap() };
        let mut cluster = Self {
            coordinator: Coordinator::new(job, policy).unwrap(),
            now: Moment::from_ns(0).after(Duration::from_secs(1000)),
            store: None,
            refuses: None,
            decisions: Vec::new(),
            nodes: BTreeMap::new(),
            gone: BTreeSet::new(),
            stopping: BTreeSet::new(),
            orders: Vec::new(),
            standings: Vec::new(),
            reported: None,
            answers: Vec::new(),
            refusals: Vec::new(),
            strays: Vec::new(),
            stepped_down: None,
            faults: BTreeMap::new(),
            hooks: Vec::new(),
            workers,
        };
        cluster.lead(1);
        cluster
    }

    fn lead(&mut self, term: u64) {
        let stored = self.store.clone();
        self.input(Input::LeadershipGained { term: Term::new(term), stored });
    }

    fn input(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.coordinator.step(self.now, input, &mut outputs);
        for output in outputs {
            self.output(output);
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Send { node, message } => {
                self.orders.push((node.clone(), message.clone()));
                self.obey(&node, &message);
            }
            Output::Store(decision) => self.put(*decision),
            Output::Incident(incident) => {
                self.standings.push(incident.standing.clone());
                self.reported = Some(*incident);
            }
            Output::Answer { answer, .. } => self.answers.push(answer),
            Output::Refuse { node, why } => self.refusals.push((node, why)),
            Output::Stray { node, .. } => self.strays.push(node),
            Output::NotPrepared { .. } => {}
            Output::BeforeDrain { nodes, .. } => self.hooks.push(nodes),
            Output::StepDown(reason) => self.stepped_down = Some(reason),
        }
    }

    fn put(&mut self, decision: Decision) {
        let number = decision.number;
        let outcome = self.refuses.unwrap_or_else(|| {
            let revision = self.store.as_ref().map_or(Revision::EMPTY, |stored| stored.1);
            assert_eq!(decision.expected, revision);
            let next = Revision::new(revision.number() + 1);
            self.store = Some((decision.state.clone(), next));
            StoreOutcome::Stored(next)
        });
        self.decisions.push(decision);
        self.input(Input::Stored { decision: number, outcome });
    }

    fn obey(&mut self, name: &NodeName, message: &ToNode) {
        if self.gone.contains(name) {
            return;
        }
        let Some(node) = self.nodes.get_mut(name) else { return };
        let epoch = message.epoch;
        if message.order != Order::Register {
            node.known = message.job.map(|job| KnownJob { job, epoch });
        }
        let step = match &message.order {
            Order::Prepare { ports, .. } => {
                node.activity = AgentActivity::Preparing(epoch);
                node.states.clear();
                match self.stopping.contains(name) {
                    true => OrderStep::Stopping,
                    false => OrderStep::Prepared { port: ports.map(|ports| ports.first) },
                }
            }
            Order::Commit(assignment) => {
                node.activity = AgentActivity::Committed(epoch);
                let count = usize::try_from(assignment.workers.get()).unwrap();
                node.states = vec![WorkerState::Running; count];
                OrderStep::Started
            }
            Order::Standby | Order::Stop(_) | Order::Evict | Order::Forget(_) => {
                if let Order::Forget(_) = message.order {
                    node.known = None;
                }
                node.activity = AgentActivity::Idle;
                node.states.clear();
                return;
            }
            Order::Welcome | Order::Register | Order::Examine { .. } => return,
        };
        self.say(name, FromNodeBody::Acknowledge(Acknowledgement { epoch, step }));
    }

    fn say(&mut self, name: &NodeName, body: FromNodeBody) {
        let node = self.nodes.get_mut(name).expect("the test has such a node");
        node.sequence += 1;
        let message = FromNode {
            node: name.clone(),
            incarnation: Incarnation::new(node.incarnation),
            sequence: node.sequence,
            body,
        };
        self.input(Input::Node(message));
    }

    /// A node registers, in a new life if it had one.
    fn register(&mut self, text: &str) {
        let name = name(text);
        self.gone.remove(&name);
        self.begin_life(&name, None);
        self.register_as_is(text);
    }

    /// The same, when the life before was asked to end, and its goodbye was not heard.
    fn register_after_plan(&mut self, text: &str) {
        self.end_by_plan(text);
        self.register_as_is(text);
    }

    /// A node's agent is asked to end and is started again, and the coordinator does not hear it.
    fn end_by_plan(&mut self, text: &str) {
        let name = name(text);
        self.gone.remove(&name);
        let former = &self.nodes[&name];
        let since = former.planned_since.unwrap_or(Incarnation::new(former.incarnation));
        self.begin_life(&name, Some(since));
    }

    fn begin_life(&mut self, name: &NodeName, planned_since: Option<Incarnation>) {
        let incarnation = self.nodes.get(name).map_or(1, |node| node.incarnation + 1);
        let (activity, states, known) = (AgentActivity::Idle, Vec::new(), None);
        let node = Node { incarnation, sequence: 0, activity, states, known, planned_since };
        self.nodes.insert(name.clone(), node);
    }

    /// A node registers as what it is, as with a new leader.
    fn register_as_is(&mut self, text: &str) {
        let name = name(text);
        let address = HostAddress::new(&format!("{text}.example")).unwrap();
        let workers = WorkersPerNode::new(self.workers).unwrap();
        let activity = self.nodes[&name].activity;
        let Node { known, planned_since, .. } = self.nodes[&name];
        let registration = Registration { address, workers, activity, known, planned_since };
        self.say(&name, FromNodeBody::Register(registration));
    }

    fn report(&mut self, name: &NodeName) {
        let node = &self.nodes[name];
        let first = self.slot(name).map_or(0, |slot| slot * self.workers);
        let worker = |(local, state): (u32, &WorkerState)| WorkerObservation {
            rank: Rank(first + local),
            state: *state,
        };
        let workers: Vec<WorkerObservation> = (0..).zip(&node.states).map(worker).collect();
        let has_failed = |one: &&WorkerObservation| matches!(one.state, WorkerState::Failed { .. });
        let detail = FailureDetail { message: "it failed".to_owned(), log: String::new() };
        let failures = workers.iter().filter(has_failed).map(|one| (one.rank, detail.clone()));
        let failures = failures.collect();
        let observation = Observation { workers, failures, ..Observation::default() };
        let report = Report {
            activity: node.activity,
            observation,
            fault: self.faults.get(name).cloned().map(Box::new),
        };
        self.say(name, FromNodeBody::Report(report));
    }

    /// Lets time pass, with reports each second and ticks between.
    fn pass(&mut self, time: Duration) {
        let until = self.now.after(time);
        while self.now < until {
            let names: Vec<NodeName> = self.nodes.keys().cloned().collect();
            for name in names {
                if self.coordinator.leads() && !self.gone.contains(&name) {
                    self.report(&name);
                }
            }
            for _ in 0..10 {
                self.now = self.now.after(SECOND / 10);
                self.input(Input::Tick);
            }
        }
    }

    /// A worker ends like this.
    fn end(&mut self, text: &str, local: usize, state: WorkerState) {
        let name = name(text);
        self.nodes.get_mut(&name).unwrap().states[local] = state;
        self.report(&name);
    }

    fn fail(&mut self, text: &str, end: WorkerEnd) {
        self.end(text, 0, WorkerState::Failed { end, age: Duration::ZERO });
    }

    /// A part of a node does not work.
    fn break_part(&mut self, text: &str) {
        let [part, rule, reason] = ["0", "heartbeat_stopped", "it stands still"].map(str::to_owned);
        self.faults.insert(name(text), NodeFault { part, rule, reason });
    }

    /// All of a node works again.
    fn mend(&mut self, text: &str) {
        self.faults.remove(&name(text));
    }

    /// A node is not heard any more.
    fn lose(&mut self, text: &str) {
        self.gone.insert(name(text));
    }

    fn evaluate(&mut self, suspects: &Suspects, windows: u32) {
        self.evaluate_at(std::slice::from_ref(suspects), windows);
    }

    /// Detection suspects all of these.
    fn evaluate_at(&mut self, suspects: &[Suspects], windows: u32) {
        self.judge(VerdictKind::SlowNode, suspects, windows);
    }

    /// Detection suspects these of a hang.
    fn hang(&mut self, suspects: Suspects, windows: u32) {
        self.judge(VerdictKind::NonCommunicationHang, &[suspects], windows);
    }

    /// Detection suspects each of these of being slow for so many evaluations.
    fn evaluate_for(&mut self, suspects: &[(Suspects, u32)]) {
        self.judge_each(VerdictKind::SlowNode, suspects.iter().cloned());
    }

    fn judge(&mut self, kind: VerdictKind, suspects: &[Suspects], windows: u32) {
        self.judge_each(kind, suspects.iter().map(|one| (one.clone(), windows)));
    }

    fn judge_each(&mut self, kind: VerdictKind, suspects: impl Iterator<Item = (Suspects, u32)>) {
        let epoch = self.state().epoch;
        let (confidence, evidence, first_seen) = (1.0, Vec::new(), self.now);
        let verdict = |(suspects, windows)| Verdict {
            kind,
            suspects,
            confidence,
            evidence: evidence.clone(),
            first_seen,
            windows,
        };
        let verdicts = suspects.map(verdict).collect();
        self.input(Input::Verdicts { epoch, verdicts });
    }

    fn operate(&mut self, order: OperatorOrder) -> Result<(), OrderRefused> {
        self.answers.clear();
        self.input(Input::Operator { request: RequestId(1), order });
        self.answers.pop().expect("an order is answered at once when the store is")
    }

    fn state(&self) -> &StoredState {
        self.coordinator.state().expect("it leads")
    }

    fn slot(&self, name: &NodeName) -> Option<u32> {
        self.state().map.slot_of(name).map(|slot| slot.0)
    }

    /// The nodes by slot; `-` for a vacant one.
    fn map(&self) -> String {
        let map = &self.state().map;
        let holder = |slot| map.holder(crate::rank::Slot(slot)).map_or("-", NodeName::as_str);
        (0..map.slot_count()).map(holder).collect::<Vec<_>>().join(" ")
    }

    fn master(&self) -> (String, u16) {
        match &self.state().phase {
            Phase::Committed(master) => (master.address.as_str().to_owned(), master.port.get()),
            other => panic!("not committed but {other:?}"),
        }
    }

    fn epoch(&self) -> u64 {
        self.state().epoch.number()
    }
}

#[test]
fn a_job_forms_when_every_slot_can_be_filled() {
    let mut cluster = Cluster::leading(2, Policy::default());
    cluster.register("b");
    cluster.pass(SECOND);
    assert_eq!(cluster.state().phase, Phase::Forming);
    cluster.register("a");
    cluster.register("c");
    assert_eq!(cluster.map(), "a b");
    assert_eq!((cluster.epoch(), cluster.master()), (1, ("a.example".to_owned(), 29_500)));
    assert!(cluster.coordinator.runs());
    let reported = |node: &str, order: fn(&Order) -> bool| {
        cluster.orders.iter().any(|(to, message)| to.as_str() == node && order(&message.order))
    };
    assert!(reported("a", |order| matches!(order, Order::Commit(_))));
    assert!(!reported("c", |order| matches!(order, Order::Prepare { .. } | Order::Commit(_))));
}

#[test]
fn nothing_is_commanded_before_it_is_stored() {
    let mut cluster = Cluster::leading(1, Policy::default());
    cluster.refuses = Some(StoreOutcome::Failed);
    cluster.register("a");
    cluster.pass(3 * SECOND);
    assert!(cluster.orders.iter().all(|(_, message)| message.order == Order::Welcome));
    assert!(cluster.decisions.len() >= 2, "it is tried again");
    cluster.refuses = None;
    cluster.pass(2 * SECOND);
    assert!(cluster.coordinator.runs());
}

#[test]
fn a_rank_that_has_finished_has_not_failed() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    for local in 0..2 {
        cluster.end("a", local, WorkerState::Finished);
    }
    cluster.pass(3 * SECOND);
    // The rest may take its time, even if the node that has finished goes away.
    cluster.lose("a");
    cluster.pass(10 * SECOND);
    assert_eq!((cluster.epoch(), cluster.standings.len()), (1, 0));
    for local in 0..2 {
        cluster.end("b", local, WorkerState::Finished);
    }
    let finished = crate::message::JobOutcome::Finished;
    assert_eq!(cluster.state().phase, Phase::Over(finished));
    // The spare is notified as well, or its agent would wait for ever.
    let stopped =
        cluster.orders.iter().filter(|(_, reported)| reported.order == Order::Stop(finished));
    let stopped: Vec<&str> = stopped.map(|(node, _)| node.as_str()).collect();
    assert_eq!(stopped, ["a", "b", "c"]);
}
