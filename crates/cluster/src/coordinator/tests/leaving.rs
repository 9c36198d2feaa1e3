//! What becomes of a job when an agent is asked to end.

use super::*;
use crate::incident::Hold;
use crate::node::NodeState;
use crate::policy::Mode;
use crate::rank::Slot;

impl Cluster {
    /// The agent of a node is asked to end, says so, and is gone.
    fn leave(&mut self, text: &str) {
        self.say(&name(text), FromNodeBody::Leave);
        self.lose(text);
    }

    fn spent(&self) -> (u32, usize, usize) {
        let state = self.state();
        (state.evictions + state.counted_restarts, state.failures.len(), state.barred.len())
    }
}

#[test]
fn a_spare_takes_the_slot_of_a_node_that_leaves_at_once() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    cluster.leave("a");
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("d b c", 2));
    assert_eq!(cluster.master(), ("d.example".to_owned(), 29_501));
    assert!(cluster.coordinator.runs());
    let why = Why::Left { nodes: vec![name("a")] };
    assert!(cluster.decisions.iter().any(|decision| decision.why == why));
    let answer = cluster
        .orders
        .iter()
        .find(|(node, reported)| node.as_str() == "a" && reported.order == Order::Standby);
    assert!(answer.is_some(), "it knows that it was heard");
    cluster.pass(8 * SECOND);
    assert_eq!((cluster.epoch(), cluster.standings.len()), (2, 0), "nobody misses it");
    assert_eq!(cluster.spent(), (0, 0, 0), "nobody is to blame");
    assert_eq!(cluster.coordinator.nodes().count(), 3);
    // It is as welcome as any other.
    cluster.register("a");
    cluster.leave("b");
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("d a c", 3));
}

#[test]
fn several_leave_one_after_the_other_and_the_job_waits_for_others() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
    for node in ["c", "a", "b"] {
        cluster.leave(node);
    }
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("- - -", 2));
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::NoSpare));
    for node in ["a", "b", "c"] {
        cluster.register(node);
    }
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b c", 2));
    assert_eq!((cluster.spent(), cluster.coordinator.runs()), ((0, 0, 0), true));
}

#[test]
fn a_spare_that_leaves_is_not_given_a_slot() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    cluster.leave("c");
    assert_eq!((cluster.coordinator.nodes().count(), cluster.epoch()), (2, 1));
    cluster.fail("b", WorkerEnd::Signal(9));
    assert_eq!(cluster.map(), "a b");
}

#[test]
fn what_the_workers_of_a_node_that_leaves_tell_is_nobodys_fault() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    // The store is slow, and meanwhile the others miss it.
    cluster.refuses = Some(StoreOutcome::Failed);
    cluster.leave("a");
    assert_eq!(cluster.epoch(), 1);
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.refuses = None;
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("c b", 2));
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.spent(), (0, 0, 0), "it missed who left");
}

#[test]
fn who_leaves_while_it_is_given_a_slot_is_replaced_as_well() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c", "d"], Policy::default());
    cluster.refuses = Some(StoreOutcome::Unknown);
    cluster.leave("a");
    assert_eq!(cluster.decisions.last().unwrap().state.map.holder(Slot(0)), Some(&name("c")));
    cluster.leave("c");
    cluster.refuses = None;
    cluster.pass(3 * SECOND);
    assert_eq!(cluster.map(), "d b");
    assert_eq!((cluster.spent(), cluster.coordinator.runs()), ((0, 0, 0), true));
}

#[test]
fn who_goes_unheard_while_it_is_given_a_slot_is_missed() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c", "d"], Policy::default());
    cluster.refuses = Some(StoreOutcome::Unknown);
    cluster.leave("a");
    cluster.lose("c");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.coordinator.nodes().count(), 3, "a spare that is silent is forgotten");
    cluster.refuses = None;
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.map(), "d b");
    assert!(cluster.coordinator.runs());
}

#[test]
fn a_node_that_has_finished_may_leave() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    for local in 0..2 {
        cluster.end("a", local, WorkerState::Finished);
    }
    cluster.leave("a");
    cluster.pass(8 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 1));
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.pass(SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("c b", 2), "it is needed again");
    assert_eq!(cluster.state().failures.keys().collect::<Vec<_>>(), [&name("b")], "a has left");
    assert_eq!(cluster.state().evictions, 0);
}

#[test]
fn the_goodbye_of_a_node_that_has_finished_excuses_nobody() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    (0..2).for_each(|local| cluster.end("a", local, WorkerState::Finished));
    cluster.leave("a");
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("d b c", 2));
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("b"), 1)]));
}

