//! For all inputs in any order: they do not panic, and keep their promises.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::{collection::vec, option};
use telltale_cluster::agent::{Agent, AgentInput, AgentOutput, Exit, Identity, LocalRank};
use telltale_cluster::coordinator::{Coordinator, Input, OperatorOrder, Output, RequestId};
use telltale_cluster::epoch::{Epoch, Revision, Term};
use telltale_cluster::incident::HookOutcome;
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, Assignment, FromNode, FromNodeBody, JobOutcome, Master,
    NotPrepared, Order, OrderStep, Ports, Registration, Report, ToNode,
};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::{
    FailureDetail, Observation, WorkerEnd, WorkerObservation, WorkerState,
};
use telltale_cluster::policy::{AgentPolicy, Job, Mode, NoSpare, Policy};
use telltale_cluster::rank::{Rank, Slot, WorkersPerNode};
use telltale_cluster::stored::{Decision, DecisionNumber, StoreOutcome};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects, Verdict, VerdictKind};
use telltale_cluster::vitals::NodeFault;

fn node() -> impl Strategy<Value = NodeName> {
    (0..5_u8).prop_map(|index| NodeName::new(&format!("n{index}")).expect("a name"))
}

fn epoch() -> impl Strategy<Value = Epoch> {
    prop_oneof![9 => (0..6_u64).prop_map(Epoch::new), 1 => any::<u64>().prop_map(Epoch::new)]
}

fn port() -> impl Strategy<Value = NonZeroU16> {
    (29_500..29_520_u16).prop_map(|port| NonZeroU16::new(port).expect("not 0"))
}

fn ports() -> impl Strategy<Value = Ports> {
    port().prop_map(|first| Ports { first, least: NonZeroU16::MIN, greatest: NonZeroU16::MAX })
}

fn two() -> WorkersPerNode {
    WorkersPerNode::new(2).expect("2 is allowed")
}

fn address(text: &str) -> HostAddress {
    HostAddress::new(text).expect("an address")
}

fn activity() -> impl Strategy<Value = AgentActivity> {
    prop_oneof![
        Just(AgentActivity::Idle),
        epoch().prop_map(AgentActivity::Preparing),
        epoch().prop_map(AgentActivity::Committed)
    ]
}

fn worker() -> impl Strategy<Value = WorkerObservation> {
    let end = prop_oneof![
        any::<i32>().prop_map(WorkerEnd::Code),
        any::<i32>().prop_map(WorkerEnd::Signal),
        Just(WorkerEnd::NotStarted)
    ];
    let age = any::<u64>().prop_map(Duration::from_nanos);
    let state = prop_oneof![
        Just(WorkerState::Running),
        Just(WorkerState::Finished),
        Just(WorkerState::Ended),
        (end, age).prop_map(|(end, age)| WorkerState::Failed { end, age })
    ];
    (prop_oneof![0..8_u32, any::<u32>()], state)
        .prop_map(|(rank, state)| WorkerObservation { rank: Rank(rank), state })
}

fn observation() -> impl Strategy<Value = Observation> {
    vec(worker(), 0..4).prop_map(|workers| Observation { workers, ..Observation::default() })
}

fn step() -> impl Strategy<Value = OrderStep> {
    prop_oneof![
        1 => Just(OrderStep::Stopping),
        6 => option::of(port()).prop_map(|port| OrderStep::Prepared { port }),
        1 => Just(OrderStep::NotPrepared(NotPrepared::NoPort)),
        2 => Just(OrderStep::Started)
    ]
}

fn fault() -> NodeFault {
    let [part, rule, reason] = ["0", "vanished", "it is gone"].map(str::to_owned);
    NodeFault { part, rule, reason }
}

fn body() -> impl Strategy<Value = FromNodeBody> {
    let since = option::of((0_u64..4).prop_map(Incarnation::new));
    let register = (activity(), since).prop_map(|(activity, planned_since)| Registration {
        address: address("host"),
        workers: two(),
        activity,
        known: None,
        planned_since,
    });
    let fault = option::weighted(0.3, Just(()).prop_map(|()| Box::new(fault())));
    let report = (activity(), observation(), fault)
        .prop_map(|(activity, observation, fault)| Report { activity, observation, fault });
    let acknowledge = (epoch(), step()).prop_map(|(epoch, step)| Acknowledgement { epoch, step });
    prop_oneof![
        1 => register.prop_map(FromNodeBody::Register),
        1 => report.prop_map(FromNodeBody::Report),
        6 => acknowledge.prop_map(FromNodeBody::Acknowledge),
        1 => Just(FromNodeBody::Leave)
    ]
}

fn operator_order() -> impl Strategy<Value = OperatorOrder> {
    prop_oneof![
        Just(OperatorOrder::Restart),
        node().prop_map(OperatorOrder::Drain),
        node().prop_map(OperatorOrder::Remove),
        node().prop_map(OperatorOrder::Readmit),
        Just(OperatorOrder::SetMode(Mode::Act))
    ]
}

fn hook_outcome() -> HookOutcome {
    HookOutcome { end: None, last_line: String::new(), took: Duration::ZERO }
}

