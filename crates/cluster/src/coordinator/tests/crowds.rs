//! What becomes of a job when many nodes fall silent at once.

use super::*;
use crate::incident::Hold;

const TEN: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Ten nodes with a slot, and four spares.
fn ten(policy: Policy) -> Cluster {
    let spares = ["w", "x", "y", "z"];
    Cluster::formed(10, &[&TEN[..], &spares[..]].concat(), policy)
}

impl Cluster {
    /// These nodes are not heard any more.
    fn lose_all(&mut self, nodes: &[&str]) {
        nodes.iter().for_each(|node| self.lose(node));
    }

    /// These nodes answer from now on that they stop their workers.
    fn stop_slowly(&mut self, nodes: &[&str]) {
        self.stopping.extend(nodes.iter().map(|node| name(node)));
    }

    fn close(&mut self, text: &str) {
        self.input(Input::Closed { node: name(text) });
    }
}

#[test]
fn one_or_two_are_replaced_at_once_and_more_than_a_fifth_are_held() {
    let default = Policy::default();
    let share = |share| Policy { mass_silence_share: share, ..default.clone() };
    let cases = [
        (&default, 10, 1, true),
        (&default, 10, 2, true),
        (&default, 10, 3, false),
        (&default, 10, 9, false),
        // Two are a fifth of a small job, and no crowd.
        (&default, 4, 2, true),
        (&default, 4, 3, false),
        // An explicit setting holds.
        (&share(0.5), 10, 4, true),
        (&share(0.5), 10, 6, false),
        (&share(0.0), 10, 2, true),
        (&share(1.0), 10, 4, true),
    ];
    for (policy, slots, lost, replaced) in cases {
        let nodes: Vec<&str> = TEN.into_iter().take(slots).chain(["w", "x", "y", "z"]).collect();
        let mut cluster = Cluster::formed(u32::try_from(slots).unwrap(), &nodes, policy.clone());
        cluster.lose_all(&TEN[..lost]);
        cluster.pass(7 * SECOND);
        let evicted = usize::try_from(cluster.coordinator.metrics().evictions).unwrap();
        let what = format!("{lost} of {slots}, {}", policy.mass_silence_share);
        assert_eq!(evicted, if replaced { lost } else { 0 }, "{what}");
        assert_eq!(cluster.coordinator.waits_for() == Some(Hold::MassSilence), !replaced, "{what}");
    }
}

#[test]
fn a_crowd_that_comes_back_leaves_no_trace() {
    let mut cluster = ten(Policy::default());
    cluster.lose_all(&TEN[..5]);
    cluster.pass(50 * SECOND);
    assert_eq!(cluster.epoch(), 1);
    let left = cluster.coordinator.mass_silence_left(cluster.now).unwrap();
    assert!(left >= 14 * SECOND && left <= 16 * SECOND, "{left:?}");
    // They do not come back together: the last is no more to blame than the first.
    for node in &TEN[..5] {
        cluster.gone.remove(&name(node));
        cluster.pass(2 * SECOND);
    }
    cluster.pass(10 * SECOND);
    let held = Standing::Held(Hold::MassSilence);
    assert_eq!(cluster.standings, [Standing::Collecting, held, Standing::Passed]);
    assert_eq!((cluster.epoch(), cluster.state().failures.len()), (1, 0));
    assert_eq!(cluster.coordinator.mass_silence_left(cluster.now), None);
}

#[test]
fn a_crowd_that_stays_silent_is_replaced_after_its_timeout() {
    let mut cluster = ten(Policy::default());
    cluster.lose_all(&TEN[..4]);
    cluster.pass(62 * SECOND);
    assert_eq!((cluster.epoch(), cluster.coordinator.metrics().evictions), (1, 0));
    cluster.pass(4 * SECOND);
    assert_eq!(cluster.map(), "w x y z e f g h i j");
    assert!(cluster.coordinator.runs());
}

#[test]
fn everybody_is_held_for_ever() {
    let mut cluster = Cluster::formed(4, &["a", "b", "c", "d"], Policy::default());
    cluster.lose_all(&["a", "b", "c", "d"]);
    cluster.pass(600 * SECOND);
    assert_eq!((cluster.epoch(), cluster.coordinator.mass_silence_left(cluster.now)), (1, None));
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::MassSilence));
}

#[test]
fn a_third_that_follows_two_is_held() {
    let mut cluster = ten(Policy::default());
    cluster.lose_all(&["a", "b"]);
    cluster.pass(4 * SECOND);
    cluster.lose("c");
    cluster.pass(20 * SECOND);
    assert_eq!(cluster.map(), "w x c d e f g h i j", "two are not waited with");
    cluster.gone.clear();
    cluster.pass(6 * SECOND);
    assert_eq!((cluster.epoch(), cluster.state().barred.len()), (2, 0));
    // Who falls silent long after the others is one alone.
    cluster.lose("d");
    cluster.pass(7 * SECOND);
    assert_eq!(cluster.epoch(), 3);
}

#[test]
fn three_that_fall_silent_one_after_the_other_are_no_crowd() {
    let policy = Policy { eviction_budget: 0, ..Policy::default() };
    let mut cluster = ten(policy);
    for node in ["a", "b", "c"] {
        cluster.lose(node);
        cluster.pass(6 * SECOND);
    }
    let held = Standing::Held(Hold::EvictionBudget);
    assert_eq!(cluster.standings.last(), Some(&held));
}

