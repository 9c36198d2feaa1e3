//! What a script saves at `SIGTERM` is saved: its DataLoader's processes work until it has.

use std::fs;

use telltale_harness::rounds;

use crate::job::Job;
use crate::training::{PYTHON, turn};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/save.py");
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/terminal.py");
/// Ranks of the job, all on one node.
const RANKS: u32 = 2;
/// How long a script may take to save on a machine that is busy with other tests.
const GRACE: [&str; 2] = ["--stop-grace", "25"];

/// How often each way of stopping is tried.
fn times() -> u64 {
    rounds(1, 20).into()
}

/// A job on one node whose ranks save at `SIGTERM`.
fn job() -> Job {
    Job::of_workers(1, RANKS, &[PYTHON, "-u", SCRIPT])
}

/// Waits until an epoch's ranks train, and says from which step on.
fn training(job: &Job, node: &str, epoch: u64) -> u64 {
    for rank in 0..RANKS {
        job.wait_printed(node, epoch, rank, "\nstep ");
    }
    let printed = job.printed(node, epoch, 0);
    let words = printed.split("resumes from ").nth(1).and_then(|rest| rest.lines().next());
    words.and_then(|step| step.parse().ok()).expect("the script says where it is")
}

/// Each rank of an epoch that was stopped has saved its last step, and nothing is left half written.
#[track_caller]
fn assert_saved(job: &Job, node: &str, epoch: u64) -> u64 {
    let mut saved = Vec::new();
    for rank in 0..RANKS {
        job.wait_printed(node, epoch, rank, "\nsaved ");
        let printed = job.printed(node, epoch, rank);
        let steps = printed.matches("\nstep ").count();
        let from = printed.split("resumes from ").nth(1).and_then(|rest| rest.lines().next());
        let from: usize = from.and_then(|step| step.parse().ok()).expect("a number");
        let last = printed.lines().last().and_then(|line| line.strip_prefix("saved "));
        let last: usize = last.and_then(|step| step.parse().ok()).expect("it saves and ends");
        assert_eq!(last, from + steps + 1, "{node}, epoch {epoch}, rank {rank}: {printed}");
        saved.push(u64::try_from(last).expect("a few steps"));
    }
    assert_eq!(saved[0], saved[1], "both stop at one step");
    assert!(!job.path("checkpoint.pt.new").exists(), "nothing is half written");
    saved[0]
}

#[test]
fn what_a_worker_prints_last_is_in_its_log_when_the_agent_has_ended() {
    // More than is on its way at a time.
    const LINES: usize = 100_000;
    for _ in 0..rounds(3, 30) {
        let mut job = Job::start(1, &["seq", &LINES.to_string()]);
        job.add("a", &[]);
        assert!(job.wait_ended("a").success());
        assert_eq!(job.printed("a", 1, 0).lines().count(), LINES);
    }
}

#[test]
fn a_restart_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::a_restart") else { return };
    let mut job = job();
    job.add_patiently("a", &GRACE);
    training(&job, "a", 1);
    for epoch in 1..=times() {
        assert!(job.cluster(&["restart"]).status.success());
        let saved = assert_saved(&job, "a", epoch);
        assert_eq!(training(&job, "a", epoch + 1), saved, "nothing is lost");
    }
}

#[test]
fn a_drain_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::a_drain") else { return };
    let mut job = job();
    job.add_patiently("a", &GRACE);
    training(&job, "a", 1);
    job.add_patiently("b", &GRACE);
    job.wait_attends("b");
    let nodes = ["a", "b"];
    for epoch in 1..=times() {
        let [leaves, comes] = if epoch % 2 == 1 { nodes } else { [nodes[1], nodes[0]] };
        let drained = job.cluster(&["drain", leaves]);
        assert!(drained.status.success(), "{drained:?}");
        let saved = assert_saved(&job, leaves, epoch);
        assert_eq!(training(&job, comes, epoch + 1), saved, "nothing is lost");
        assert!(job.cluster(&["readmit", leaves]).status.success());
    }
}

#[test]
fn a_ctrl_c_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::a_ctrl_c") else { return };
    let mut job = job();
    let key = job.path("ctrl-c");
    let by = [PYTHON, TERMINAL, &key.display().to_string()].map(str::to_owned);
    let mut saved = 0;
    for epoch in 1..=times() {
        job.add_by(&by, "127.0.0.1", "a", &GRACE);
        assert_eq!(training(&job, "a", epoch), saved, "nothing is lost");
        fs::write(&key, "").expect("a scratch file");
        let status = job.wait_ended("a");
        assert_eq!(status.code(), Some(0), "{}", job.agent_log("a"));
        saved = assert_saved(&job, "a", epoch);
    }
}

#[test]
fn the_agent_s_end_lets_scripts_save() {
    let Some(_turn) = turn("cluster::saving::the_agent_s_end") else { return };
    let mut job = job();
    let mut saved = 0;
    for epoch in 1..=times() {
        job.add_patiently("a", &GRACE);
        assert_eq!(training(&job, "a", epoch), saved, "nothing is lost");
        let status = job.stop_agent("a");
        assert_eq!(status.code(), Some(0), "{}", job.agent_log("a"));
        saved = assert_saved(&job, "a", epoch);
    }
}
