//! A new leader, old messages, and another who decides.

use super::*;

#[test]
fn a_new_leader_disturbs_nobody() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    cluster.input(Input::LeadershipLost);
    cluster.orders.clear();
    cluster.pass(3 * SECOND);
    cluster.lead(2);
    for node in ["a", "b", "c", "d"] {
        cluster.register_as_is(node);
    }
    cluster.pass(20 * SECOND);
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.epoch(), 1);
    assert!(cluster.orders.iter().all(|(_, message)| message.order == Order::Welcome));
    assert!(cluster.orders.iter().all(|(_, message)| message.term == Term::new(2)));
}

#[test]
fn a_new_leader_goes_on_where_the_last_one_stopped() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    cluster.lose("b");
    cluster.fail("a", WorkerEnd::Code(1));
    cluster.pass(SECOND);
    assert_eq!(cluster.state().phase, Phase::Preparing);
    cluster.input(Input::LeadershipLost);
    cluster.lead(2);
    cluster.register_as_is("a");
    cluster.register_as_is("c");
    cluster.pass(4 * SECOND);
    assert_eq!(cluster.map(), "a b", "it observes before it evicts");
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "a c"));
    assert!(cluster.coordinator.runs());
}

#[test]
fn a_new_leader_evicts_who_was_lost_meanwhile() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    cluster.input(Input::LeadershipLost);
    cluster.lose("b");
    cluster.lead(2);
    for node in ["a", "c", "d"] {
        cluster.register_as_is(node);
    }
    cluster.pass(7 * SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "a d c"));
}

#[test]
fn budgets_outlive_a_leader() {
    let policy = Policy { eviction_budget: 1, ..Policy::default() };
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d", "e"], policy);
    cluster.lose("a");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.map(), "d b c");
    cluster.input(Input::LeadershipLost);
    cluster.lead(2);
    for node in ["b", "c", "d", "e"] {
        cluster.register_as_is(node);
    }
    cluster.lose("b");
    cluster.pass(30 * SECOND);
    assert_eq!(cluster.map(), "d b c");
}

#[test]
fn a_leader_takes_over_whatever_is_said_to_be_spent() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    cluster.input(Input::LeadershipLost);
    let state = &mut cluster.store.as_mut().unwrap().0;
    (state.evictions, state.counted_restarts) = (u32::MAX, u32::MAX);
    state.failures.insert(name("a"), u32::MAX);
    cluster.lead(2);
    cluster.register_as_is("a");
    cluster.fail("a", WorkerEnd::Signal(9));
    let given_up = crate::message::JobOutcome::GivenUp;
    assert_eq!(cluster.state().phase, Phase::Over(given_up));
    assert_eq!(cluster.state().evictions, u32::MAX);
}

#[test]
fn who_finds_another_revision_decides_no_more() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    cluster.orders.clear();
    cluster.refuses = Some(StoreOutcome::Conflict);
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotLeading));
    assert_eq!(cluster.stepped_down, Some(StepDown::Conflict));
    assert!(!cluster.coordinator.leads() && cluster.orders.is_empty());
}

#[test]
fn a_store_of_another_job_is_left_alone() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    let (mut state, revision) = cluster.store.clone().unwrap();
    state.map = crate::rank::RankMap::vacant(1, WorkersPerNode::new(7).unwrap());
    cluster.input(Input::LeadershipLost);
    cluster.store = Some((state, revision));
    cluster.lead(2);
    let Some(StepDown::OtherJob(other)) = &cluster.stepped_down else { panic!("it goes on") };
    let reported = other.to_string();
    for words in ["1 nodes of 7 workers is stored", "1 nodes of 2 was asked", "--reset-job"] {
        assert!(reported.contains(words), "{reported}");
    }
    assert!(!cluster.coordinator.leads() && cluster.decisions.last().unwrap().term == Term::new(1));
}

