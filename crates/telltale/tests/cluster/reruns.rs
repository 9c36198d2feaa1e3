//! A job that its operator runs again and again: nobody is charged for that, and no budget is spent.

use rustix::process::Signal;
use serde_json::Value;
use telltale_harness::{rounds, wait_until};

use crate::job::{Job, PATIENCE, signal};

const NODES: [&str; 3] = ["a", "b", "c"];

/// Waits until it is told to finish.
const WORKER: [&str; 3] =
    ["bash", "-c", "echo pid $$; until test -e $STATE/finish; do sleep 0.1; done"];

#[track_caller]
fn assert_innocent(job: &Job, round: u32) {
    let nodes = job.json(&["nodes"]);
    for node in nodes.as_array().expect("a list of nodes") {
        assert_eq!(node["failures"], 0, "round {round}: {nodes}");
        assert_ne!(node["state"], "barred", "round {round}: {nodes}");
    }
    let status = job.json(&["status"]);
    assert_eq!([&status["counted_evictions"], &status["counted_restarts"]], [0, 0], "{status}");
}

#[test]
fn a_job_that_has_finished_is_run_again_and_nobody_is_charged() {
    let mut job = Job::start(2, &["sleep", "0.1"]);
    for round in 1..=rounds(6, 100) {
        // As an operator does: sometimes all at once, sometimes when some have been missed.
        for node in NODES {
            job.add(node, &["--restart-budget", "1"]);
        }
        for node in NODES {
            assert!(job.wait_ended(node).success(), "{}", job.agent_log(node));
        }
        let over = || job.json(&["status"])["outcome"] == "finished";
        wait_until("the job to be over", PATIENCE, over);
        assert_innocent(&job, round);
        let ordered = job.cluster(&["restart"]);
        assert!(ordered.status.success(), "{ordered:?}");
    }
    assert!(!job.coordinator_log().contains("incident"), "{}", job.coordinator_log());
}

#[test]
fn orders_spend_no_restart_budget_and_one_that_is_used_up_is_named() {
    let mut job = Job::start(1, &WORKER);
    job.add("a", &["--restart-budget", "2"]);
    job.worker("a", 1, 0);
    for epoch in 2..=6 {
        let ordered = job.cluster(&["restart"]);
        assert!(ordered.status.success(), "{ordered:?}");
        job.worker("a", epoch, 0);
    }
    assert_innocent(&job, 6);
    // Two starts are what the budget has for failures: that of the last order, and one more.
    signal(job.worker("a", 6, 0), Signal::KILL);
    signal(job.worker("a", 7, 0), Signal::KILL);
    let named = "its restart budget is used up (`restart_budget` of the agent)";
    wait_until("the agent to name its budget", PATIENCE, || job.agent_log("a").contains(named));
    wait_until("the coordinator to name it", PATIENCE, || {
        job.coordinator_log().contains(&format!("epoch 8: node a cannot run it: {named}"))
    });
    // An operator begins a new count.
    assert!(job.cluster(&["restart"]).status.success());
    assert!(job.cluster(&["readmit", "a"]).status.success());
    job.worker("a", 8, 0);
    assert_eq!(job.node("a")["failures"], Value::from(0));
    job.finish();
}
