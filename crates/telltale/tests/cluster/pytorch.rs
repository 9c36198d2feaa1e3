//! An unchanged PyTorch script on four nodes: whatever happens, it goes on from its checkpoint and
//! comes to the same end.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use telltale_harness::wait_until;

use crate::cluster::job::{TIMEOUT, signal};
use crate::cluster::training::{NODES, Training};

/// How long a rank that stands still may go unnamed.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn a_rank_that_is_killed_costs_the_steps_since_the_checkpoint() {
    let test = "cluster::pytorch::a_rank_that_is_killed";
    let Some(training) = Training::under_way(test) else { return };
    signal(training.job.worker("c", 1, 2), Signal::KILL);
    for (rank, node) in (0..).zip(NODES) {
        training.resumed_from(node, 2, rank);
    }
    let log = training.job.coordinator_log();
    assert!(log.contains("attributed to c"), "the survivors' echo is not their fault: {log}");
    training.assert_ends_as_undisturbed(2);
    training.job.wait_finished();
}

#[test]
fn a_rank_that_stands_still_is_named_and_its_node_replaced() {
    let test = "cluster::pytorch::a_rank_that_stands_still";
    let Some(mut training) = Training::under_way(test) else { return };
    training.job.add("spare", &[]);
    training.job.wait_connected("spare");
    let start = Instant::now();
    signal(training.job.worker("b", 1, 1), Signal::STOP);
    wait_until("the incident", TIMEOUT, || training.job.coordinator_log().contains("incident"));
    let took = start.elapsed();
    println!("named after {took:?}");
    assert!(took <= NAMED_WITHIN, "it took {took:?}");
    training.resumed_from("spare", 2, 1);
    training.assert_ends_as_undisturbed(2);
}

#[test]
fn a_rank_that_was_started_ahead_takes_over_without_importing() {
    let test = "cluster::pytorch::a_rank_that_was_started_ahead";
    let Some(mut training) = Training::new(test) else { return };
    // Workers are started ahead when the others have run for some seconds.
    training.job.set("REST", "0.4");
    training.add_nodes(&["--warm"]);
    training.wait_checkpoint();
    let workers = training.workers();
    let ahead: Vec<Pid> = NODES.iter().map(|node| started_ahead(&training, node)).collect();
    assert!(ahead.iter().all(|pid| !workers.contains(pid)));
    let start = Instant::now();
    signal(workers[2], Signal::KILL);
    for (rank, node) in (0..).zip(NODES) {
        training.resumed_from(node, 2, rank);
    }
    println!("a step of the next epoch is done {:?} after a kill", start.elapsed());
    let next: Vec<Pid> =
        (0..).zip(NODES).map(|(rank, node)| training.job.worker(node, 2, rank)).collect();
    assert_eq!(next, ahead, "those that waited at their gates have the ranks");
    training.assert_ends_as_undisturbed(2);
    training.job.wait_finished();
}

/// The worker that a node's agent has started ahead, once it has imported PyTorch.
fn started_ahead(training: &Training, node: &str) -> Pid {
    let mut found = None;
    wait_until(&format!("a worker started ahead on {node}"), TIMEOUT, || {
        let record = std::fs::read_to_string(training.job.path(node).join("workers"));
        let record = record.unwrap_or_default();
        let latest = record.lines().last().and_then(|line| line.split(' ').nth(2));
        found = latest.and_then(|pid| Pid::from_raw(pid.parse().ok()?)).filter(|pid| {
            let read = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
            let is_ahead = !training.workers().contains(pid);
            is_ahead
                && read("maps").is_ok_and(|maps| maps.contains("libtorch_python"))
                && read("status").is_ok_and(|status| status.contains("State:\tS"))
        });
        found.is_some()
    });
    found.expect("wait_until returns once it is there")
}

#[test]
fn a_coordinator_that_is_killed_costs_the_training_nothing() {
    let test = "cluster::pytorch::a_coordinator_that_is_killed";
    let Some(mut training) = Training::under_way(test) else { return };
    let workers = training.workers();
    training.job.kill_coordinator(0);
    let alone = training.steps();
    training.wait_step(alone + 5);
    training.job.restart_coordinator(0);
    wait_until("the coordinator to know the job again", TIMEOUT, || {
        training.job.json(&["status"])["runs"] == true
    });
    training.assert_undisturbed();
    assert_eq!(training.workers(), workers);
    training.assert_ends_as_undisturbed(1);
    training.job.wait_finished();
}