#[test]
fn a_job_goes_on_with_what_fits_it_alone() {
    let job = |name: &str, slots, workers| {
        let (name, workers) = (name.to_owned(), WorkersPerNode::new(workers).unwrap());
        Job { name, slots, workers }
    };
    let asked = job("job", 4, 2);
    let cases = [
        (job("job", 4, 2), true),
        (job("job", 3, 2), true),
        (job("job", 5, 2), false),
        (job("job", 4, 1), false),
        (job("other", 4, 2), false),
    ];
    for (stored, fits) in cases {
        let forming = StoredState::initial(&stored, Policy::default().mode);
        assert_eq!(check_stored(&asked, &forming), Ok(()), "nothing ran: {stored:?}");
        let ran = StoredState { phase: Phase::Preparing, ..forming };
        assert_eq!(check_stored(&asked, &ran).is_ok(), fits, "{stored:?}");
        let unnamed = StoredState { job: None, ..ran };
        assert_eq!(check_stored(&asked, &unnamed).is_ok(), fits || stored.name == "other");
    }
}

#[test]
fn a_job_that_is_reset_is_stopped_and_forms_again() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    assert_eq!(cluster.operate(OperatorOrder::Drain(name("d"))), Ok(()));
    cluster.input(Input::LeadershipLost);
    let before = cluster.store.clone().unwrap().0;
    let (decisions, orders) = (cluster.decisions.len(), cluster.orders.len());
    // Two nodes of one worker each, where there were three of two.
    let job = Job { name: "job".to_owned(), slots: 2, workers: WorkersPerNode::new(1).unwrap() };
    cluster.coordinator = Coordinator::new(job, Policy::default()).unwrap();
    cluster.coordinator.reset_other_job();
    cluster.workers = 1;
    cluster.lead(2);
    cluster.pass(SECOND / 10);
    assert_eq!(cluster.decisions[decisions].why, Why::Reset);
    let fresh = &cluster.decisions[decisions].state;
    assert_eq!((fresh.epoch, &fresh.phase), (before.epoch, &Phase::Forming));
    assert_eq!((&fresh.barred, fresh.last_port), (&before.barred, before.last_port));
    for node in ["a", "b", "c"] {
        cluster.register_as_is(node);
    }
    cluster.pass(2 * SECOND);
    let stopped = |node: &str| {
        let mut reported = cluster.orders[orders..].iter().filter(|(to, _)| to.as_str() == node);
        reported.any(|(_, message)| message.order == Order::Standby)
    };
    assert!(["a", "b", "c"].into_iter().all(stopped), "{:?}", &cluster.orders[orders..]);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "a b"));
    assert_eq!(cluster.state().restarts, 0);
    assert!(cluster.coordinator.runs());
    // The wish counts once: the next leader that finds another job leaves it alone.
    cluster.input(Input::LeadershipLost);
    cluster.store.as_mut().unwrap().0.job = Some("other".to_owned());
    cluster.lead(3);
    assert!(matches!(cluster.stepped_down, Some(StepDown::OtherJob(_))));
}

#[test]
fn an_agent_that_was_started_again_has_lost_its_workers() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    cluster.register("b");
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "a b"));
    assert!(cluster.coordinator.runs());
}

/// A report of node `a`, whose worker has failed, as it was or as a late or false one would be.
fn failure(cluster: &Cluster, incarnation: u64, sequence: u64, epoch: u64) -> FromNode {
    let end = WorkerEnd::Signal(9);
    let failed = WorkerState::Failed { end, age: Duration::ZERO };
    let worker = |rank| WorkerObservation { rank: Rank(rank), state: failed };
    let workers = vec![worker(0), worker(1)];
    let observation = Observation { workers, ..Observation::default() };
    let activity = AgentActivity::Committed(Epoch::new(epoch));
    let node = &cluster.nodes[&name("a")];
    FromNode {
        node: name("a"),
        incarnation: Incarnation::new(node.incarnation + incarnation - 1),
        sequence: node.sequence + sequence,
        body: FromNodeBody::Report(Report { activity, observation, fault: None }),
    }
}

