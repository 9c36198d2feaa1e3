//! A job that fails repeatedly in the same way, wherever it runs.

use super::*;
use crate::message::JobOutcome;
use crate::policy::MAX_FAILED_STARTS;

/// Lets the job run for so long, then has the first worker of a node fail.
fn fail_after(cluster: &mut Cluster, time: Duration, node: &str, end: WorkerEnd) {
    cluster.pass(time);
    assert!(cluster.coordinator.runs(), "{:?}", cluster.state());
    cluster.fail(node, end);
    cluster.pass(2 * SECOND);
}

#[test]
fn a_program_that_fails_at_each_start_is_given_up_long_before_the_budget_is_used_up() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    for _ in 0..MAX_FAILED_STARTS {
        fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(1));
    }
    assert_eq!(cluster.epoch(), 1 + u64::from(MAX_FAILED_STARTS));
    assert!(cluster.coordinator.runs());
    fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(1));
    assert_eq!(cluster.state().phase, Phase::Over(JobOutcome::GivenUp));
    let incident = cluster.reported.as_ref().unwrap();
    assert_eq!(incident.standing, Standing::GivenUp);
    assert_eq!(incident.repetition.failed_starts, MAX_FAILED_STARTS + 1);
    // An operator who has mended it starts a new count.
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    cluster.pass(2 * SECOND);
    for _ in 0..MAX_FAILED_STARTS {
        fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(1));
    }
    assert!(cluster.coordinator.runs());
}

#[test]
fn where_starts_that_fail_are_not_counted_the_budget_alone_ends_it() {
    let budget = 2 * MAX_FAILED_STARTS;
    let policy = Policy {
        max_failed_starts: u32::MAX,
        restart_budget: budget,
        failures_to_quarantine: u32::MAX,
        ..Policy::default()
    };
    let mut cluster = Cluster::formed(2, &["a", "b"], policy);
    for _ in 0..budget {
        fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(1));
        assert_eq!(cluster.map(), "a b");
    }
    fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(1));
    assert_eq!(cluster.state().phase, Phase::Over(JobOutcome::GivenUp));
}

#[test]
fn a_job_that_fails_alike_but_runs_in_between_is_restarted() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    for _ in 0..2 * MAX_FAILED_STARTS {
        fail_after(&mut cluster, 61 * SECOND, "a", WorkerEnd::Code(1));
    }
    for _ in 0..MAX_FAILED_STARTS {
        fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(1));
        fail_after(&mut cluster, 5 * SECOND, "a", WorkerEnd::Code(2));
    }
    assert!(cluster.coordinator.runs());
    assert!(cluster.standings.iter().all(|standing| *standing != Standing::GivenUp));
}

#[test]
fn a_rank_that_fails_alike_on_the_spare_charges_no_node() {
    let mut cluster = Cluster::formed(2, &["a", "b", "c", "d"], Policy::default());
    let long = 61 * SECOND;
    for _ in 0..3 {
        assert_eq!(cluster.map(), "a b");
        fail_after(&mut cluster, long, "b", WorkerEnd::Code(1));
    }
    // It may have been b; now it fails on c.
    assert_eq!(cluster.map(), "a c");
    assert!(cluster.state().barred.contains_key(&name("b")));
    for _ in 0..4 {
        fail_after(&mut cluster, long, "c", WorkerEnd::Code(1));
        assert_eq!(cluster.map(), "a c");
        let state = cluster.state();
        assert!(state.barred.is_empty() && state.failures.is_empty(), "{state:?}");
    }
    let repetition = &cluster.reported.as_ref().unwrap().repetition;
    assert_eq!(repetition.nodes, ["b", "c"].map(name).into());
}

#[test]
fn survivors_of_nodes_that_are_lost_one_after_the_other_use_up_spares_and_no_starts() {
    let nodes = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let policy = Policy { eviction_budget: 100, ..Policy::default() };
    let mut cluster = Cluster::formed(2, &nodes, policy);
    for lost in ["b", "c", "d", "e", "f", "g", "h"] {
        assert_eq!(cluster.map(), format!("a {lost}"));
        cluster.lose(lost);
        cluster.pass(SECOND);
        cluster.fail("a", WorkerEnd::Code(1));
        cluster.pass(15 * SECOND);
        assert!(cluster.coordinator.runs(), "{lost}: {:?}", cluster.state());
        let repetition = &cluster.reported.as_ref().unwrap().repetition;
        assert_eq!(repetition.failed_starts, 0, "{lost}");
    }
}
