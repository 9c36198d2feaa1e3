//! What operators order.

use super::*;
use crate::incident::Hold;
use crate::message::NotPrepared;
use crate::policy::Mode;

#[test]
fn a_drained_node_leaves_when_a_spare_is_there() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    assert_eq!(cluster.operate(OperatorOrder::Drain(name("a"))), Ok(()));
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (1, "a b"));
    cluster.register("c");
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "c b"));
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.coordinator.metrics().evictions, 0);
}

#[test]
fn a_removed_node_leaves_at_once_and_stays_away() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    assert_eq!(cluster.operate(OperatorOrder::Remove(name("b"))), Ok(()));
    cluster.register("b");
    cluster.pass(SECOND);
    assert_eq!((cluster.map().as_str(), &cluster.state().phase), ("a -", &Phase::Preparing));
    assert_eq!(cluster.operate(OperatorOrder::Readmit(name("b"))), Ok(()));
    assert_eq!(cluster.map(), "a b");
}

#[test]
fn a_job_that_is_over_reports_who_comes_and_can_be_restarted_with_nobody_there() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    for local in 0..2 {
        cluster.end("a", local, WorkerState::Finished);
    }
    let finished = crate::message::JobOutcome::Finished;
    assert_eq!(cluster.state().phase, Phase::Over(finished));
    let reported = |cluster: &mut Cluster, before: usize| {
        let orders = cluster.orders.split_off(before).into_iter();
        orders.map(|(node, message)| (node.as_str().to_owned(), message.order)).collect::<Vec<_>>()
    };
    let before = cluster.orders.len();
    cluster.register("late");
    cluster.pass(3 * SECOND);
    // Once is enough: one that stays is sent nothing more.
    let expected = [Order::Welcome, Order::Stop(finished)].map(|order| ("late".to_owned(), order));
    assert_eq!(reported(&mut cluster, before), expected);
    // Agents have ended. Those that are started after the order run the next epoch.
    cluster.lose("a");
    cluster.lose("late");
    cluster.pass(20 * SECOND);
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    cluster.pass(20 * SECOND);
    assert_eq!((cluster.epoch(), &cluster.state().phase), (2, &Phase::Preparing));
    cluster.register("a");
    cluster.pass(SECOND);
    assert!(cluster.coordinator.runs(), "{}", cluster.map());
}

#[test]
fn a_finished_job_is_restarted_on_who_is_there() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
    for (node, local) in [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 1)] {
        cluster.end(node, local, WorkerState::Finished);
    }
    ["a", "b"].into_iter().for_each(|node| cluster.lose(node));
    cluster.pass(20 * SECOND);
    cluster.register("d");
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    cluster.pass(20 * SECOND);
    assert_eq!((cluster.map().as_str(), &cluster.state().phase), ("d - c", &Phase::Preparing));
    cluster.register("e");
    cluster.pass(SECOND);
    assert_eq!((cluster.map().as_str(), cluster.coordinator.runs()), ("d e c", true));
    assert_eq!(cluster.coordinator.metrics().evictions, 0);
}

#[test]
fn an_order_that_cannot_be_carried_out_is_refused() {
    let mut cluster = Cluster::leading(1, Policy::default());
    let unknown = OrderRefused::UnknownNode { node: name("x") };
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotStarted));
    assert_eq!(cluster.operate(OperatorOrder::Drain(name("x"))), Err(unknown));
    cluster.register("a");
    cluster.refuses = Some(StoreOutcome::Failed);
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotStored));
    cluster.input(Input::LeadershipLost);
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotLeading));
}

#[test]
fn orders_wait_for_the_store_and_not_without_bound() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    cluster.refuses = Some(StoreOutcome::Unknown);
    cluster.input(Input::Operator { request: RequestId(0), order: OperatorOrder::Restart });
    for request in 1..=super::super::MAX_WAITING_ORDERS + 1 {
        let request = RequestId(u64::try_from(request).unwrap());
        cluster.input(Input::Operator { request, order: OperatorOrder::Restart });
    }
    assert_eq!(cluster.answers, [Err(OrderRefused::TooMany)]);
    // The same decision is given to the store until it answers.
    cluster.pass(2 * SECOND);
    let numbers: BTreeSet<_> = cluster.decisions.iter().skip(2).map(|one| one.number).collect();
    assert!(cluster.decisions.len() > 3 && numbers.len() == 1);
    cluster.refuses = None;
    cluster.pass(2 * SECOND);
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.answers.len(), super::super::MAX_WAITING_ORDERS + 2);
}

