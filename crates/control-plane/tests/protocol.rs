//! Messages to bytes and back, and messages that cannot be.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::num::{NonZeroU16, NonZeroU64};
use std::time::Duration;

use proptest::prelude::*;
use prost::Message as _;
use telltale_cluster::epoch::{Epoch, JobIdentity, Term};
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{
    Collective, Direction, EdgeKey, EdgeWindow, SizeBucket, WaitKey, WaitWindow, Window,
};
use telltale_cluster::message::{
    Acknowledgement, AgentActivity, Assignment, FromNode, FromNodeBody, JobOutcome, KnownJob,
    Master, NotPrepared, Order, OrderStep, Ports, Registration, Report, ToNode,
};
use telltale_cluster::node::{HostAddress, Incarnation, NodeName};
use telltale_cluster::observation::{
    FailureDetail, GroupProgress, Observation, Traffic, Withheld, WorkerEnd, WorkerObservation,
    WorkerState,
};
use telltale_cluster::rank::{Rank, Slot, WorkersPerNode};
use telltale_cluster::vitals::{HealthState, NodeHealth, PartHealth, Vitals, WorkerProcess};
use telltale_cluster::work::{FinishedOperation, Operations, Work};
use telltale_control_plane::protocol::ProtocolError;
use telltale_control_plane::protocol::decode::{DecodedOrder, coordinator_message, node_message};
use telltale_control_plane::protocol::encode;
use telltale_wire::cluster::decode::Bounded as _;
use telltale_wire::cluster::message;

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

fn window(latency_ns: u64) -> Window {
    Window {
        count: 7,
        mean_ns: latency_ns,
        median_ns: latency_ns,
        deviation_ns: 3,
        high_ns: latency_ns + 1,
        last_sequence: 99,
        late: 0,
        overlapped: 0,
    }
}

/// Some of each kind, with numbers that do not only grow.
fn operations(number: u64) -> Operations {
    let (group, bucket) = (GroupId::new(number), SizeBucket::of(number));
    let transfer = |direction| Work::Transfer { direction, peer: Rank(4), group, bucket };
    let collective = Collective::AllGather;
    let works = [
        Work::Compute("forward".into()),
        transfer(Direction::Send),
        transfer(Direction::Receive),
        Work::Collective { collective, group: GroupId::WORLD, members: 8, bucket },
        Work::Compute("backward".into()),
        Work::Compute("forward".into()),
        Work::StepEnd,
    ];
    let operation = |(place, work): (usize, Work)| FinishedOperation {
        rank: Rank(3),
        step: if place % 2 == 0 { number } else { 0 },
        work,
        start_us: if place % 2 == 0 { i64::MIN } else { i64::MAX },
        duration_us: number % 1_000_000,
    };
    let list = works.into_iter().enumerate().map(operation).collect();
    Operations { list, before: Some(number) }
}

fn failure() -> FailureDetail {
    FailureDetail { message: "ValueError: no".to_owned(), log: "/state/3.log".to_owned() }
}

fn report(number: u64, state: WorkerState) -> Report {
    let group = GroupId::new(number);
    let rank = Rank(3);
    let (sends_to, receives_from) = (vec![Rank(0)], vec![Rank(1), Rank(2)]);
    let progress = GroupProgress {
        group,
        rank,
        entered: 9,
        finished: 8,
        sends_to,
        receives_from,
        transferred: 7,
    };
    let bucket = SizeBucket::of(number);
    let edge = EdgeKey { group, rank, peer: Rank(4), direction: Direction::Receive, bucket };
    let wait = WaitKey { group, rank, collective: Collective::ReduceScatter, bucket };
    let observation = Observation {
        workers: vec![WorkerObservation { rank, state }],
        progress: vec![progress],
        edges: vec![EdgeWindow { key: edge, window: window(number % 1_000_000) }],
        waits: vec![WaitWindow { key: wait, window: window(5) }],
        excused: number.is_multiple_of(2),
        operations: operations(number),
        sent_us: i64::try_from(number).ok(),
        withheld: vec![Withheld::of(rank, (number % 1000) as f64 / 999.0)],
        traffic: vec![Traffic {
            local: [10, 0, 0, 1].into(),
            remote: std::net::Ipv6Addr::LOCALHOST.into(),
            bytes: number,
            busy: Duration::from_micros(number / 2),
            delivery_rate: number / 3,
            elapsed: Duration::from_micros(number),
        }],
        failures: match state {
            WorkerState::Failed { .. } => vec![(rank, failure())],
            _ => Vec::new(),
        },
    };
    Report { activity: AgentActivity::Committed(Epoch::new(number)), observation, fault: None }
}