#[test]
fn a_worker_that_is_killed_while_another_node_leaves_is_charged() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    // The store is slow, so that both are known before the next epoch begins.
    cluster.refuses = Some(StoreOutcome::Failed);
    cluster.leave("a");
    cluster.fail("b", WorkerEnd::Signal(11));
    cluster.refuses = None;
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("c b", 2));
    assert!(cluster.coordinator.runs() && cluster.state().planned);
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("b"), 1)]));
}

#[test]
fn a_planned_restart_that_is_reported_twice_while_the_store_is_slow_is_not_charged() {
    for outcome in [StoreOutcome::Failed, StoreOutcome::Unknown] {
        let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
        cluster.refuses = Some(outcome);
        cluster.register_after_plan("a");
        cluster.register_as_is("a");
        cluster.refuses = None;
        cluster.pass(3 * SECOND);
        assert_eq!((cluster.epoch(), cluster.spent()), (2, (0, 0, 0)), "{outcome:?}");
        assert_eq!((cluster.coordinator.runs(), cluster.standings.len()), (true, 0));
    }
}

#[test]
fn an_observer_lets_nobody_go() {
    let policy = Policy { mode: Mode::Observe, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], policy);
    cluster.leave("a");
    cluster.pass(10 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 1));
    let of_a = cluster.coordinator.nodes().find(|(node, _)| node.as_str() == "a");
    assert_eq!(of_a.map(|(_, state)| state), Some(NodeState::Ended));
    assert_eq!(cluster.standings.len(), 0, "its silence was expected");
    cluster.operate(OperatorOrder::SetMode(Mode::Recover)).unwrap();
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("c b", 2));
}

#[test]
fn a_leader_that_does_not_know_who_leaves_misses_it() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    cluster.input(Input::LeadershipLost);
    cluster.lead(2);
    ["b", "c", "d"].into_iter().for_each(|node| cluster.register_as_is(node));
    cluster.leave("a");
    assert_eq!(cluster.epoch(), 1);
    cluster.pass(10 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("d b c", 2));
}

#[test]
fn who_is_back_before_its_departure_is_stored_is_not_charged() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    cluster.refuses = Some(StoreOutcome::Unknown);
    cluster.leave("a");
    cluster.register("a");
    cluster.refuses = Some(StoreOutcome::Failed);
    cluster.pass(2 * SECOND);
    cluster.leave("a");
    cluster.register("a");
    cluster.refuses = None;
    cluster.pass(3 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 2));
    assert!(cluster.coordinator.runs());
    assert_eq!((cluster.spent(), cluster.standings.len()), ((0, 0, 0), 0));
}

#[test]
fn a_planned_restart_that_nobody_heard_of_is_known_by_the_next_life() {
    // How many lives there were, and whether there is a new leader.
    for (lives, new_leader) in [(1, false), (1, true), (3, false), (3, true)] {
        let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
        if new_leader {
            cluster.input(Input::LeadershipLost);
            cluster.lead(2);
        }
        (0..lives).for_each(|_| cluster.end_by_plan("a"));
        cluster.register_as_is("a");
        cluster.register_as_is("b");
        cluster.register_as_is("c");
        cluster.pass(3 * SECOND);
        assert!(cluster.coordinator.runs(), "{lives} {new_leader}: {}", cluster.map());
        let news = (cluster.epoch(), cluster.spent(), cluster.standings.len());
        assert_eq!(news, (2, (0, 0, 0), 0), "{lives} {new_leader}");
    }
}

#[test]
fn several_that_are_restarted_by_plan_together_are_not_charged() {
    let mut cluster = Cluster::formed(4, &["a", "b", "c", "d"], Policy::default());
    // The store is slow, so that several have come before the first is dealt with.
    cluster.refuses = Some(StoreOutcome::Unknown);
    ["b", "a", "d"].into_iter().for_each(|node| cluster.register_after_plan(node));
    cluster.fail("c", WorkerEnd::Code(1));
    cluster.refuses = None;
    cluster.pass(3 * SECOND);
    assert_eq!((cluster.epoch(), cluster.spent()), (2, (0, 0, 0)));
    assert!(cluster.coordinator.runs(), "{}", cluster.map());
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.epoch(), 2);
}