impl Cluster {
    /// Every worker of these nodes ends well.
    fn finish(&mut self, nodes: &[&str]) {
        for (node, local) in nodes.iter().flat_map(|node| [(node, 0), (node, 1)]) {
            self.end(node, local, WorkerState::Finished);
        }
    }
}

#[test]
fn agents_that_are_started_again_for_a_planned_epoch_are_not_charged() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    for round in 0..10 {
        cluster.finish(&["a", "b"]);
        assert!(matches!(cluster.state().phase, Phase::Over(_)));
        ["a", "b", "c"].into_iter().for_each(|node| cluster.lose(node));
        assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
        // A second leader knows as well how the epoch began.
        if round % 2 == 1 {
            cluster.input(Input::LeadershipLost);
            cluster.lead(round + 2);
        }
        // One comes twice, while the epoch is prepared.
        ["c", "b", "b", "a"].into_iter().for_each(|node| cluster.register(node));
        cluster.pass(SECOND);
        assert!(cluster.coordinator.runs(), "round {round}: {}", cluster.map());
    }
    assert_eq!((cluster.state().failures.len(), cluster.state().barred.len()), (0, 0));
    assert_eq!(cluster.map(), "a b");
}

#[test]
fn a_failure_before_an_order_is_not_charged_to_it() {
    let policy = Policy { mode: Mode::Observe, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], policy);
    for _ in 0..5 {
        cluster.fail("a", WorkerEnd::Signal(9));
        cluster.pass(SECOND);
        assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
        assert!(cluster.coordinator.runs());
    }
    assert_eq!((cluster.map().as_str(), cluster.state().failures.len()), ("a b", 0));
}

#[test]
fn who_is_not_there_for_a_planned_epoch_is_passed_over_without_a_budget() {
    let policy = Policy { eviction_budget: 0, ..Policy::default() };
    let mut cluster = Cluster::formed(4, &["a", "b", "c", "d", "e", "f"], policy);
    ["a", "b"].into_iter().for_each(|node| cluster.lose(node));
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    cluster.pass(7 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.coordinator.runs()), ("e f c d", true));
    assert_eq!((cluster.state().failures.len(), cluster.state().evictions), (0, 0));
}

#[test]
fn an_order_takes_an_epoch_that_waits_for_a_budget_over() {
    let policy = Policy { eviction_budget: 0, ..Policy::default() };
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], policy);
    cluster.lose("a");
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::EvictionBudget));
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "d b c"));
    assert!(cluster.coordinator.runs());
}

#[test]
fn what_cannot_prepare_is_charged_though_the_epoch_was_ordered() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    cluster.lose("a");
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    for failures in 1..=3 {
        let epoch = cluster.state().epoch;
        let step = OrderStep::NotPrepared(NotPrepared::NoPort);
        cluster.say(&name("a"), FromNodeBody::Acknowledge(Acknowledgement { epoch, step }));
        assert_eq!(cluster.state().failures.get(&name("a")), Some(&failures));
    }
    let waits = (cluster.map(), cluster.coordinator.waits_for());
    assert_eq!(waits, ("-".to_owned(), Some(Hold::NoSpare)), "it is not asked for ever");
}

#[test]
fn an_order_while_an_epoch_is_prepared_drops_the_charge() {
    // How its worker ended, and whether the node has failed so often that it would be replaced.
    for (end, failures) in
        [(WorkerEnd::Code(1), 1), (WorkerEnd::Signal(9), 1), (WorkerEnd::Signal(9), 3)]
    {
        let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
        for _ in 1..failures {
            cluster.fail("b", end);
            cluster.pass(SECOND);
        }
        let former = cluster.state().failures.clone();
        // The other node does not answer yet, so that the next epoch is prepared for a while.
        cluster.lose("a");
        cluster.fail("b", end);
        cluster.now = cluster.now.after(SECOND);
        cluster.input(Input::Tick);
        assert_eq!(cluster.state().phase, Phase::Preparing);
        cluster.operate(OperatorOrder::Restart).unwrap();
        cluster.gone.clear();
        cluster.pass(2 * SECOND);
        assert!(cluster.coordinator.runs());
        assert_eq!((cluster.map().as_str(), &cluster.state().failures), ("a b", &former), "{end}");
        assert_eq!((cluster.state().evictions, cluster.state().barred.len()), (0, 0));
    }
}
