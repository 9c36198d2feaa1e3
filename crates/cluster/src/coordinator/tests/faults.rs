//! What becomes of a job when something fails.

use super::*;
use crate::incident::{Hold, MAX_EVENTS};
use crate::node::Bar;
use crate::policy::{Mode, NoSpare};
use crate::verdict::Suspect;

#[test]
fn one_crash_that_everybody_reports_is_one_incident() {
    let mut cluster = Cluster::formed(4, &["a", "b", "c", "d", "e"], Policy::default());
    // Orders are slow to come: the failing node had not heard of the next epoch.
    ["a", "b", "c", "d"].into_iter().for_each(|node| cluster.lose(node));
    cluster.fail("b", WorkerEnd::Code(1));
    assert_eq!(cluster.epoch(), 1, "it may be an echo of another");
    cluster.fail("c", WorkerEnd::Signal(11));
    assert_eq!(cluster.epoch(), 2, "a killed worker is no echo");
    cluster.fail("d", WorkerEnd::Signal(6));
    let killed = WorkerState::Failed { end: WorkerEnd::Signal(9), age: SECOND / 10 };
    cluster.end("a", 0, killed);
    cluster.gone.clear();
    cluster.pass(3 * SECOND);
    assert_eq!(cluster.map(), "a b c d");
    assert_eq!((cluster.epoch(), cluster.master().1), (2, 29_501));
    let answered = Standing::Answered(Epoch::new(2));
    // It is reported again once it is known whose failures were reported late.
    assert_eq!(cluster.standings, [Standing::Collecting, answered.clone(), answered]);
    assert_eq!(cluster.state().restarts, 1);
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("a"), 1)]));
    assert!(cluster.coordinator.runs());
}

#[test]
fn a_crash_is_answered_though_many_are_suspected() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    let node = |index: usize| Suspects::One(Suspect::Node(name(&format!("n{index}"))));
    let many: Vec<Suspects> = (0..2 * MAX_EVENTS).map(node).collect();
    for _ in 0..60 {
        cluster.evaluate_at(&many, 9);
        cluster.pass(SECOND);
    }
    let held = Standing::Held(crate::incident::Hold::Mode);
    assert_eq!(cluster.standings, [Standing::Collecting, held], "the same is told once");
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, true));
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("b"), 1)]));
}

#[test]
fn an_echo_is_waited_for_though_something_was_suspected_for_long() {
    let mut cluster = Cluster::formed(4, &["a", "b", "c", "d"], Policy::default());
    cluster.evaluate(&Suspects::One(Suspect::Node(name("d"))), 40);
    cluster.pass(60 * SECOND);
    cluster.now = cluster.now.after(SECOND / 10);
    cluster.fail("a", WorkerEnd::Code(1));
    cluster.now = cluster.now.after(SECOND / 20);
    cluster.input(Input::Tick);
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, true));
    assert_eq!(cluster.state().failures, BTreeMap::new(), "nobody knows whose failure it was");
}

#[test]
fn when_everybody_has_failed_nothing_is_waited_for() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
    for local in 0..2 {
        cluster.end("a", local, WorkerState::Finished);
    }
    cluster.fail("b", WorkerEnd::Code(1));
    assert_eq!(cluster.epoch(), 1);
    cluster.fail("c", WorkerEnd::Code(1));
    assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, true));
    assert_eq!(cluster.state().failures, BTreeMap::new(), "nobody knows whose failure it was");
}

#[test]
fn a_crash_is_answered_within_a_second() {
    let mut cluster = Cluster::formed(4, &["a", "b", "c", "d"], Policy::default());
    let before = cluster.now;
    cluster.fail("b", WorkerEnd::Signal(11));
    while cluster.epoch() == 1 || !cluster.coordinator.runs() {
        cluster.now = cluster.now.after(SECOND / 100);
        cluster.input(Input::Tick);
    }
    assert!(cluster.now.since(before) < SECOND / 2);
}

#[test]
fn a_dead_node_is_replaced_in_its_slot_and_rank_zero_moves_with_it() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    let before = cluster.now;
    cluster.lose("a");
    while cluster.epoch() == 1 {
        cluster.pass(SECOND);
        assert!(cluster.now.since(before) <= 6 * SECOND);
    }
    cluster.pass(SECOND);
    assert_eq!(cluster.map(), "d b c");
    assert_eq!(cluster.master(), ("d.example".to_owned(), 29_501));
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.coordinator.metrics().evictions, 1);
}

