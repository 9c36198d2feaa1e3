//! The agent, which receives messages of a coordinator and of its own node.

use std::num::{NonZeroU16, NonZeroU64};
use std::time::Duration;

use super::{Agent, AgentInput, AgentOutput, Exit, Identity, LocalRank};
use crate::epoch::{Epoch, JobIdentity, Term};
use crate::group::GroupId;
use crate::latency::{Collective, SizeBucket, WaitKey, WaitWindow, Window};
use crate::message::{
    Acknowledgement, AgentActivity, Assignment, FromNodeBody, JobOutcome, KnownJob, Master,
    NotPrepared, Order, OrderStep, Ports, ToNode,
};
use crate::node::{HostAddress, Incarnation, NodeName};
use crate::observation::{
    FailureDetail, GroupProgress, MAX_WINDOWS_PER_REPORT, Observation, WorkerEnd, WorkerState,
};
use crate::policy::AgentPolicy;
use crate::rank::{Rank, Slot, WorkersPerNode};
use crate::time::Moment;

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    agent: Agent,
    now: Moment,
    sequence: u64,
    term: u64,
}

fn workers() -> WorkersPerNode {
    WorkersPerNode::new(2).unwrap()
}

fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

fn ports() -> Ports {
    Ports { first: port(29_502), least: port(29_500), greatest: port(29_520) }
}

fn assignment() -> Assignment {
    Assignment {
        slot: Slot(3),
        slots: 5,
        first_rank: Rank(6),
        workers: workers(),
        world_size: 10,
        master: Master { address: HostAddress::new("10.0.0.7").unwrap(), port: port(29_503) },
        restarts: 4,
        digest: 99,
        job: "trial".to_owned(),
        max_restarts: 20,
    }
}

impl Bench {
    /// An agent that has registered and been welcomed.
    fn registered(policy: AgentPolicy) -> Self {
        let identity = Identity {
            node: NodeName::new("node").unwrap(),
            incarnation: Incarnation::new(7),
            planned_since: Some(Incarnation::new(5)),
            address: HostAddress::new("10.0.0.3").unwrap(),
            workers: workers(),
        };
        let now = Moment::from_ns(0).after(1000 * SECOND);
        let (agent, first) = Agent::new(identity, policy, now);
        assert_eq!(first, AgentOutput::ClearLeftovers);
        let mut bench = Self { agent, now, sequence: 0, term: 1 };
        assert_eq!(bench.step(AgentInput::Connected), []);
        let said = bench.step(AgentInput::LeftoversGone);
        assert_eq!(activities(&said), [("register", AgentActivity::Idle)]);
        bench.order(0, Order::Welcome);
        bench
    }

    fn step(&mut self, input: AgentInput) -> Vec<AgentOutput> {
        let mut outputs = Vec::new();
        self.agent.step(self.now, input, &mut outputs);
        outputs
    }

    fn order(&mut self, epoch: u64, order: Order) -> Vec<AgentOutput> {
        self.sequence += 1;
        let (term, sequence) = (Term::new(self.term), self.sequence);
        self.step(AgentInput::Order(ToNode {
            term,
            sequence,
            epoch: Epoch::new(epoch),
            job: None,
            order,
        }))
    }

    fn tick_after(&mut self, time: Duration) -> Vec<AgentOutput> {
        self.now = self.now.after(time);
        self.step(AgentInput::Tick)
    }

    fn started(&mut self, epoch: u64, local: u32) -> Vec<AgentOutput> {
        self.step(AgentInput::WorkerStarted { epoch: Epoch::new(epoch), local: LocalRank(local) })
    }

    fn exited(&mut self, epoch: u64, local: u32, exit: Exit) -> Vec<AgentOutput> {
        let (epoch, local) = (Epoch::new(epoch), LocalRank(local));
        self.step(AgentInput::WorkerExited { epoch, local, exit, detail: FailureDetail::default() })
    }

    /// Runs an epoch, from preparing to the last worker's start.
    fn run(&mut self, epoch: u64) {
        assert_eq!(
            steps(&self.order(epoch, Order::Prepare { ports: None, planned: false })),
            [OrderStep::Prepared { port: None }]
        );
        let begun = self.order(epoch, Order::Commit(assignment()));
        assert_eq!(begun.iter().filter(|one| matches!(one, AgentOutput::Start { .. })).count(), 2);
        self.started(epoch, 0);
        assert_eq!(steps(&self.started(epoch, 1)), [OrderStep::Started]);
    }
}

