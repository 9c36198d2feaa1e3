//! What an operator on a node's own machine orders by the agent's socket, and a coordinator carries
//! out.

use telltale_harness::wait_until;

use crate::cluster::job::{Job, TIMEOUT};

/// Waits for the order to finish.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH rank $RANK; until test -e $STATE/finish; do sleep 0.1; done",
];

#[track_caller]
fn assert_answered(job: &Job, node: &str, path: &str, status: &str) {
    let answer = job.post(node, path);
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
}

fn wait_state(job: &Job, node: &str, state: &str) {
    wait_until(&format!("{node} to be {state}"), TIMEOUT, || job.node(node)["state"] == state);
}

#[test]
fn a_node_is_removed_activated_and_its_job_restarted_by_posts_to_its_agent() {
    let job = Job::with_spare(&WORKER);
    assert_answered(&job, "a", "/remove", "200");
    job.wait_printed("c", 2, 0, "epoch 2 rank 0");
    job.wait_printed("b", 2, 1, "epoch 2 rank 1");
    wait_state(&job, "a", "barred");
    assert_eq!(job.node("a")["bar"], "removed");
    // It may take slots again, and there is none: no node is disturbed by that.
    assert_answered(&job, "a", "/activate", "200");
    wait_state(&job, "a", "standby");
    assert_eq!(job.json(&["status"])["epoch"], 2);
    // The same nodes, since no node has failed.
    assert_answered(&job, "b", "/restart", "200");
    job.wait_printed("c", 3, 0, "epoch 3 rank 0");
    job.wait_printed("b", 3, 1, "epoch 3 rank 1");
    assert_eq!(job.node("a")["state"], "standby");
    job.finish();
}

#[test]
fn without_a_coordinator_an_order_is_not_taken() {
    let mut job = Job::start(1, &WORKER);
    job.add("a", &[]);
    let worker = job.worker("a", 1, 0);
    job.kill_coordinator(0);
    for path in ["/remove", "/activate", "/restart"] {
        assert_answered(&job, "a", path, "503");
    }
    assert!(rustix::process::test_kill_process(worker).is_ok(), "its worker goes on");
    // Nothing of it was kept for a coordinator that comes later.
    job.restart_coordinator(0);
    wait_state(&job, "a", "active");
    assert_eq!(job.json(&["status"])["epoch"], 1);
    job.finish();
}