#[test]
fn what_is_late_or_of_another_life_or_epoch_is_not_believed() {
    // The node is in its second life, and the job in its second epoch.
    let cases = [
        ((1, 1, 2), Ok(())),
        ((0, 1, 2), Err(Stale::Incarnation)),
        ((2, 1, 2), Err(Stale::Incarnation)),
        ((1, 0, 2), Err(Stale::Sequence)),
        ((1, 1, 1), Err(Stale::Epoch)),
        ((1, 1, 3), Err(Stale::Epoch)),
    ];
    for ((incarnation, sequence, epoch), expected) in cases {
        let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
        cluster.register("a");
        cluster.pass(SECOND);
        assert_eq!(cluster.epoch(), 2);
        let before = cluster.standings.len();
        let message = failure(&cluster, incarnation, sequence, epoch);
        assert_eq!(cluster.coordinator.accepts(&message), expected);
        cluster.input(Input::Node(message));
        let heeded = cluster.standings.len() > before;
        // A node that says it runs another epoch than it acknowledged is not what it was.
        let other_epoch = expected == Err(Stale::Epoch);
        assert_eq!(heeded, expected.is_ok() || other_epoch, "{incarnation} {sequence} {epoch}");
    }
}

#[test]
fn a_report_of_other_ranks_is_not_believed() {
    for ranks in [vec![], vec![0], vec![0, 0], vec![1, 0], vec![0, 1, 2], vec![2, 3], vec![0, 9]] {
        let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
        let mut message = failure(&cluster, 1, 1, 1);
        let FromNodeBody::Report(report) = &mut message.body else { panic!("it is a report") };
        let state = report.observation.workers[0].state;
        let workers = ranks.iter().map(|rank| WorkerObservation { rank: Rank(*rank), state });
        report.observation.workers = workers.collect();
        assert_eq!(cluster.coordinator.accepts(&message), Err(Stale::Ranks), "{ranks:?}");
        cluster.input(Input::Node(message));
        assert_eq!(cluster.coordinator.metrics().foreign_ranks, 1);
        assert_eq!(cluster.standings, []);
    }
}

#[test]
fn acknowledgements_of_another_epoch_are_counted_and_answered_with_the_reason() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    cluster.lose("b");
    cluster.fail("a", WorkerEnd::Signal(9));
    cluster.pass(SECOND);
    assert_eq!(cluster.state().phase, Phase::Preparing);
    for (epoch, step) in [
        (1, OrderStep::Prepared { port: None }),
        (3, OrderStep::Prepared { port: None }),
        (2, OrderStep::Started),
    ] {
        let epoch = Epoch::new(epoch);
        cluster.say(&name("b"), FromNodeBody::Acknowledge(Acknowledgement { epoch, step }));
    }
    assert_eq!(cluster.state().phase, Phase::Preparing);
    assert_eq!(cluster.coordinator.metrics().stale_epochs, 3);
    assert_eq!(cluster.refusals, vec![(name("b"), Stale::Epoch); 3]);
}

#[test]
fn an_acknowledgement_that_is_played_again_is_counted_and_answered_with_the_reason() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    let epoch = Epoch::new(1);
    let started = FromNodeBody::Acknowledge(Acknowledgement { epoch, step: OrderStep::Started });
    let node = &cluster.nodes[&name("a")];
    let again = FromNode {
        node: name("a"),
        incarnation: Incarnation::new(node.incarnation),
        sequence: 2,
        body: started.clone(),
    };
    cluster.input(Input::Node(again));
    assert_eq!(cluster.coordinator.metrics().stale_sequences, 1);
    assert_eq!(cluster.refusals, [(name("a"), Stale::Sequence)]);
    // One more answer to an order that was sent twice is not an error.
    cluster.say(&name("a"), started);
    assert_eq!(cluster.refusals.len(), 1);
    assert!(cluster.coordinator.runs());
}

#[test]
fn rank_zero_without_a_fresh_port_is_not_prepared() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    cluster.lose("a");
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    let epoch = Epoch::new(2);
    for port in [None, NonZeroU16::new(29_500)] {
        let step = OrderStep::Prepared { port };
        cluster.say(&name("a"), FromNodeBody::Acknowledge(Acknowledgement { epoch, step }));
        assert_eq!(cluster.state().phase, Phase::Preparing);
    }
    let step = OrderStep::Prepared { port: NonZeroU16::new(29_503) };
    cluster.say(&name("a"), FromNodeBody::Acknowledge(Acknowledgement { epoch, step }));
    assert_eq!(cluster.master().1, 29_503);
}
