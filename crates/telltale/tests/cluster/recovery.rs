//! Recovery with workers that only wait: who runs what after a worker, an agent or the coordinator
//! has died.

use rustix::process::Signal;
use telltale_harness::wait_until;

use crate::job::{Job, PATIENCE, signal};

/// Waits until it is told to finish.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH rank $RANK of $WORLD_SIZE port $MASTER_PORT \
     restarts $TORCHELASTIC_RESTART_COUNT; until test -e $STATE/finish; do sleep 0.1; done",
];

fn finish(job: Job) {
    std::fs::write(job.path("finish"), "").expect("a scratch file");
    job.wait_finished();
}

#[test]
fn a_killed_worker_is_followed_by_the_next_epoch_on_the_same_nodes() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let other = job.worker("a", 1, 0);
    signal(job.worker("b", 1, 1), Signal::KILL);
    job.wait_printed("a", 2, 0, "epoch 2 rank 0 of 2");
    job.wait_printed("b", 2, 1, "restarts 1");
    assert_ne!(other, job.worker("a", 2, 0));
    let port = |epoch| {
        let printed = job.printed("a", epoch, 0);
        printed.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned)
    };
    assert_ne!(port(1), port(2), "each epoch has a port of its own");
    finish(job);
}

#[test]
fn the_spare_takes_the_ranks_of_an_agent_that_was_killed() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    job.worker("a", 1, 0);
    job.worker("b", 1, 1);
    job.add("c", &[]);
    job.kill_agent("a");
    job.wait_printed("c", 2, 0, "epoch 2 rank 0 of 2");
    job.wait_printed("b", 2, 1, "epoch 2 rank 1 of 2");
    finish(job);
}

#[test]
fn a_coordinator_that_is_killed_and_comes_back_disturbs_nobody() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let workers = [job.worker("a", 1, 0), job.worker("b", 1, 1)];
    let attends = |job: &Job, times| {
        job.agent_log("a").matches("attends to the coordinator").count() == times
    };
    assert!(attends(&job, 1));
    job.kill_coordinator(0);
    job.restart_coordinator(0);
    wait_until("the agent to be back", PATIENCE, || attends(&job, 2));
    assert_eq!([job.worker("a", 1, 0), job.worker("b", 1, 1)], workers);
    for worker in workers {
        assert!(rustix::process::test_kill_process(worker).is_ok(), "its workers go on");
    }
    // It knows the epoch, and goes on from there.
    signal(workers[0], Signal::KILL);
    job.wait_printed("a", 2, 0, "epoch 2 rank 0 of 2");
    finish(job);
}