#[test]
fn what_is_alive_proves_a_crowd_dead() {
    let code = WorkerEnd::Code(1);
    // Who is alive reports its own end, and how its worker ended; and whether that is a proof.
    let cases = [
        (true, Some(code), true),
        (false, Some(code), false),
        (true, None, false),
        (true, Some(WorkerEnd::Signal(9)), false),
    ];
    for (closed, failed, is_proof) in cases {
        let mut cluster = ten(Policy::default());
        let crowd = &TEN[..4];
        cluster.lose_all(crowd);
        if closed {
            crowd.iter().for_each(|node| cluster.close(node));
        }
        if let Some(end) = failed {
            cluster.fail("e", end);
        }
        cluster.pass(8 * SECOND);
        let evicted = cluster.coordinator.metrics().evictions;
        assert_eq!(evicted == 4, is_proof, "{closed} {failed:?}: {evicted}");
        assert_eq!(evicted == 0, !is_proof, "{closed} {failed:?}: {evicted}");
    }
}

#[test]
fn a_connection_that_is_closed_late_or_taken_up_again_proves_nothing() {
    let mut cluster = ten(Policy::default());
    cluster.lose_all(&TEN[..4]);
    cluster.pass(4 * SECOND);
    // By then it may be the time-out of the connection itself.
    TEN[..4].iter().for_each(|node| cluster.close(node));
    cluster.fail("e", WorkerEnd::Code(1));
    cluster.pass(8 * SECOND);
    assert_eq!(cluster.coordinator.metrics().evictions, 0);
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::MassSilence));
}

/// Three of ten are not heard from a second before workers of the `failing` exit, for `away`, and need a while to stop
/// their workers when they are back.
fn come_back_slowly(failing: &[&str], away: Duration, policy: Policy) -> Cluster {
    let mut cluster = ten(policy);
    let crowd = &TEN[..3];
    cluster.stop_slowly(crowd);
    cluster.lose_all(crowd);
    cluster.pass(SECOND);
    failing.iter().for_each(|node| cluster.fail(node, WorkerEnd::Code(1)));
    cluster.pass(away);
    assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, false));
    assert_eq!(cluster.coordinator.waits_for(), Some(Hold::MassSilence));
    cluster.gone.clear();
    cluster
}

#[test]
fn a_crowd_that_comes_back_may_take_its_time_to_stop() {
    for failing in [&["i"][..], &["i", "j"]] {
        for away in [5, 15, 40].map(|seconds| SECOND * seconds) {
            let mut cluster = come_back_slowly(failing, away, Policy::default());
            cluster.pass(20 * SECOND);
            assert_eq!((cluster.epoch(), cluster.map()), (2, "a b c d e f g h i j".to_owned()));
            cluster.stopping.clear();
            cluster.pass(3 * SECOND);
            assert!(cluster.coordinator.runs(), "{failing:?} {away:?}");
            assert_eq!(cluster.coordinator.metrics().evictions, 0);
            assert_eq!(cluster.state().failures, BTreeMap::new(), "{failing:?} {away:?}");
        }
    }
}

#[test]
fn one_of_a_crowd_that_cannot_prepare_or_takes_too_long_is_replaced() {
    let policy = Policy { prepare_deadline: 8 * SECOND, ..Policy::default() };
    let mut cluster = come_back_slowly(&["i", "j"], 15 * SECOND, policy);
    cluster.pass(6 * SECOND);
    assert_eq!(cluster.coordinator.metrics().evictions, 0);
    cluster.pass(4 * SECOND);
    assert_eq!((cluster.coordinator.metrics().evictions, cluster.coordinator.runs()), (3, true));
}

#[test]
fn who_is_silent_when_a_survivor_exits_takes_the_blame_off_it() {
    // For how long one is not heard before and after another's worker exits, and whether its connection was closed
    // at its end; whether the other is charged.
    let cases = [
        (1, 10, false, false),
        // It is overdue, and never silent.
        (2, 1, false, false),
        (0, 3, false, false),
        (0, 1, true, false),
        (0, 1, false, true),
    ];
    for (before, after, closed, charged) in cases {
        let mut cluster = ten(Policy { eviction_budget: 0, ..Policy::default() });
        cluster.lose("a");
        if closed {
            cluster.close("a");
        }
        cluster.pass(SECOND * before);
        cluster.fail("b", WorkerEnd::Code(1));
        cluster.pass(SECOND * after);
        cluster.gone.clear();
        cluster.pass(5 * SECOND);
        let case = format!("{before} s, {after} s, closed: {closed}");
        assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, true), "{case}");
        assert_eq!(cluster.state().failures.contains_key(&name("b")), charged, "{case}");
        let cause = cluster.reported.as_ref().and_then(Incident::root_cause);
        assert_eq!(cause.is_some(), charged, "{case}");
    }
}

#[test]
fn who_was_only_likely_to_be_the_cause_is_charged_no_more_when_another_reports_late() {
    let mut cluster = ten(Policy::default());
    // Its report is on its way, and so it obeys later.
    cluster.lose("c");
    cluster.fail("b", WorkerEnd::Code(1));
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, false));
    cluster.fail("c", WorkerEnd::Code(1));
    cluster.gone.clear();
    cluster.pass(3 * SECOND);
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.state().failures, BTreeMap::new());
}