fn identity(number: u64) -> Option<JobIdentity> {
    NonZeroU64::new(number).map(JobIdentity::new)
}

/// Those that a message can name.
fn epochs() -> impl Strategy<Value = u64> {
    0..=Epoch::MAX.number()
}

fn bodies() -> impl Strategy<Value = FromNodeBody> {
    let registration = |number: u64| {
        FromNodeBody::Register(Registration {
            address: HostAddress::new("fd00::1").unwrap(),
            workers: WorkersPerNode::new(8).unwrap(),
            activity: if number == 0 {
                AgentActivity::Idle
            } else {
                AgentActivity::Preparing(Epoch::new(number))
            },
            known: identity(number).map(|job| KnownJob { job, epoch: Epoch::new(number + 1) }),
            planned_since: (number > 0).then(|| Incarnation::new(number)),
        })
    };
    let states = [
        WorkerState::Running,
        WorkerState::Stopped,
        WorkerState::Finished,
        WorkerState::Ended,
        WorkerState::Failed { end: WorkerEnd::Code(-1), age: Duration::from_millis(5) },
        WorkerState::Failed { end: WorkerEnd::Signal(9), age: Duration::ZERO },
        WorkerState::Failed { end: WorkerEnd::NotStarted, age: Duration::MAX },
    ];
    // What is reported in nanoseconds ends after 584 years.
    let bounded = move |state| match state {
        WorkerState::Failed { end, age } => {
            WorkerState::Failed { end, age: age.min(Duration::from_nanos(u64::MAX)) }
        }
        other => other,
    };
    let steps = [
        OrderStep::Stopping,
        OrderStep::Prepared { port: None },
        OrderStep::Prepared { port: NonZeroU16::new(29_500) },
        OrderStep::NotPrepared(NotPrepared::NoPort),
        OrderStep::NotPrepared(NotPrepared::RestartsUsedUp),
        OrderStep::Started,
    ];
    prop_oneof![
        (0..Epoch::MAX.number()).prop_map(registration),
        (epochs(), proptest::sample::select(states.to_vec()))
            .prop_map(move |(number, state)| FromNodeBody::Report(report(number, bounded(state)))),
        (epochs(), proptest::sample::select(steps.to_vec())).prop_map(|(epoch, step)| {
            FromNodeBody::Acknowledge(Acknowledgement { epoch: Epoch::new(epoch), step })
        }),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    let port = |number| NonZeroU16::new(number).unwrap();
    let ports = Ports { first: port(7), least: port(5), greatest: port(9) };
    let assignment = Assignment {
        slot: Slot(2),
        slots: 4,
        first_rank: Rank(16),
        workers: WorkersPerNode::new(8).unwrap(),
        world_size: 32,
        master: Master { address: HostAddress::new("host").unwrap(), port: port(29_501) },
        restarts: 3,
        digest: u64::MAX,
        job: "a job".to_owned(),
        max_restarts: 20,
    };
    proptest::sample::select(vec![
        Order::Welcome,
        Order::Register,
        Order::Prepare { ports: None, planned: false },
        Order::Prepare { ports: Some(ports), planned: true },
        Order::Commit(assignment),
        Order::Standby,
        Order::Stop(JobOutcome::Finished),
        Order::Stop(JobOutcome::GivenUp),
        Order::Evict,
        Order::Forget(identity(9).unwrap()),
    ])
}

/// Of devices in each state, and of the machine.
fn health(failed: bool) -> NodeHealth {
    let part = |name: &str, state| PartHealth {
        part: name.to_owned(),
        state,
        rule: if state == HealthState::Failed { "vanished" } else { "" }.to_owned(),
        reason: if state == HealthState::Ok { "" } else { "why" }.to_owned(),
    };
    let devices = [HealthState::Ok, HealthState::Warning, HealthState::Unknown];
    let devices = devices.into_iter().map(|state| part("0", state)).collect();
    let host = if failed { HealthState::Failed } else { HealthState::Ok };
    NodeHealth { devices, host: Some(part("eth0", host)) }
}

proptest! {
    #[test]
    fn what_an_agent_reports_arrives(
        mut body in bodies(), incarnation: u64, sequence: u64, failed in any::<bool>(),
    ) {
        let incarnation = Incarnation::new(incarnation);
        if let FromNodeBody::Report(report) = &mut body {
            // What the vitals have is read from them.
            report.fault = health(failed).failed().map(Box::new);
        }
        let reported = FromNode { node: name("rack-3.node_7"), incarnation, sequence, body };
        let health = health(failed);
        let vitals = Vitals {
            processors_busy_ratio: Some(0.5),
            memory_used_bytes: Some(1),
            memory_total_bytes: None,
            processes: vec![WorkerProcess {
                rank: Rank(3),
                process_id: Some(77),
                processors: Some(1.5),
                resident_bytes: None,
            }],
            health,
        };
        let bytes = encode::node_message(&reported, Some(&vitals)).encode_to_vec();
        let heard = node_message(&bytes, None).unwrap();
        let is_report = matches!(reported.body, FromNodeBody::Report(_));
        prop_assert_eq!(heard.vitals, is_report.then_some(vitals));
        prop_assert_eq!(heard.message, reported);
    }

    #[test]
    fn an_order_arrives(order in orders(), term: u64, sequence: u64, epoch in epochs()) {
        let (term, epoch) = (Term::new(term), Epoch::new(epoch));
        let message = ToNode { term, sequence, epoch, job: identity(5), order };
        let bytes = encode::coordinator_message(&name("n"), &message).encode_to_vec();
        let read = message::CoordinatorMessage::bounded(&bytes).unwrap();
        prop_assert_eq!(coordinator_message(read), Ok(DecodedOrder::Order { node: name("n"), message }));
    }

    #[test]
    fn an_epoch_beyond_every_job_is_refused(number in Epoch::MAX.number() + 1..) {
        let body = FromNodeBody::Report(report(number, WorkerState::Running));
        let reported =
            FromNode { node: name("n"), incarnation: Incarnation::new(1), sequence: 1, body };
        let bytes = encode::node_message(&reported, None).encode_to_vec();
        let refused = node_message(&bytes, None).unwrap_err().error;
        let is_expected = matches!(
            refused, ProtocolError::OutOfRange { field: "an epoch", value, .. } if value == number
        );
        prop_assert!(is_expected, "{}", refused);
    }

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        // Neither a panic nor an unknown message.
        if let Ok(word) = node_message(&bytes, None) {
            prop_assert!(!word.message.node.as_str().is_empty());
        }
    }
}

