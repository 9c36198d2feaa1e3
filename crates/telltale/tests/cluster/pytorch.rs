//! An unchanged PyTorch script on four nodes, with Gloo: whatever happens, it goes on from its
//! checkpoint and comes to its end.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use telltale_harness::{skip, wait_until};

use crate::job::{Job, PATIENCE, signal};

const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/train.py");
const NODES: [&str; 4] = ["a", "b", "c", "d"];
/// How long a rank that stands still may go unnamed, and what a machine with other work to do adds.
const NAMED_WITHIN: Duration = Duration::from_secs(10 + 5);

/// One job at a time: four processes import PyTorch, which takes two cores some seconds.
static TURN: Mutex<()> = Mutex::new(());

/// Four nodes that train, once they have a checkpoint; nothing where there is no PyTorch.
fn training(test: &str) -> Option<(Job, MutexGuard<'static, ()>)> {
    let has_torch = Command::new(PYTHON).args(["-c", "import torch.distributed"]).output();
    if !has_torch.is_ok_and(|output| output.status.success()) {
        skip(test, "needs PyTorch for /usr/bin/python3 (Debian: python3-torch)");
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut job = Job::start(4, &[PYTHON, SCRIPT]);
    NODES.into_iter().for_each(|node| job.add(node, &[]));
    job.wait_printed("a", 1, 0, "step 10 ");
    Some((job, turn))
}

/// The step that an epoch began with, as a rank tells.
fn resumed_from(job: &Job, node: &str, epoch: u64, rank: u32) -> u32 {
    job.wait_printed(node, epoch, rank, "step ");
    let printed = job.printed(node, epoch, rank);
    let words = printed.split("resumes from ").nth(1).and_then(|rest| rest.split('\n').next());
    words.and_then(|step| step.parse().ok()).expect("the script says where it goes on")
}

#[test]
fn a_rank_that_is_killed_costs_the_steps_since_the_checkpoint() {
    let test = "cluster::pytorch::a_rank_that_is_killed";
    let Some((job, _turn)) = training(test) else { return };
    signal(job.worker("c", 1, 2), Signal::KILL);
    for (rank, node) in (0..).zip(NODES) {
        let step = resumed_from(&job, node, 2, rank);
        assert!(step >= 10 && step.is_multiple_of(5), "{node} goes on from {step}");
    }
    let log = job.coordinator_log();
    assert!(log.contains("put down to c"), "the survivors' echo is not their fault: {log}");
    job.wait_printed("a", 2, 0, "weights");
    job.wait_finished();
}

#[test]
fn a_rank_that_stands_still_is_named_and_its_node_replaced() {
    let test = "cluster::pytorch::a_rank_that_stands_still";
    let Some((mut job, _turn)) = training(test) else { return };
    job.add("spare", &[]);
    wait_until("the spare to be there", PATIENCE, || {
        let log = std::fs::read_to_string(job.path("spare.log")).unwrap_or_default();
        log.contains("attends to the coordinator")
    });
    let start = Instant::now();
    signal(job.worker("b", 1, 1), Signal::STOP);
    wait_until("the incident", PATIENCE, || job.coordinator_log().contains("incident"));
    assert!(start.elapsed() < NAMED_WITHIN, "it took {:?}", start.elapsed());
    let step = resumed_from(&job, "spare", 2, 1);
    assert!(step >= 10, "it goes on from {step}");
    job.wait_printed("a", 2, 0, "weights");
}

#[test]
fn a_coordinator_that_is_killed_costs_the_training_nothing() {
    let test = "cluster::pytorch::a_coordinator_that_is_killed";
    let Some((mut job, _turn)) = training(test) else { return };
    job.restart_coordinator();
    job.wait_printed("a", 1, 0, "weights");
    job.wait_finished();
}