/// What was acknowledged.
fn steps(outputs: &[AgentOutput]) -> Vec<OrderStep> {
    let step = |output: &AgentOutput| match output {
        AgentOutput::Send(message) => match &message.body {
            FromNodeBody::Acknowledge(Acknowledgement { step, .. }) => Some(*step),
            _ => None,
        },
        _ => None,
    };
    outputs.iter().filter_map(step).collect()
}

/// What was reported about the agent's own activity, and how.
fn activities(outputs: &[AgentOutput]) -> Vec<(&'static str, AgentActivity)> {
    let reported = |output: &AgentOutput| match output {
        AgentOutput::Send(message) => match &message.body {
            FromNodeBody::Register(registration) => Some(("register", registration.activity)),
            FromNodeBody::Report(report) => Some(("report", report.activity)),
            FromNodeBody::Acknowledge(_) | FromNodeBody::Examined | FromNodeBody::Leave => None,
        },
        _ => None,
    };
    outputs.iter().filter_map(reported).collect()
}

/// The states of the workers in a report.
fn states(outputs: &[AgentOutput]) -> Vec<WorkerState> {
    let reported = |output: &AgentOutput| match output {
        AgentOutput::Send(message) => match &message.body {
            FromNodeBody::Report(report) => Some(report.observation.workers.clone()),
            _ => None,
        },
        _ => None,
    };
    outputs.iter().filter_map(reported).flatten().map(|worker| worker.state).collect()
}

fn terminations(outputs: &[AgentOutput]) -> usize {
    outputs.iter().filter(|output| matches!(output, AgentOutput::Terminate { .. })).count()
}

#[test]
fn a_worker_finds_its_place_as_under_torchrun() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.order(5, Order::Prepare { ports: None, planned: false });
    let begun = bench.order(5, Order::Commit(assignment()));
    let Some(AgentOutput::Start { local: LocalRank(1), environment, .. }) = begun.get(1) else {
        panic!("the second worker is started second: {begun:?}");
    };
    let expected = [
        ("RANK", "7"),
        ("WORLD_SIZE", "10"),
        ("LOCAL_RANK", "1"),
        ("LOCAL_WORLD_SIZE", "2"),
        ("GROUP_RANK", "3"),
        ("GROUP_WORLD_SIZE", "5"),
        ("ROLE_NAME", "default"),
        ("ROLE_RANK", "7"),
        ("ROLE_WORLD_SIZE", "10"),
        ("MASTER_ADDR", "10.0.0.7"),
        ("MASTER_PORT", "29503"),
        ("TORCHELASTIC_RESTART_COUNT", "4"),
        ("TORCHELASTIC_MAX_RESTARTS", "20"),
        ("TORCHELASTIC_RUN_ID", "trial"),
        ("TORCHELASTIC_USE_AGENT_STORE", "False"),
        ("TELLTALE_EPOCH", "5"),
    ];
    let found: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_port_is_held_while_its_epoch_is_prepared_and_run() {
    let mut bench = Bench::registered(AgentPolicy::default());
    assert!(!bench.agent.needs_port());
    let asked = bench.order(1, Order::Prepare { ports: Some(ports()), planned: false });
    assert!(asked.contains(&AgentOutput::HoldPort(ports())));
    assert_eq!(steps(&asked), [OrderStep::Stopping]);
    // An answer about other ports is not about these.
    let others = Ports { first: port(29_510), ..ports() };
    let other = AgentInput::PortHeld { ports: others, port: Some(port(29_510)) };
    assert_eq!(bench.step(other), []);
    let held = bench.step(AgentInput::PortHeld { ports: ports(), port: Some(port(29_503)) });
    assert_eq!(steps(&held), [OrderStep::Prepared { port: Some(port(29_503)) }]);
    let again = bench.order(1, Order::Prepare { ports: Some(ports()), planned: false });
    assert_eq!(steps(&again), [OrderStep::Prepared { port: Some(port(29_503)) }]);
    assert!(bench.agent.needs_port());
    bench.order(1, Order::Commit(Assignment { first_rank: Rank(0), ..assignment() }));
    assert!(bench.agent.needs_port(), "rank 0 is here");
    bench.order(2, Order::Prepare { ports: None, planned: false });
    assert!(!bench.agent.needs_port());
    bench.order(3, Order::Prepare { ports: Some(ports()), planned: false });
    bench.order(3, Order::Standby);
    assert!(!bench.agent.needs_port());
}