#[test]
fn a_node_that_comes_back_is_a_spare() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    cluster.lose("b");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.map(), "a c");
    // Its agent lived on behind a cut cable, and so did its workers.
    cluster.gone.clear();
    cluster.pass(2 * SECOND);
    cluster.register_as_is("b");
    assert_eq!(cluster.nodes[&name("b")].activity, AgentActivity::Idle);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "a c"));
    cluster.lose("a");
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.map(), "b c");
}

#[test]
fn without_a_spare_the_job_holds_until_one_comes() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], Policy::default());
    cluster.lose("b");
    cluster.pass(20 * SECOND);
    assert_eq!((cluster.map().as_str(), &cluster.state().phase), ("a - c", &Phase::Preparing));
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::NoSpare));
    cluster.register("z");
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a z c", 2));
    assert!(cluster.coordinator.runs());
}

#[test]
fn without_a_spare_the_job_shrinks_if_it_may_and_grows_again_with_the_next_epoch() {
    let no_spare = NoSpare::Shrink { least_slots: 2, timeout: 3 * SECOND };
    let policy = Policy { no_spare, ..Policy::default() };
    let mut cluster = Cluster::formed(3, &["a", "b", "c"], policy);
    cluster.lose("a");
    cluster.pass(7 * SECOND);
    assert_eq!(cluster.map(), "- b c");
    cluster.pass(5 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("b c", 2));
    assert_eq!(cluster.master().0, "b.example");
    cluster.register("a");
    cluster.pass(5 * SECOND);
    assert_eq!(cluster.map(), "b c");
    cluster.fail("c", WorkerEnd::Signal(9));
    cluster.pass(SECOND);
    assert_eq!(cluster.map(), "b c a");
    assert!(cluster.coordinator.runs());
}

#[test]
fn the_first_epoch_too_begins_short_if_it_may_once_no_more_have_come_for_long_enough() {
    let no_spare = NoSpare::Shrink { least_slots: 2, timeout: 3 * SECOND };
    let policy = Policy { no_spare, starts_short: true, ..Policy::default() };
    let mut cluster = Cluster::formed(4, &["a"], policy.clone());
    cluster.pass(20 * SECOND);
    assert_eq!(cluster.state().phase, Phase::Forming, "too few for any time");
    cluster.register("b");
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.state().phase, Phase::Forming, "more may come");
    cluster.pass(2 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 1));
    assert!(cluster.coordinator.runs());

    // With all of them there is nothing to wait for.
    let cluster = Cluster::formed(2, &["a", "b"], policy);
    assert!(cluster.coordinator.runs());
    // Whether it may is another matter than what a loss leads to.
    let mut cluster = Cluster::formed(4, &["a", "b"], Policy { no_spare, ..Policy::default() });
    cluster.pass(20 * SECOND);
    assert_eq!(cluster.state().phase, Phase::Forming);
}

#[test]
fn a_node_that_fails_again_and_again_is_quarantined() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    for _ in 0..2 {
        cluster.fail("a", WorkerEnd::Code(1));
        cluster.fail("b", WorkerEnd::Signal(11));
        cluster.pass(SECOND);
        assert_eq!(cluster.map(), "a b");
    }
    cluster.fail("b", WorkerEnd::Signal(11));
    cluster.pass(SECOND);
    assert_eq!(cluster.map(), "a c");
    assert!(cluster.coordinator.runs());
    let evicted = |one: &&(NodeName, ToNode)| one.1.order == Order::Evict;
    assert_eq!(cluster.orders.iter().filter(evicted).count(), 1);
    cluster.lose("a");
    cluster.pass(10 * SECOND);
    assert_eq!(cluster.map(), "- c");
    assert_eq!(cluster.operate(OperatorOrder::Readmit(name("b"))), Ok(()));
    assert_eq!(cluster.map(), "b c");
}

#[test]
fn evictions_keep_their_budget() {
    let budget_window = 600 * SECOND;
    let policy = Policy { eviction_budget: 1, budget_window, ..Policy::default() };
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d", "e"], policy);
    cluster.lose("a");
    cluster.pass(8 * SECOND);
    cluster.lose("b");
    cluster.pass(60 * SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "d b c"));
    let held = Standing::Held(crate::incident::Hold::EvictionBudget);
    assert_eq!(cluster.standings.last(), Some(&held));
    cluster.pass(600 * SECOND);
    assert_eq!(cluster.map(), "d e c");
}

