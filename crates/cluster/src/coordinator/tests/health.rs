//! Nodes whose health has failed while the job runs.

use super::*;
use crate::incident::{Hold, HookOutcome};
use crate::node::Bar;
use crate::policy::Mode;
use crate::verdict::Suspect;

fn acting() -> Policy {
    Policy { mode: Mode::Act, ..Policy::default() }
}

fn with_hook() -> Policy {
    let before_drain = vec!["/bin/save".to_owned()];
    Policy { before_drain, before_drain_timeout: 20 * SECOND, ..acting() }
}

fn saved() -> HookOutcome {
    HookOutcome { end: Some(WorkerEnd::Code(0)), last_line: "saved".to_owned(), took: SECOND }
}

#[track_caller]
fn assert_held(cluster: &Cluster, hold: Hold) {
    assert_eq!(cluster.standings.last(), Some(&Standing::Held(hold)));
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (1, "a b"));
    assert!(cluster.coordinator.runs());
}

#[test]
fn a_node_whose_health_has_failed_is_drained_for_a_spare() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], acting());
    cluster.break_part("b");
    cluster.pass(4 * SECOND);
    assert_eq!((cluster.epoch(), cluster.standings.len()), (1, 0), "it may be a reset");
    cluster.pass(4 * SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "a c"));
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.state().barred, BTreeMap::from([(name("b"), Bar::Draining)]));
    assert_eq!(cluster.state().failures, BTreeMap::new(), "a node is not charged for its health");
    assert_eq!(cluster.coordinator.metrics().evictions, 1);
    let reported = cluster.reported.as_ref().unwrap();
    let cause = reported.root_cause().unwrap();
    assert_eq!((cause.node, cause.certain), (name("b"), true));
    // It is out, whatever its health is.
    cluster.pass(30 * SECOND);
    cluster.mend("b");
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.coordinator.metrics().incidents), (2, 1));
    cluster.operate(OperatorOrder::Readmit(name("b"))).unwrap();
    cluster.lose("c");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.map(), "a b");
}

#[test]
fn a_fault_that_ends_in_time_is_no_incident_and_one_that_ends_while_it_is_held_passes() {
    let mut cluster = Cluster::formed(2, &["a", "b"], acting());
    for _ in 0..5 {
        cluster.break_part("b");
        cluster.pass(4 * SECOND);
        cluster.mend("b");
        cluster.pass(SECOND);
    }
    assert_eq!(cluster.coordinator.metrics().incidents, 0);
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    assert_held(&cluster, Hold::NoSpare);
    cluster.mend("b");
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.standings.last(), cluster.epoch()), (Some(&Standing::Passed), 1));
    // It is another one the next time.
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.coordinator.metrics().incidents, 2);
}

#[test]
fn without_leave_a_healthy_spare_or_a_budget_nothing_is_done() {
    let observing = Policy { mode: Mode::Observe, ..acting() };
    let no_evictions = Policy { eviction_budget: 0, ..acting() };
    let no_restarts = Policy { restart_budget: 0, ..acting() };
    let cases = [
        (observing, &["a", "b", "c"][..], &["b"][..], Hold::Mode),
        (Policy::default(), &["a", "b", "c"], &["b"], Hold::Mode),
        (no_evictions, &["a", "b", "c"], &["b"], Hold::EvictionBudget),
        (no_restarts, &["a", "b", "c"], &["b"], Hold::RestartBudget),
        (acting(), &["a", "b"], &["b"], Hold::NoSpare),
        (acting(), &["a", "b", "c"], &["b", "c"], Hold::NoSpare),
    ];
    for (policy, nodes, broken, hold) in cases {
        let mut cluster = Cluster::formed(2, nodes, policy);
        broken.iter().for_each(|node| cluster.break_part(node));
        cluster.pass(60 * SECOND);
        assert_held(&cluster, hold);
        assert_eq!(cluster.standings.len(), 2, "it is said once");
    }
}