#[test]
fn an_agent_without_a_free_port_reports_it() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.order(1, Order::Prepare { ports: Some(ports()), planned: false });
    let outputs = bench.step(AgentInput::PortHeld { ports: ports(), port: None });
    assert_eq!(steps(&outputs), [OrderStep::NotPrepared(NotPrepared::NoPort)]);
    assert_eq!(ports().after(port(29_520)), port(29_500));
}

#[test]
fn workers_stop_before_the_next_epoch_is_prepared() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    let asked = bench.order(2, Order::Prepare { ports: None, planned: false });
    assert_eq!((terminations(&asked), steps(&asked)), (2, vec![OrderStep::Stopping]));
    // Commanded too early, it does not start a second epoch beside the first.
    assert_eq!(steps(&bench.order(2, Order::Commit(assignment()))), []);
    assert_eq!(steps(&bench.exited(1, 0, Exit::Signal(15))), []);
    let late = bench.tick_after(14 * SECOND);
    assert!(!late.iter().any(|one| matches!(one, AgentOutput::Kill { .. })));
    let late = bench.tick_after(SECOND);
    let (epoch, local) = (Epoch::new(1), LocalRank(1));
    assert!(late.contains(&AgentOutput::Kill { epoch, local }));
    assert_eq!(steps(&bench.exited(1, 1, Exit::Signal(9))), [OrderStep::Prepared { port: None }]);
    assert!(steps(&bench.order(2, Order::Commit(assignment()))).is_empty());
    assert_eq!(bench.agent.running(), Some(Epoch::new(2)));
    assert_eq!(bench.agent.metrics().kills, 1);
}

#[test]
fn a_worker_that_comes_late_is_stopped_again() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.order(1, Order::Prepare { ports: None, planned: false });
    bench.order(1, Order::Commit(assignment()));
    assert_eq!(terminations(&bench.order(1, Order::Standby)), 2);
    assert_eq!(terminations(&bench.started(1, 0)), 1);
}

#[test]
fn orders_that_are_repeated_late_or_of_a_deposed_leader_do_nothing() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.term = 3;
    bench.run(4);
    assert_eq!(steps(&bench.order(4, Order::Commit(assignment()))), [OrderStep::Started]);
    let stale = [
        (2, 1000, 9, Order::Standby),
        (3, 1, 9, Order::Standby),
        (3, 1000, 3, Order::Standby),
        (3, 1001, 3, Order::Prepare { ports: None, planned: false }),
        (3, 1002, 4, Order::Prepare { ports: None, planned: false }),
        (3, 1003, 5, Order::Commit(assignment())),
    ];
    for (term, sequence, epoch, order) in stale {
        let message =
            ToNode { term: Term::new(term), sequence, epoch: Epoch::new(epoch), job: None, order };
        assert_eq!(bench.step(AgentInput::Order(message.clone())), [], "{message:?}");
        assert_eq!(bench.agent.running(), Some(Epoch::new(4)));
    }
    let metrics = bench.agent.metrics();
    assert_eq!((metrics.stale_terms, metrics.stale_orders, metrics.stale_epochs), (1, 1, 4));
}

#[test]
fn workers_go_on_without_a_coordinator() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    assert_eq!(bench.step(AgentInput::Disconnected), []);
    assert_eq!(bench.tick_after(3600 * SECOND), []);
    assert_eq!(bench.exited(1, 0, Exit::Code(0)), []);
    let said = bench.step(AgentInput::Connected);
    assert_eq!(activities(&said), [("register", AgentActivity::Committed(Epoch::new(1)))]);
    assert_eq!(bench.tick_after(SECOND / 2), []);
    assert_eq!(activities(&bench.tick_after(SECOND / 2)).len(), 1);
    let reported = bench.order(1, Order::Welcome);
    assert_eq!(states(&reported), [WorkerState::Finished, WorkerState::Running]);
}

#[test]
fn a_failure_is_reported_at_once() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    let reported = bench.exited(1, 1, Exit::Signal(11));
    let end = WorkerEnd::Signal(11);
    let failed = |age| WorkerState::Failed { end, age };
    assert_eq!(states(&reported), [WorkerState::Running, failed(Duration::ZERO)]);
    let reported = bench.tick_after(SECOND);
    assert_eq!(states(&reported), [WorkerState::Running, failed(SECOND)]);
    // A report about a worker of another epoch changes nothing.
    assert_eq!(bench.exited(2, 0, Exit::Code(1)), []);
    assert_eq!(bench.agent.metrics().stale_workers, 1);
}

