//! A job of ten thousand nodes: what a step costs follows from what has changed, not from the size.
//!
//! Times are printed, not judged; what is judged is how much is sent.

use std::time::{Duration, Instant};

use telltale_cluster::coordinator::{Coordinator, Input, Output};
use telltale_cluster::epoch::{Epoch, Revision, Term};
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, FromNode, FromNodeBody, Order, OrderStep, Registration, Report,
};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::{Observation, WorkerEnd, WorkerObservation, WorkerState};
use telltale_cluster::policy::{Job, Policy};
use telltale_cluster::rank::{Rank, WorkersPerNode};
use telltale_cluster::stored::{Decision, StoreOutcome, StoredState};
use telltale_cluster::time::Moment;

const NODES: u32 = 10_000;

/// The coordinator and what surrounds it: nodes that obey at once and a store that stores at once.
struct Bench {
    coordinator: Coordinator,
    now: Moment,
    sequence: u64,
    revision: u64,
    sent: u64,
    /// Orders other than a welcome.
    orders: u64,
    coordinating: Duration,
}

fn name(index: u32) -> NodeName {
    NodeName::new(&format!("rack{:03}-node{index:05}.cluster.example", index / 40)).expect("a name")
}

impl Bench {
    fn new() -> Self {
        let workers = WorkersPerNode::new(8).expect("8 is allowed");
        let job = Job { name: "large".to_owned(), slots: NODES, workers };
        let coordinator = Coordinator::new(job, Policy::default()).expect("a job that can be run");
        let now = Moment::from_ns(0).after(Duration::from_secs(1));
        let mut bench = Self {
            coordinator,
            now,
            sequence: 0,
            revision: 0,
            sent: 0,
            orders: 0,
            coordinating: Duration::ZERO,
        };
        bench.give(Input::LeadershipGained { term: Term::new(1), stored: None });
        bench
    }

    fn state(&self) -> &StoredState {
        self.coordinator.state().expect("it leads")
    }

    /// Gives one input and everything that follows from it.
    fn give(&mut self, input: Input) {
        let mut inputs = vec![input];
        let mut outputs = Vec::new();
        while let Some(input) = inputs.pop() {
            let start = Instant::now();
            self.coordinator.step(self.now, input, &mut outputs);
            self.coordinating += start.elapsed();
            for output in outputs.drain(..) {
                inputs.extend(self.follow(output));
            }
        }
    }

    fn follow(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Store(decision) => Some(self.store(&decision)),
            Output::Send { node, message } => {
                self.sent += 1;
                let step = match message.order {
                    Order::Prepare { ports, .. } => {
                        OrderStep::Prepared { port: ports.map(|ports| ports.first) }
                    }
                    Order::Commit(_) => OrderStep::Started,
                    _ => return None,
                };
                self.orders += 1;
                let acknowledgement = Acknowledgement { epoch: message.epoch, step };
                Some(self.message(node, FromNodeBody::Acknowledge(acknowledgement)))
            }
            _ => None,
        }
    }

    fn store(&mut self, decision: &Decision) -> Input {
        self.revision += 1;
        let outcome = StoreOutcome::Stored(Revision::new(self.revision));
        Input::Stored { decision: decision.number, outcome }
    }

    fn message(&mut self, node: NodeName, body: FromNodeBody) -> Input {
        self.sequence += 1;
        let incarnation = Incarnation::new(1);
        Input::Node(FromNode { node, incarnation, sequence: self.sequence, body })
    }

    fn register(&mut self, index: u32) {
        let registration = Registration {
            address: HostAddress::new(&format!("10.0.{}.{}", index / 250, index % 250))
                .expect("an address"),
            workers: WorkersPerNode::new(8).expect("8 is allowed"),
            activity: AgentActivity::Idle,
            known: None,
            planned_since: None,
        };
        let input = self.message(name(index), FromNodeBody::Register(registration));
        self.give(input);
    }

    fn report(&mut self, index: u32, state: WorkerState) {
        let slot = self.state().map.slot_of(&name(index));
        let first = slot.map_or(0, |slot| slot.0 * 8);
        let rank = |local| Rank(first + local);
        let workers = (0..8).map(|local| WorkerObservation { rank: rank(local), state }).collect();
        let epoch = self.state().epoch;
        let activity = slot.map_or(AgentActivity::Idle, |_| AgentActivity::Committed(epoch));
        let observation = Observation { workers, ..Observation::default() };
        let input = self.message(
            name(index),
            FromNodeBody::Report(Report { activity, observation, fault: None }),
        );
        self.give(input);
    }

    /// The coordinator's own time in `what`, and how many messages it sent.
    fn measured(&mut self, what: impl FnOnce(&mut Self)) -> (Duration, u64) {
        (self.coordinating, self.sent) = (Duration::ZERO, 0);
        what(self);
        (self.coordinating, self.sent)
    }
}

#[test]
fn a_step_costs_what_has_changed() {
    let mut bench = Bench::new();
    let (forming, _) = bench.measured(|bench| (0..=NODES).for_each(|index| bench.register(index)));
    assert!(bench.coordinator.runs());
    println!("to register {NODES} nodes and start them: {forming:?}");

    let (reporting, sent) = bench.measured(|bench| {
        (0..NODES).for_each(|index| bench.report(index, WorkerState::Running));
    });
    assert_eq!(sent, 0, "who does as told is told nothing");
    println!("for a report: {:?}", reporting / NODES);

    let (ticking, sent) = bench.measured(|bench| bench.give(Input::Tick));
    assert_eq!(sent, 0);
    println!("for a tick in which nothing is due: {ticking:?}");

    let (failing, sent) = bench.measured(|bench| {
        let end = WorkerEnd::Code(1);
        let failed = WorkerState::Failed { end, age: Duration::ZERO };
        (0..NODES).for_each(|index| bench.report(index, failed));
    });
    assert_eq!(sent, 0, "signs are collected first");
    println!("for a report of a failure that all others report too: {:?}", failing / NODES);

    bench.orders = 0;
    let (restarting, _) = bench.measured(|bench| {
        bench.now = bench.now.after(Duration::from_secs(1));
        bench.give(Input::Tick);
    });
    assert_eq!(bench.state().epoch, Epoch::new(2));
    assert!(bench.coordinator.runs());
    assert_eq!(
        bench.orders,
        2 * u64::from(NODES),
        "each is told to prepare once and to start once"
    );
    println!("from the decision to restart to the last acknowledgement: {restarting:?}");
}