#[test]
fn survivors_of_a_planned_restart_are_not_charged_though_they_are_heard_first() {
    for new_leader in [true, false] {
        let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
        if new_leader {
            cluster.input(Input::LeadershipLost);
            cluster.lead(2);
            cluster.register_as_is("b");
        }
        cluster.lose("a");
        cluster.fail("b", WorkerEnd::Code(1));
        cluster.pass(2 * SECOND);
        cluster.register_after_plan("a");
        cluster.pass(3 * SECOND);
        assert!(cluster.coordinator.runs(), "{}", cluster.map());
        assert_eq!((cluster.epoch(), cluster.state().failures.len()), (2, 0), "{new_leader}");
        // A new leader waits for those whom it has not heard yet.
        let restarts = cluster.state().counted_restarts;
        assert_eq!(restarts, u32::from(!new_leader));
    }
}

#[test]
fn a_life_that_was_not_asked_to_end_is_charged_whatever_came_before() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    cluster.register_after_plan("a");
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.spent()), (2, (0, 0, 0)));
    cluster.register("a");
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.epoch(), cluster.state().failures.len()), (3, 1));
    // What an earlier life says of still earlier ones is no excuse for the last.
    let former = cluster.nodes[&name("a")].incarnation;
    cluster.begin_life(&name("a"), Some(Incarnation::new(former + 1)));
    cluster.register_as_is("a");
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.state().failures[&name("a")], 2);
}

#[test]
fn of_several_that_fail_together_nobody_is_charged() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
    cluster.register("a");
    cluster.register("b");
    cluster.pass(3 * SECOND);
    assert_eq!((cluster.epoch(), cluster.state().failures.len()), (2, 0));
    // The same when the second comes while the first is dealt with.
    cluster.lose("c");
    cluster.register("a");
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), &cluster.state().phase), (3, &Phase::Preparing));
    cluster.register("b");
    cluster.register("c");
    cluster.pass(3 * SECOND);
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.state().failures.len(), 0);
}

#[test]
fn an_observer_charges_no_planned_restart_when_it_may_act() {
    let policy = Policy { mode: Mode::Observe, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &["a", "b"], policy);
    cluster.register_after_plan("a");
    // It has lost its connection and registers again, in the same life.
    cluster.register_as_is("a");
    cluster.pass(2 * SECOND);
    let held = Standing::Held(Hold::Mode);
    assert_eq!((cluster.epoch(), cluster.standings.last()), (1, Some(&held)), "it is told");
    cluster.operate(OperatorOrder::SetMode(Mode::Recover)).unwrap();
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.epoch(), cluster.spent()), (2, (0, 0, 0)));
    assert!(cluster.coordinator.runs());
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.epoch(), 2);
}

#[test]
fn an_order_of_an_observer_has_a_planned_restart_behind_it() {
    let policy = Policy { mode: Mode::Observe, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &["a", "b"], policy);
    cluster.register_after_plan("a");
    cluster.operate(OperatorOrder::Restart).unwrap();
    cluster.pass(2 * SECOND);
    cluster.operate(OperatorOrder::SetMode(Mode::Act)).unwrap();
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.epoch(), cluster.spent()), (2, (0, 0, 0)));
    assert!(cluster.coordinator.runs());
}

#[test]
fn whom_a_new_leader_never_hears_is_replaced_and_not_charged() {
    for heard in [false, true] {
        let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
        cluster.input(Input::LeadershipLost);
        cluster.lead(2);
        ["b", "c"].into_iter().for_each(|node| cluster.register_as_is(node));
        if heard {
            cluster.register_as_is("a");
        }
        cluster.lose("a");
        cluster.pass(10 * SECOND);
        assert!(cluster.coordinator.runs(), "{}", cluster.map());
        assert_eq!((cluster.map().as_str(), cluster.epoch()), ("c b", 2));
        assert_eq!(cluster.state().failures.len(), usize::from(heard));
        assert_eq!(cluster.state().evictions, u32::from(heard));
    }
}

#[test]
fn who_leaves_once_the_job_is_over_has_ended_at_once() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    for (node, local) in [("a", 0), ("a", 1), ("b", 0), ("b", 1)] {
        cluster.end(node, local, WorkerState::Finished);
    }
    assert!(matches!(cluster.state().phase, Phase::Over(_)));
    let state = |cluster: &Cluster, name: &str| {
        cluster.coordinator.nodes().find(|(node, _)| node.as_str() == name).map(|(_, is)| is)
    };
    assert_eq!(state(&cluster, "a"), Some(NodeState::Active));
    cluster.leave("a");
    assert_eq!(state(&cluster, "a"), Some(NodeState::Ended));
    assert_eq!(state(&cluster, "b"), Some(NodeState::Active));
}