#[test]
fn the_end_of_the_job_is_reported_when_no_worker_is_left() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    let over = AgentOutput::Over(JobOutcome::GivenUp);
    assert!(!bench.order(1, Order::Stop(JobOutcome::GivenUp)).contains(&over));
    assert!(!bench.exited(1, 0, Exit::Signal(15)).contains(&over));
    assert!(bench.exited(1, 1, Exit::Code(0)).contains(&over));
    assert!(!bench.agent.has_workers());
}

#[test]
fn restarts_are_used_up_unless_an_epoch_lasts() {
    let policy = AgentPolicy { restart_budget: 2, ..AgentPolicy::default() };
    let mut bench = Bench::registered(policy);
    let refused = [OrderStep::NotPrepared(NotPrepared::RestartsUsedUp)];
    // The first epoch lasts, so the two after it are the ones that count.
    for epoch in 1..=3 {
        bench.run(epoch);
        if epoch == 1 {
            bench.tick_after(601 * SECOND);
        }
        bench.order(epoch, Order::Standby);
        bench.exited(epoch, 0, Exit::Signal(15));
        bench.exited(epoch, 1, Exit::Signal(15));
    }
    assert_eq!(steps(&bench.order(4, Order::Prepare { ports: None, planned: false })), refused);
}

#[test]
fn starts_that_were_planned_use_no_budget() {
    let mut bench = Bench::registered(AgentPolicy { restart_budget: 1, ..AgentPolicy::default() });
    for epoch in 1..=100 {
        bench.run(epoch);
        bench.exited(epoch, 0, Exit::Code(0));
        bench.exited(epoch, 1, Exit::Code(0));
        let planned = Order::Prepare { ports: None, planned: true };
        assert_eq!(steps(&bench.order(epoch + 1, planned)), [OrderStep::Prepared { port: None }]);
    }
    // One that a failure began does.
    bench.order(101, Order::Commit(assignment()));
    bench.started(101, 0);
    bench.started(101, 1);
    bench.exited(101, 0, Exit::Signal(9));
    bench.exited(101, 1, Exit::Signal(9));
    let refused = [OrderStep::NotPrepared(NotPrepared::RestartsUsedUp)];
    assert_eq!(steps(&bench.order(102, Order::Prepare { ports: None, planned: false })), refused);
}

#[test]
fn an_agent_without_restarts_reports_it_only_when_its_workers_are_gone() {
    let mut bench = Bench::registered(AgentPolicy { restart_budget: 1, ..AgentPolicy::default() });
    bench.run(1);
    let reported = steps(&bench.order(2, Order::Prepare { ports: None, planned: false }));
    assert_eq!(reported, [OrderStep::Stopping]);
    assert_eq!(steps(&bench.exited(1, 0, Exit::Signal(15))), []);
    let refused = [OrderStep::NotPrepared(NotPrepared::RestartsUsedUp)];
    assert_eq!(steps(&bench.exited(1, 1, Exit::Signal(15))), refused);
}

/// Ends epoch `epoch` by the exit of both workers after `lived`, and says how long it takes until the
/// next one is prepared.
fn rest_after(bench: &mut Bench, epoch: u64, lived: Duration, exit: Exit) -> Duration {
    bench.tick_after(lived);
    bench.exited(epoch, 0, exit);
    bench.exited(epoch, 1, exit);
    let mut reported =
        steps(&bench.order(epoch + 1, Order::Prepare { ports: None, planned: false }));
    let begun = bench.now;
    while reported != [OrderStep::Prepared { port: None }] {
        assert!(reported.is_empty() || reported == [OrderStep::Stopping], "{reported:?}");
        assert!(bench.now.since(begun) < Duration::from_secs(30), "a coordinator gives it up");
        reported = steps(&bench.tick_after(Duration::from_millis(100)));
    }
    bench.order(epoch + 1, Order::Commit(assignment()));
    bench.started(epoch + 1, 0);
    bench.started(epoch + 1, 1);
    bench.now.since(begun)
}

#[test]
fn workers_that_keep_ending_at_once_are_started_ever_later() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    let soon = SECOND / 2;
    let rests: Vec<Duration> =
        (1..=7).map(|epoch| rest_after(&mut bench, epoch, soon, Exit::Code(2))).collect();
    assert_eq!(rests, [0, 1, 2, 4, 8, 16, 16].map(Duration::from_secs));
    // One that lasts, even if it ends the same way, and everything is as at first.
    assert_eq!(rest_after(&mut bench, 8, 11 * SECOND, Exit::Code(2)), Duration::ZERO);
    assert_eq!(rest_after(&mut bench, 9, soon, Exit::Code(2)), Duration::ZERO);
    assert_eq!(rest_after(&mut bench, 10, soon, Exit::Code(2)), SECOND);
    assert_eq!(bench.agent.resting(), None, "it is over");
}