/// One thing that happens to a coordinator.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a few are made at a time")]
enum Happening {
    Input(Input),
    /// Its store answers what it was asked last.
    StoreAnswers(StoreOutcome),
    /// A node does its last order.
    Obeys(NodeName),
    /// It leads again, from what is stored.
    Leads,
    Passes(Duration),
}

fn happening() -> impl Strategy<Value = Happening> {
    let message = (node(), 0..3_u64, 0..40_u64, body()).prop_map(|(node, life, sequence, body)| {
        Input::Node(FromNode { node, incarnation: Incarnation::new(life), sequence, body })
    });
    let verdict = (vec(node(), 1..3), any::<u32>()).prop_map(|(nodes, windows)| {
        let mut suspects: Vec<Suspect> = nodes.into_iter().map(Suspect::Node).collect();
        let suspects = match suspects.pop() {
            Some(one) if suspects.is_empty() => Suspects::One(one),
            last => Suspects::Ambiguous(suspects.into_iter().chain(last).collect()),
        };
        Verdict {
            kind: VerdictKind::CommunicationHang,
            suspects,
            confidence: 0.5,
            evidence: Vec::new(),
            first_seen: Moment::default(),
            windows,
        }
    });
    let verdicts = (epoch(), vec(verdict, 0..3))
        .prop_map(|(epoch, verdicts)| Input::Verdicts { epoch, verdicts });
    let operator =
        operator_order().prop_map(|order| Input::Operator { request: RequestId(1), order });
    let stray = any::<u64>().prop_map(|number| Input::Stored {
        decision: DecisionNumber(number),
        outcome: StoreOutcome::Conflict,
    });
    prop_oneof![
        300 => message.prop_map(Happening::Input),
        300 => node().prop_map(Happening::Obeys),
        20 => verdicts.prop_map(Happening::Input),
        10 => operator.prop_map(Happening::Input),
        10 => Just(Happening::Input(Input::BeforeDrainEnded(hook_outcome()))),
        1 => stray.prop_map(Happening::Input),
        1 => Just(Happening::Input(Input::LeadershipLost)),
        3 => Just(Happening::Leads),
        150 => Just(Happening::StoreAnswers(StoreOutcome::Stored(Revision::EMPTY))),
        3 => prop_oneof![
            Just(StoreOutcome::Conflict), Just(StoreOutcome::Failed), Just(StoreOutcome::Unknown)
        ].prop_map(Happening::StoreAnswers),
        80 => (0..1500_u64).prop_map(|time_ms| Happening::Passes(Duration::from_millis(time_ms)))
    ]
}

/// A store that knows what it was asked last.
#[derive(Default)]
struct Store {
    asked: Option<Decision>,
    kept: Option<Decision>,
    revision: u64,
}

impl Store {
    fn answer(&mut self, outcome: StoreOutcome) -> Option<Input> {
        let decision = self.asked.take()?;
        let number = decision.number;
        let mut outcome = outcome;
        if let StoreOutcome::Stored(_) = outcome {
            assert_eq!(decision.expected, Revision::new(self.revision));
            self.revision += 1;
            outcome = StoreOutcome::Stored(Revision::new(self.revision));
            self.kept = Some(decision);
        }
        Some(Input::Stored { decision: number, outcome })
    }
}

/// Most messages as a node would send them, so that the job gets somewhere.
fn likelier(mut message: FromNode, sequence: u64, coordinator: &Coordinator) -> FromNode {
    if message.sequence < 36 {
        message.sequence = sequence;
        message.incarnation = Incarnation::new(1);
    }
    if let (FromNodeBody::Acknowledge(acknowledgement), Some(state)) =
        (&mut message.body, coordinator.state())
        && acknowledgement.epoch < Epoch::new(4)
    {
        acknowledgement.epoch = state.epoch;
    }
    message
}

fn check_coordinator(happenings: Vec<Happening>, no_spare: NoSpare) {
    let job = Job { name: "job".to_owned(), slots: 3, workers: two() };
    let before_drain = vec!["/bin/save".to_owned()];
    let policy = Policy { no_spare, mode: Mode::Act, before_drain, ..Policy::default() };
    let mut coordinator = Coordinator::new(job, policy).expect("a job that can be run");
    let mut store = Store::default();
    let mut reported: BTreeMap<NodeName, (Epoch, OrderStep)> = BTreeMap::new();
    let (mut now, mut term, mut sequence) = (Moment::default(), 0, 0);
    for happening in happenings {
        let input = match happening {
            Happening::Input(Input::Node(message)) => {
                sequence += 1;
                Some(Input::Node(likelier(message, sequence, &coordinator)))
            }
            Happening::Input(input) => Some(input),
            Happening::StoreAnswers(outcome) => store.answer(outcome),
            Happening::Obeys(node) => reported.remove(&node).map(|(epoch, step)| {
                sequence += 1;
                let acknowledgement = Acknowledgement { epoch, step };
                let body = FromNodeBody::Acknowledge(acknowledgement);
                Input::Node(FromNode { node, incarnation: Incarnation::new(1), sequence, body })
            }),
            Happening::Leads => {
                term += 1;
                store.asked = None;
                let revision = Revision::new(store.revision);
                let stored = store.kept.as_ref().map(|one| (one.state.clone(), revision));
                Some(Input::LeadershipGained { term: Term::new(term), stored })
            }
            Happening::Passes(time) => {
                now = now.after(time);
                Some(Input::Tick)
            }
        };
        let mut outputs = Vec::new();
        if let Some(input) = input {
            coordinator.step(now, input, &mut outputs);
        }
        let stored = store.kept.as_ref().map_or(Epoch::NONE_RAN, |kept| kept.state.epoch);
        for output in outputs {
            match output {
                Output::Store(decision) => store.asked = Some(*decision),
                Output::Send { node, message } => {
                    assert!(message.epoch <= stored);
                    let step = match message.order {
                        Order::Prepare { ports, .. } => {
                            OrderStep::Prepared { port: ports.map(|ports| ports.first) }
                        }
                        Order::Commit(_) => OrderStep::Started,
                        _ => continue,
                    };
                    reported.insert(node, (message.epoch, step));
                }
                _ => {}
            }
        }
    }
}