#[test]
fn restarts_keep_their_budget() {
    let mut cluster = Cluster::formed(1, &["a"], Policy { restart_budget: 2, ..Policy::default() });
    for _ in 0..3 {
        cluster.fail("a", WorkerEnd::Code(1));
        cluster.pass(SECOND);
    }
    let given_up = crate::message::JobOutcome::GivenUp;
    assert_eq!((cluster.epoch(), &cluster.state().phase), (3, &Phase::Over(given_up)));
    assert_eq!(cluster.reported.as_ref().unwrap().standing, Standing::GivenUp);
    // An operator gives it all its restarts again.
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    assert_eq!((cluster.epoch(), cluster.state().counted_restarts), (4, 0));
    for _ in 0..2 {
        cluster.fail("a", WorkerEnd::Code(1));
        cluster.pass(SECOND);
    }
    assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (6, true));
    cluster.fail("a", WorkerEnd::Code(1));
    assert_eq!(cluster.state().phase, Phase::Over(given_up));
}

#[test]
fn a_failure_is_counted_though_the_store_failed_meanwhile() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    ["a", "b"].into_iter().for_each(|node| cluster.lose(node));
    cluster.fail("b", WorkerEnd::Signal(9));
    assert_eq!((cluster.epoch(), &cluster.state().phase), (2, &Phase::Preparing));
    cluster.gone.clear();
    cluster.refuses = Some(StoreOutcome::Failed);
    cluster.pass(2 * SECOND);
    assert!(cluster.coordinator.metrics().failed_decisions > 0);
    cluster.refuses = None;
    cluster.pass(2 * SECOND);
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("b"), 1)]));
}

#[test]
fn who_was_killed_and_does_not_answer_is_blamed_once_and_stays_out() {
    let policy = Policy { failures_to_quarantine: 1, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], policy);
    cluster.fail("b", WorkerEnd::Signal(9));
    assert_eq!(cluster.map(), "a c", "at once, since one failure is enough");
    assert_eq!(cluster.operate(OperatorOrder::Readmit(name("b"))), Ok(()));
    // Now the host dies with the worker.
    cluster.lose("c");
    cluster.fail("c", WorkerEnd::Signal(9));
    cluster.pass(6 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.coordinator.runs()), ("a b", true));
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("c"), 1)]));
    assert_eq!(cluster.state().barred, BTreeMap::from([(name("c"), Bar::Quarantined)]));
}

#[test]
fn what_an_epoch_waits_for_is_reported() {
    let policy = Policy { eviction_budget: 1, ..Policy::default() };
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d", "e"], policy);
    cluster.lose("a");
    cluster.pass(8 * SECOND);
    assert_eq!((cluster.map().as_str(), cluster.coordinator.waits_for()), ("d b c", None));
    // One more cannot be ordered to prepare.
    cluster.lose("b");
    cluster.fail("c", WorkerEnd::Code(1));
    cluster.pass(SECOND);
    assert_eq!(
        (&cluster.state().phase, cluster.coordinator.waits_for()),
        (&Phase::Preparing, None)
    );
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::EvictionBudget));
    cluster.register("b");
    assert_eq!((cluster.coordinator.runs(), cluster.coordinator.waits_for()), (true, None));
}

#[test]
fn a_suspicion_must_be_sure_and_lasting_and_have_a_spare() {
    let node = |text: &str| Suspect::Node(name(text));
    let one = Suspects::One(node("b"));
    let two = Suspects::Ambiguous(vec![node("a"), node("b")]);
    let (act, recover) = (Mode::Act, Mode::Recover);
    let cases = [
        (act, &one, 30, "a b c", "a c"),
        (act, &one, 29, "a b c", "a b"),
        (act, &two, 500, "a b c", "a b"),
        (act, &one, 30, "a b", "a b"),
        (recover, &one, 500, "a b c", "a b"),
    ];
    for (mode, suspects, windows, nodes, expected) in cases {
        let nodes: Vec<&str> = nodes.split(' ').collect();
        let mut cluster = Cluster::formed(2, &nodes, Policy { mode, ..Policy::default() });
        cluster.evaluate(suspects, windows);
        cluster.pass(2 * SECOND);
        assert_eq!(cluster.map(), expected, "{mode:?} {suspects:?} {windows} {nodes:?}");
    }
}

#[test]
fn a_job_that_hangs_is_restarted_sooner_than_a_slow_node_is_replaced() {
    for (windows, epoch) in [(4, 1), (5, 2)] {
        let policy = Policy { mode: Mode::Act, ..Policy::default() };
        let mut cluster = Cluster::formed(2, &["a", "b", "c"], policy);
        let either = vec![Suspect::Node(name("a")), Suspect::Node(name("b"))];
        cluster.hang(Suspects::Ambiguous(either), windows);
        cluster.pass(2 * SECOND);
        assert_eq!((cluster.epoch(), cluster.map().as_str()), (epoch, "a b"), "{windows}");
    }
}