#[test]
fn a_planned_epoch_is_not_rested_for() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    for epoch in 1..=3 {
        rest_after(&mut bench, epoch, SECOND / 2, Exit::Code(1));
    }
    // These missed a peer whose agent was restarted.
    bench.tick_after(SECOND / 2);
    bench.exited(4, 0, Exit::Code(1));
    bench.exited(4, 1, Exit::Code(1));
    let reported = steps(&bench.order(5, Order::Prepare { ports: None, planned: true }));
    assert_eq!(reported, [OrderStep::Prepared { port: None }]);
}

#[test]
fn a_worker_that_was_killed_or_has_trained_is_started_again_without_rest() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    for epoch in 1..=4 {
        let rest = rest_after(&mut bench, epoch, SECOND / 2, Exit::Signal(9));
        assert_eq!(rest, Duration::ZERO, "killed in epoch {epoch}");
    }
    for epoch in 5..=8 {
        let (group, rank) = (GroupId::WORLD, Rank(6));
        let (sends_to, receives_from) = (Vec::new(), Vec::new());
        let progress = GroupProgress {
            group,
            rank,
            entered: 1,
            finished: 1,
            transferred: 0,
            sends_to,
            receives_from,
        };
        let observation = Observation { progress: vec![progress], ..Observation::default() };
        bench.step(AgentInput::Observed { epoch: Epoch::new(epoch), observation });
        let rest = rest_after(&mut bench, epoch, SECOND / 2, Exit::Code(1));
        assert_eq!(rest, Duration::ZERO, "trained in epoch {epoch}");
    }
}

#[test]
fn what_comes_between_two_reports_is_reported_together_and_not_without_bound() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.run(1);
    let window = Window {
        count: 1,
        mean_ns: 5,
        median_ns: 5,
        deviation_ns: 0,
        high_ns: 5,
        last_sequence: 1,
        late: 0,
        overlapped: 0,
    };
    let collective = Collective::AllReduce;
    let key =
        WaitKey { group: GroupId::WORLD, rank: Rank(6), collective, bucket: SizeBucket::of(1) };
    let wait = || Observation {
        waits: vec![WaitWindow { key, window }; MAX_WINDOWS_PER_REPORT - 1],
        excused: true,
        ..Observation::default()
    };
    let observed =
        |epoch, observation| AgentInput::Observed { epoch: Epoch::new(epoch), observation };
    assert_eq!(bench.step(observed(2, wait())), []);
    assert_eq!(bench.step(observed(1, wait())), []);
    let later = Observation { excused: false, ..wait() };
    assert_eq!(bench.step(observed(1, later)), []);
    let reported = bench.tick_after(SECOND);
    let Some(AgentOutput::Send(message)) = reported.first() else {
        panic!("it reports: {reported:?}")
    };
    let FromNodeBody::Report(report) = &message.body else { panic!("it reports: {message:?}") };
    assert_eq!(report.observation.waits.len(), MAX_WINDOWS_PER_REPORT);
    assert!(report.observation.excused);
    let dropped = u64::try_from(MAX_WINDOWS_PER_REPORT).unwrap() - 2;
    assert_eq!(bench.agent.metrics().dropped_windows, dropped);
}

#[test]
fn an_agent_that_is_asked_to_end_reports_it_and_nothing_more() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.order(5, Order::Prepare { ports: None, planned: false });
    bench.order(5, Order::Commit(assignment()));
    bench.started(5, 0);
    bench.started(5, 1);
    let said = bench.step(AgentInput::Leave);
    let [AgentOutput::Send(message)] = said.as_slice() else { panic!("one word: {said:?}") };
    assert_eq!(message.body, FromNodeBody::Leave);
    assert_eq!(bench.step(AgentInput::Leave), []);
    assert_eq!(
        bench.order(6, Order::Prepare { ports: None, planned: false }),
        [],
        "it starts nothing any more"
    );
    assert_eq!(bench.exited(5, 0, Exit::Signal(15)), []);
    assert_eq!(bench.tick_after(10 * SECOND), []);
}