#[test]
fn a_refusal_arrives_and_is_cut() {
    let long = "ü".repeat(400);
    for (node, reason) in [(None, "why"), (Some(name("n")), long.as_str())] {
        let bytes = encode::refusal(node.as_ref(), reason).encode_to_vec();
        let read = message::CoordinatorMessage::bounded(&bytes).unwrap();
        let Ok(DecodedOrder::Refused { node: heard, reason: cut }) = coordinator_message(read)
        else {
            panic!("not a refusal")
        };
        assert_eq!(heard, node);
        assert!(reason.starts_with(&cut) && cut.len() <= 512 && !cut.is_empty());
    }
}

/// A correct report, changed.
fn changed(change: impl Fn(&mut message::Report)) -> Vec<u8> {
    let body = FromNodeBody::Report(report(6, WorkerState::Running));
    let reported =
        FromNode { node: name("n"), incarnation: Incarnation::new(1), sequence: 1, body };
    let mut message = encode::node_message(&reported, Some(&Vitals::default()));
    match &mut message.body {
        Some(message::node_message::Body::Report(report)) => change(report),
        other => panic!("not a report: {other:?}"),
    }
    message.encode_to_vec()
}

fn changed_window(change: impl Fn(&mut message::Window)) -> Vec<u8> {
    changed(|report| change(report.edges[0].window.as_mut().unwrap()))
}

fn changed_vitals(change: impl Fn(&mut message::Vitals)) -> Vec<u8> {
    changed(|report| change(report.vitals.as_mut().unwrap()))
}

