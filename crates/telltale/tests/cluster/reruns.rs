//! A job that its operator runs repeatedly: no node is charged for that, and no budget is spent.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use telltale_harness::{rounds, wait_until};

use crate::cluster::job::{Job, TIMEOUT, signal};

const NODES: [&str; 3] = ["a", "b", "c"];

/// Waits for the order to finish.
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
        for node in NODES {
            job.add(node, &["--restart-budget", "1"]);
        }
        for node in NODES {
            assert!(job.wait_ended(node).success(), "{}", job.agent_log(node));
        }
        let over = || job.json(&["status"])["outcome"] == "finished";
        wait_until("the job to be over", TIMEOUT, over);
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
    wait_until("the agent to name its budget", TIMEOUT, || job.agent_log("a").contains(named));
    wait_until("the coordinator to name it", TIMEOUT, || {
        job.coordinator_log().contains(&format!("epoch 8: node a cannot run it: {named}"))
    });
    // An operator starts a new count.
    assert!(job.cluster(&["restart"]).status.success());
    assert!(job.cluster(&["readmit", "a"]).status.success());
    job.worker("a", 8, 0);
    assert_eq!(job.node("a")["failures"], Value::from(0));
    job.finish();
}

/// The same, and ends as survivors do when a peer is gone.
const SURVIVOR: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$; until test -e $STATE/finish; do test -e $STATE/lost-$TELLTALE_EPOCH && exit 1; sleep 0.1; done",
];

/// Waits until all of a later epoch than `before` run: which it is.
fn wait_later(job: &Job, before: u64) -> u64 {
    wait_until("a later epoch to run", TIMEOUT, || {
        let status = job.json(&["status"]);
        status["runs"] == true && status["epoch"].as_u64() > Some(before)
    });
    job.json(&["status"])["epoch"].as_u64().expect("a number")
}

#[test]
fn agents_that_are_restarted_while_no_coordinator_listens_are_not_charged() {
    let mut job = Job::start(3, &SURVIVOR);
    NODES.into_iter().for_each(|node| job.add(node, &[]));
    let mut epoch = wait_later(&job, 0);
    for round in 1..=rounds(4, 50) {
        job.kill_coordinator(0);
        // One, two or all of them; those that stay miss the others, or not.
        let restarted = &NODES[..usize::try_from(round % 3).expect("below 3") + 1];
        for node in restarted {
            assert!(job.stop_agent(node).code().is_some(), "{}", job.agent_log(node));
        }
        if round % 2 == 0 {
            fs::write(job.path(&format!("lost-{epoch}")), "").expect("a scratch file");
        }
        restarted.iter().for_each(|node| job.add(node, &[]));
        job.restart_coordinator(0);
        epoch = wait_later(&job, epoch);
        assert_innocent(&job, round);
    }
    assert!(!job.coordinator_log().contains("attributed to"), "{}", job.coordinator_log());
    job.finish();
}

#[test]
fn agents_that_are_restarted_together_are_not_charged() {
    let mut job = Job::start(3, &SURVIVOR);
    NODES.into_iter().for_each(|node| job.add(node, &[]));
    let mut epoch = wait_later(&job, 0);
    for round in 1..=rounds(4, 50) {
        job.stop_agents(&NODES[..2]);
        fs::write(job.path(&format!("lost-{epoch}")), "").expect("a scratch file");
        NODES[..2].iter().for_each(|node| job.add(node, &[]));
        epoch = wait_later(&job, epoch);
        assert_innocent(&job, round);
    }
    job.finish();
}

#[test]
fn an_agent_that_is_killed_while_no_coordinator_listens_is_charged() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let epoch = wait_later(&job, 0);
    job.kill_coordinator(0);
    job.kill_agent("a");
    job.add("a", &[]);
    job.restart_coordinator(0);
    wait_later(&job, epoch);
    assert_eq!((&job.node("a")["failures"], &job.node("b")["failures"]), (&1.into(), &0.into()));
    job.finish();
}

#[test]
fn a_start_that_fails_loses_nothing_of_a_planned_end() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let epoch = wait_later(&job, 0);
    job.kill_coordinator(0);
    job.stop_agent("a");
    // A port that other machines reach, without a token.
    job.add("a", &["--listen", "0.0.0.0:0"]);
    assert!(!job.wait_ended("a").success(), "{}", job.agent_log("a"));
    job.add("a", &[]);
    job.restart_coordinator(0);
    wait_later(&job, epoch);
    assert_innocent(&job, 1);
    job.finish();
}