fn agent_input() -> impl Strategy<Value = AgentInput> {
    let assignment = port().prop_map(|port| Assignment {
        slot: Slot(1),
        slots: 3,
        first_rank: Rank(2),
        workers: two(),
        world_size: 6,
        master: Master { address: address("host"), port },
        restarts: 1,
        digest: 5,
        job: "job".to_owned(),
        max_restarts: 0,
    });
    let order = prop_oneof![
        Just(Order::Welcome),
        Just(Order::Register),
        (option::of(ports()), any::<bool>())
            .prop_map(|(ports, planned)| Order::Prepare { ports, planned }),
        assignment.prop_map(Order::Commit),
        any::<bool>().prop_map(|reports| Order::Examine { reports }),
        Just(Order::Standby),
        Just(Order::Stop(JobOutcome::Finished)),
        Just(Order::Evict)
    ];
    let order = (0..3_u64, 0..60_u64, epoch(), order).prop_map(|(term, sequence, epoch, order)| {
        AgentInput::Order(ToNode { term: Term::new(term), sequence, epoch, job: None, order })
    });
    let exit = prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)];
    let local = (0..3_u32).prop_map(LocalRank);
    prop_oneof![
        8 => order,
        2 => (epoch(), local.clone())
            .prop_map(|(epoch, local)| AgentInput::WorkerStarted { epoch, local }),
        1 => (epoch(), local.clone())
            .prop_map(|(epoch, local)| AgentInput::WorkerNotStarted { epoch, local }),
        4 => (epoch(), local, exit)
            .prop_map(|(epoch, local, exit)| AgentInput::WorkerExited { epoch, local, exit, detail: FailureDetail::default() }),
        2 => (ports(), option::of(port()))
            .prop_map(|(ports, port)| AgentInput::PortHeld { ports, port }),
        1 => (epoch(), observation())
            .prop_map(|(epoch, observation)| AgentInput::Observed { epoch, observation }),
        1 => Just(AgentInput::Connected),
        1 => Just(AgentInput::Disconnected),
        3 => Just(AgentInput::Tick)
    ]
}

fn check_agent(inputs: Vec<AgentInput>) {
    let identity = Identity {
        node: NodeName::new("node").expect("a name"),
        incarnation: Incarnation::new(1),
        planned_since: None,
        address: address("host"),
        workers: two(),
    };
    let (mut agent, _) = Agent::new(identity, AgentPolicy::default(), Moment::default());
    let mut now = Moment::default();
    let mut alive: BTreeSet<(Epoch, LocalRank)> = BTreeSet::new();
    let mut newest = Epoch::NONE_RAN;
    for input in std::iter::once(AgentInput::LeftoversGone).chain(inputs) {
        now = now.after(Duration::from_millis(300));
        if let AgentInput::WorkerExited { epoch, local, .. }
        | AgentInput::WorkerNotStarted { epoch, local } = &input
        {
            alive.remove(&(*epoch, *local));
        }
        let mut outputs = Vec::new();
        agent.step(now, input, &mut outputs);
        for output in outputs {
            if let AgentOutput::Start { epoch, local, .. } = output {
                assert!(epoch >= newest, "{epoch:?} is started after {newest:?}");
                assert!(alive.iter().all(|(other, _)| *other == epoch), "{epoch:?} and {alive:?}");
                assert!(alive.insert((epoch, local)), "{local:?} is started twice");
                newest = epoch;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: telltale_harness::rounds(100, 3000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_coordinator_commands_only_what_is_stored(happenings in vec(happening(), 0..400), shrinks: bool) {
        let shrink = NoSpare::Shrink { least_slots: 1, timeout: Duration::from_secs(1) };
        check_coordinator(happenings, if shrinks { shrink } else { NoSpare::Hold });
    }

    #[test]
    fn an_agent_runs_one_epoch_at_a_time(inputs in vec(agent_input(), 0..150)) {
        check_agent(inputs);
    }
}