#[test]
fn who_alone_makes_a_job_hang_is_replaced_by_the_restart() {
    for (windows, map) in [(4, "a b"), (5, "a c")] {
        let policy = Policy { mode: Mode::Act, ..Policy::default() };
        let mut cluster = Cluster::formed(2, &["a", "b", "c"], policy);
        let suspects = Suspects::One(Suspect::Node(name("b")));
        cluster.hang(suspects, windows);
        cluster.pass(2 * SECOND);
        assert_eq!(cluster.map(), map, "{windows}");
    }
}

#[test]
fn an_observer_starts_the_job_and_touches_nothing() {
    let policy = Policy { mode: Mode::Observe, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], policy);
    // Both are held for the same reason; the incident lists each.
    cluster.evaluate(&Suspects::One(Suspect::Node(name("c"))), 40);
    cluster.pass(20 * SECOND);
    cluster.fail("b", WorkerEnd::Signal(9));
    cluster.lose("a");
    cluster.pass(20 * SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (1, "a b"));
    let reported = cluster.reported.as_ref().unwrap();
    let is_reported = |is: fn(&FaultEvent) -> bool| reported.events.iter().any(is);
    assert!(is_reported(|event| matches!(event, FaultEvent::WorkerFailed { .. })), "{reported:?}");
    assert!(is_reported(|event| matches!(event, FaultEvent::Silent { .. })), "{reported:?}");
    assert_eq!(cluster.operate(OperatorOrder::SetMode(Mode::Recover)), Ok(()));
    cluster.pass(SECOND);
    assert_eq!(cluster.map(), "c b");
}

#[test]
fn a_node_that_does_not_answer_is_replaced_in_the_same_epoch() {
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d"], Policy::default());
    // Its host died with the worker: it cannot be ordered to prepare.
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.lose("a");
    cluster.pass(6 * SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "d b c"));
    assert_eq!(cluster.master().0, "d.example");
    // The one that reported is not the cause.
    assert_eq!(cluster.state().failures, BTreeMap::from([(name("a"), 1)]));
}

#[test]
fn a_node_is_reported_four_times_before_it_is_replaced() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    cluster.lose("a");
    cluster.fail("b", WorkerEnd::Code(1));
    // The order, and three times again: then there is a second in which it could still answer.
    let reported = |cluster: &Cluster| {
        let is_reported = |(to, message): &&(NodeName, ToNode)| {
            let is_prepare = matches!(message.order, Order::Prepare { .. });
            is_prepare && to.as_str() == "a" && message.epoch == Epoch::new(2)
        };
        cluster.orders.iter().filter(is_reported).count()
    };
    while cluster.map() == "a b" {
        assert!(reported(&cluster) <= 4, "it is replaced");
        cluster.pass(SECOND / 10);
    }
    assert_eq!((cluster.epoch(), cluster.map().as_str(), reported(&cluster)), (2, "c b", 4));
}

#[test]
fn an_echo_is_not_blamed_when_the_cause_is_seen_late() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c"], Policy::default());
    for _ in 0..3 {
        // The agent of `a` is killed with its workers, and is back only after `b` has reported it.
        cluster.lose("a");
        cluster.fail("b", WorkerEnd::Code(1));
        cluster.pass(SECOND);
        cluster.register("a");
        cluster.pass(SECOND);
        assert!(cluster.coordinator.runs());
    }
    assert!(!cluster.state().failures.contains_key(&name("b")));
    assert_eq!(cluster.map(), "c b", "the one that fails again and again is replaced");
}

#[test]
fn several_slow_nodes_are_replaced_by_one_restart() {
    for (checks, map) in [(14, "d b"), (15, "d e")] {
        let policy = Policy { mode: Mode::Act, eviction_budget: 2, ..Policy::default() };
        let mut cluster = Cluster::formed(2, &["a", "b", "d", "e"], policy);
        let both = [("a", 30), ("b", checks)];
        cluster.evaluate_for(
            &both.map(|(node, checks)| (Suspects::One(Suspect::Node(name(node))), checks)),
        );
        cluster.pass(2 * SECOND);
        assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, map), "{checks}");
    }
}

#[test]
fn the_lost_and_the_suspected_share_one_budget() {
    let policy = Policy { mode: Mode::Act, eviction_budget: 1, ..Policy::default() };
    let mut cluster = Cluster::formed(3, &["a", "b", "c", "d", "e"], policy);
    cluster.lose("a");
    cluster.pass(4 * SECOND);
    cluster.evaluate(&Suspects::One(Suspect::Node(name("b"))), 40);
    cluster.fail("c", WorkerEnd::Signal(9));
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.coordinator.metrics().evictions, 1);
    assert_eq!(cluster.state().evictions, 1);
}