fn ended(kind: message::worker_end::Kind) -> Vec<u8> {
    changed(move |report| {
        report.workers[0].state = message::WorkerState::Failed.into();
        report.workers[0].end = Some(message::WorkerEnd { kind: Some(kind) });
    })
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    use message::worker_end::Kind;
    let cases = [
        (changed(|_| ()), None),
        (changed(|report| report.activity = None), Some("what the agent is doing")),
        (changed(|report| report.workers[0].state = 99), Some("the state of a worker")),
        (changed(|report| report.workers[0].rank = u32::MAX), Some("a rank is 4294967295")),
        (changed(|report| report.progress[0].finished = 10), Some("more collectives")),
        (changed(|report| report.progress[0].sends_to = vec![0; 65]), Some("awaited ranks")),
        (changed(|report| report.edges[0].size_bucket = 65), Some("a size is 65")),
        (changed(|report| report.edges[0].direction = 0), Some("direction")),
        (changed(|report| report.waits[0].collective = -1), Some("collective")),
        (changed(|report| report.waits[0].window = None), Some("values of a window")),
        (changed_window(|window| window.count = 0), Some("1 to 10000")),
        (changed_window(|window| window.count = 10_001), Some("1 to 10000")),
        (changed_window(|window| window.median_ns = u64::MAX), Some("a latency")),
        (changed_vitals(|vitals| vitals.processors_busy_ratio = Some(f64::NAN)), Some("share")),
        (changed_vitals(|vitals| vitals.processors_busy_ratio = Some(-0.5)), Some("share")),
        (ended(Kind::Code(0)), Some("exit code 0")),
        (ended(Kind::Signal(0)), Some("a signal is 0")),
        (ended(Kind::Signal(65)), Some("a signal is 65")),
    ];
    for (number, (bytes, expected)) in cases.into_iter().enumerate() {
        match (node_message(&bytes, None), expected) {
            (Ok(_), None) => {}
            (Err(refused), Some(part)) => {
                assert_eq!(refused.node, Some(name("n")), "case {number}");
                let text = refused.error.to_string();
                assert!(text.contains(part), "case {number}: {text}");
            }
            (found, expected) => panic!("case {number}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn an_assignment_must_fit_together() {
    let mut message = message::CoordinatorMessage { node: "n".to_owned(), ..Default::default() };
    let fitting = message::Assignment {
        slot: 1,
        slots: 2,
        first_rank: 4,
        workers: 4,
        world_size: 8,
        master_address: "host".to_owned(),
        master_port: 29_500,
        restarts: 0,
        digest: 1,
        job: "job".to_owned(),
        max_restarts: 20,
    };
    let cases = [
        (fitting.clone(), true),
        (message::Assignment { slot: 2, ..fitting.clone() }, false),
        (message::Assignment { first_rank: 5, ..fitting.clone() }, false),
        (message::Assignment { world_size: 9, ..fitting.clone() }, false),
        (message::Assignment { slots: 70_000, ..fitting.clone() }, false),
        (message::Assignment { workers: 0, ..fitting.clone() }, false),
        (message::Assignment { master_port: 65_536, ..fitting.clone() }, false),
        (message::Assignment { job: String::new(), ..fitting.clone() }, false),
        (message::Assignment { job: "a\nb".to_owned(), ..fitting.clone() }, false),
        (message::Assignment { master_address: "a b".to_owned(), ..fitting }, false),
    ];
    for (assignment, fits) in cases {
        let commit = message::coordinator_message::Order::Commit(assignment.clone());
        message.order = Some(commit);
        assert_eq!(coordinator_message(message.clone()).is_ok(), fits, "{assignment:?}");
    }
}

/// The part of descriptor.proto that tells which messages have which fields.
#[derive(Clone, PartialEq, prost::Message)]
struct Descriptors {
    #[prost(message, repeated, tag = "1")]
    file: Vec<DescribedFile>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DescribedFile {
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<Described>,
}

/// A message with its fields.
#[derive(Clone, PartialEq, prost::Message)]
struct Described {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    field: Vec<DescribedField>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DescribedField {
    #[prost(string, tag = "1")]
    name: String,
}

/// The fields of the seed's messages.
const SEED: [&str; 11] = [
    "MetricsRequest.node_id",
    "MetricsRequest.metrics",
    "MetricsRequest.status",
    "Metrics.ram_usage",
    "Metrics.cpu_usage",
    "Metrics.rank_latencies",
    "NodeStatus.is_alive",
    "NodeStatus.process_id",
    "RestartConfig.new_rank",
    "RestartConfig.world_size",
    "RestartConfig.active_nodes",
];

#[test]
fn every_field_of_the_seed_has_the_counterpart_that_the_documentation_names() {
    let described = Descriptors::decode(telltale_wire::cluster::DESCRIPTORS).unwrap();
    let messages = described.file.iter().flat_map(|file| &file.message_type);
    let fields = |message: &Described| {
        let name = message.name.clone();
        message.field.clone().into_iter().map(move |field| format!("{name}.{}", field.name))
    };
    let ours: Vec<String> = messages.flat_map(fields).collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster-reference.md");
    let page = std::fs::read_to_string(page).unwrap();
    let part = page.split("## The seed's messages\n").nth(1).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let rows: Vec<_> = part.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    let seed: Vec<&str> = rows.iter().map(|row| row.split('`').next().unwrap()).collect();
    assert_eq!(seed, SEED);
    for row in rows {
        let counterpart = row.split(" | ").nth(1).unwrap();
        let names: Vec<&str> = counterpart.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            assert!(ours.iter().any(|field| field == name), "{row}: there is no {name}");
        }
    }
}