#[test]
fn an_agent_that_prepares_when_it_is_asked_to_end_does_not_say_how_far_it_comes() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.order(5, Order::Prepare { ports: None, planned: false });
    bench.order(5, Order::Commit(assignment()));
    bench.started(5, 0);
    bench.started(5, 1);
    bench.order(6, Order::Prepare { ports: None, planned: false });
    bench.step(AgentInput::Leave);
    bench.exited(5, 0, Exit::Signal(15));
    assert_eq!(bench.exited(5, 1, Exit::Signal(15)), []);
}

#[test]
fn an_agent_that_nobody_knows_ends_without_a_word() {
    let mut bench = Bench::registered(AgentPolicy::default());
    bench.step(AgentInput::Disconnected);
    assert_eq!(bench.step(AgentInput::Leave), []);
    assert_eq!(bench.step(AgentInput::Connected), [], "nor does it register again");
}

#[test]
fn who_is_reported_to_forget_its_job_obeys_a_leader_of_an_earlier_term() {
    let mut bench = Bench::registered(AgentPolicy::default());
    let job = |number| JobIdentity::new(NonZeroU64::new(number).unwrap());
    let reported = |term, epoch, about, order| {
        let (term, epoch) = (Term::new(term), Epoch::new(epoch));
        AgentInput::Order(ToNode { term, sequence: 1, epoch, job: about, order })
    };
    let known = |outputs: &[AgentOutput]| {
        let registration = outputs.iter().find_map(|output| match output {
            AgentOutput::Send(message) => match &message.body {
                FromNodeBody::Register(one) => Some((one.known, one.activity)),
                _ => None,
            },
            _ => None,
        });
        registration.expect("it registers")
    };
    let prepare = Order::Prepare { ports: None, planned: false };
    bench.step(reported(50, 7, Some(job(1)), prepare.clone()));
    bench.step(reported(51, 7, Some(job(1)), Order::Commit(assignment())));
    bench.started(7, 0);
    bench.started(7, 1);
    bench.step(AgentInput::Disconnected);
    let outputs = bench.step(AgentInput::Connected);
    let is_known = Some(KnownJob { job: job(1), epoch: Epoch::new(7) });
    assert_eq!(known(&outputs), (is_known, AgentActivity::Committed(Epoch::new(7))));
    // Of another job, and without the word to forget, nothing is obeyed.
    assert_eq!(bench.step(reported(1, 1, Some(job(2)), Order::Standby)), []);
    assert_eq!(bench.step(reported(1, 0, None, Order::Forget(job(2)))), []);
    assert_eq!(bench.agent.running(), Some(Epoch::new(7)));
    let outputs = bench.step(reported(1, 0, None, Order::Forget(job(1))));
    assert_eq!(known(&outputs), (None, AgentActivity::Idle));
    let ended = outputs.iter().filter(|one| matches!(one, AgentOutput::Terminate { .. })).count();
    assert_eq!(ended, 2);
    bench.exited(7, 0, Exit::Signal(15));
    bench.exited(7, 1, Exit::Signal(15));
    let prepared = bench.step(reported(1, 1, Some(job(2)), prepare));
    assert_eq!(steps(&prepared), [OrderStep::Prepared { port: None }]);
}

#[test]
fn a_leader_of_another_job_does_not_change_what_an_agent_knows_by_asking_it_to_register() {
    let mut bench = Bench::registered(AgentPolicy::default());
    let job = |number| NonZeroU64::new(number).map(JobIdentity::new);
    let reported = |term, epoch, about, order| {
        let (term, epoch) = (Term::new(term), Epoch::new(epoch));
        AgentInput::Order(ToNode { term, sequence: 1, epoch, job: about, order })
    };
    let prepare = Order::Prepare { ports: None, planned: false };
    bench.step(reported(3, 7, job(1), prepare));
    bench.step(reported(4, 7, job(1), Order::Commit(assignment())));
    bench.started(7, 0);
    bench.started(7, 1);
    let outputs = bench.step(reported(90, 50, job(2), Order::Register));
    let known = outputs.iter().find_map(|output| match output {
        AgentOutput::Send(message) => match &message.body {
            FromNodeBody::Register(one) => Some(one.known),
            _ => None,
        },
        _ => None,
    });
    let is_known = job(1).map(|job| KnownJob { job, epoch: Epoch::new(7) });
    assert_eq!(known, Some(is_known), "it registers as what it is");
    assert_eq!(bench.agent.running(), Some(Epoch::new(7)));
    // Its own leader is obeyed as before, though its term is lower.
    bench.step(reported(5, 8, job(1), Order::Prepare { ports: None, planned: false }));
    assert_eq!(bench.agent.running(), None);
}