#[test]
fn a_spare_that_comes_or_gets_well_takes_the_slot() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], acting());
    ["b", "c"].into_iter().for_each(|node| cluster.break_part(node));
    cluster.pass(20 * SECOND);
    cluster.register("d");
    cluster.pass(3 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a d", 2), "c is not well");
    cluster.break_part("a");
    cluster.pass(20 * SECOND);
    assert_eq!(cluster.map(), "a d");
    cluster.mend("c");
    cluster.pass(3 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("c d", 3));
}

#[test]
fn a_spare_whose_health_has_failed_takes_a_slot_only_where_there_is_no_other() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c", "d"], Policy::default());
    cluster.break_part("c");
    cluster.pass(2 * SECOND);
    cluster.lose("b");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.map(), "a d");
    cluster.lose("d");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.map(), "a c");
}

#[test]
fn a_node_is_drained_once_the_command_has_ended() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.break_part("b");
    cluster.pass(15 * SECOND);
    assert_held(&cluster, Hold::BeforeDrain);
    assert_eq!(cluster.hooks, [[name("b")]], "it is run once");
    cluster.input(Input::BeforeDrainEnded(saved()));
    cluster.pass(SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a c", 2));
    let events = &cluster.reported.as_ref().unwrap().events;
    assert_eq!(events.last(), Some(&FaultEvent::BeforeDrain(saved())));
    // What ends twice, or was never begun, is nothing.
    cluster.input(Input::BeforeDrainEnded(saved()));
    assert_eq!(cluster.coordinator.incident(), None);
}

#[test]
fn a_drain_goes_on_when_nothing_is_heard_of_the_command() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.break_part("b");
    cluster.pass(20 * SECOND);
    assert_held(&cluster, Hold::BeforeDrain);
    cluster.pass(20 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a c", 2));
}

#[test]
fn a_failure_while_the_command_runs_does_not_wait_for_it() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    assert_held(&cluster, Hold::BeforeDrain);
    cluster.fail("b", WorkerEnd::Signal(7));
    cluster.pass(SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a c", 2));
    cluster.input(Input::BeforeDrainEnded(saved()));
    assert_eq!(cluster.coordinator.incident(), None, "its incident was answered");
}

#[test]
fn a_node_that_gets_well_while_the_command_runs_stays() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    cluster.mend("b");
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.standings.last(), cluster.epoch()), (Some(&Standing::Passed), 1));
    cluster.input(Input::BeforeDrainEnded(saved()));
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 1));
    // The next time it runs again.
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.hooks.len(), 2);
}

#[test]
fn the_next_leader_runs_the_command_again() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    cluster.input(Input::LeadershipLost);
    cluster.lead(2);
    ["a", "b", "c"].into_iter().for_each(|node| cluster.register_as_is(node));
    cluster.pass(15 * SECOND);
    assert_held(&cluster, Hold::BeforeDrain);
    assert_eq!(cluster.hooks.len(), 2);
}

#[test]
fn the_command_runs_before_a_slow_node_is_replaced_and_not_when_a_job_hangs() {
    let node = || Suspects::One(Suspect::Node(name("b")));
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.evaluate(&node(), 40);
    cluster.pass(SECOND);
    assert_held(&cluster, Hold::BeforeDrain);
    cluster.input(Input::BeforeDrainEnded(saved()));
    cluster.pass(SECOND);
    assert_eq!(cluster.state().barred, BTreeMap::from([(name("b"), Bar::Suspected)]));
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], with_hook());
    cluster.hang(node(), 40);
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.hooks.len()), (2, 0), "nothing can be saved");
}

#[test]
fn a_failure_is_attributed_to_the_node_whose_health_had_failed() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
    cluster.break_part("b");
    cluster.pass(10 * SECOND);
    cluster.fail("a", WorkerEnd::Code(1));
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.epoch(), 2);
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("b"), 1)]));
    // It is an incident of the next epoch too, and no cause of what fails there alone.
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.coordinator.incident().unwrap().unhealthy().next(), Some(&name("b")));
    cluster.fail("a", WorkerEnd::Code(1));
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.epoch(), 3);
    let charged = BTreeMap::from([(name("a"), 1), (name("b"), 1)]);
    assert_eq!(cluster.state().failures, charged);
}
