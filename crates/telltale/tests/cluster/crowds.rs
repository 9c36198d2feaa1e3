//! Many agents that fall silent at once: the network or the coordinator is suspected, not they.

use std::fs;

use rustix::process::{Pid, Signal, test_kill_process};
use telltale_harness::wait_until;

use crate::cluster::job::{Job, TIMEOUT, signal};

const NODES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const SPARES: [&str; 3] = ["x", "y", "z"];

/// Waits for the order to finish, or that a peer is lost, as survivors do.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$; until test -e $STATE/finish; do test -e $STATE/lost && test $TELLTALE_EPOCH = 1 && exit 1; \
     sleep 0.1; done",
];

/// Six nodes at work, and three spares.
fn at_work(policy: &str) -> Job {
    let mut job = Job::with_policy(6, &WORKER, policy);
    NODES.into_iter().for_each(|node| job.add(node, &[]));
    (0..).zip(NODES).for_each(|(rank, node)| {
        job.worker(node, 1, rank);
    });
    for spare in SPARES {
        job.add(spare, &[]);
        job.wait_connected(spare);
    }
    job
}

/// The agents of these nodes, which stand still from now on.
fn stop(job: &Job, nodes: &[&str]) -> Vec<Pid> {
    let agents: Vec<Pid> = nodes.iter().map(|node| job.tree(node)[0]).collect();
    agents.iter().for_each(|agent| signal(*agent, Signal::STOP));
    agents
}

/// Waits until the job runs on these spares too, which need not come at once.
fn wait_replaced(job: &Job, spares: &[&str]) {
    wait_until("the crowd to be replaced", TIMEOUT, || {
        job.json(&["status"])["runs"] == true
            && spares.iter().all(|spare| job.node(spare)["state"] == "active")
    });
}

fn wait_held(job: &Job) {
    wait_until("the crowd to be held", TIMEOUT, || {
        job.json(&["status"])["waits_for"] == "mass_silence"
    });
}

#[test]
fn a_crowd_that_stands_still_for_a_while_is_held_and_reported() {
    let job = at_work("");
    let workers: Vec<Pid> =
        (0..).zip(NODES).map(|(rank, node)| job.worker(node, 1, rank)).collect();
    let agents = stop(&job, &NODES[..3]);
    wait_held(&job);
    let left = job.json(&["status"])["waits_at_most_ns"].as_u64().expect("it is bounded");
    assert!(left <= 65_000_000_000, "{left}");
    let said = String::from_utf8(job.cluster(&["status"]).stdout).expect("text");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the network or this coordinator is suspected, not they"), "{said}");
    assert!(words.contains("mass_silence_timeout"), "{said}");
    wait_until("the log to say so", TIMEOUT, || {
        job.coordinator_log().contains("epoch 1 waits: so many nodes fell silent at once")
    });
    agents.iter().for_each(|agent| signal(*agent, Signal::CONT));
    wait_until("the incident to pass", TIMEOUT, || job.coordinator_log().contains("has passed"));
    let status = job.json(&["status"]);
    assert_eq!(
        (&status["epoch"], &status["counted_evictions"]),
        (&1.into(), &0.into()),
        "{status}"
    );
    assert!(workers.iter().all(|worker| test_kill_process(*worker).is_ok()), "they run on");
    NODES.iter().for_each(|node| assert_eq!(job.node(node)["failures"], 0));
    job.finish();
}

/// Takes longer to stop than it takes until a crowd that is back would be acted on; in the first epoch it exits when
/// its rank is to fail.
const SLOW_TO_STOP: [&str; 3] = [
    "bash",
    "-c",
    "trap 'sleep 8; exit 0' TERM; echo pid $$; until test -e $STATE/finish; do \
     test -e $STATE/fail-$RANK-$TELLTALE_EPOCH && exit 1; sleep 0.1 & wait $!; done",
];

#[test]
fn a_crowd_that_is_back_may_take_its_time_to_stop_and_takes_the_blame_off_a_survivor() {
    let mut job = Job::with_policy(6, &SLOW_TO_STOP, "");
    NODES.into_iter().for_each(|node| job.add_with(node, &[]));
    for (rank, node) in (0..).zip(NODES) {
        // It has a process id once it runs.
        job.worker(node, 1, rank);
    }
    for spare in SPARES {
        job.add_with(spare, &[]);
        job.wait_connected(spare);
    }
    let agents = stop(&job, &NODES[..3]);
    fs::write(job.path("fail-5-1"), "").expect("a scratch file");
    wait_held(&job);
    assert_eq!(job.json(&["status"])["epoch"], 2, "{}", job.coordinator_log());
    agents.iter().for_each(|agent| signal(*agent, Signal::CONT));
    wait_until("the job to run again", TIMEOUT, || job.json(&["status"])["runs"] == true);
    let status = job.json(&["status"]);
    assert_eq!(
        (&status["epoch"], &status["counted_evictions"]),
        (&2.into(), &0.into()),
        "{status} {}",
        job.coordinator_log()
    );
    NODES.iter().for_each(|node| assert_eq!(job.node(node)["failures"], 0, "{node}"));
    assert!(job.json(&["incidents"])[0]["cause"].is_null(), "{}", job.json(&["incidents"]));
    job.finish();
}

#[test]
fn a_crowd_that_stays_silent_is_replaced_after_its_timeout() {
    let job = at_work("mass_silence_timeout_seconds = 8\n");
    let agents = stop(&job, &NODES[..3]);
    wait_held(&job);
    wait_replaced(&job, &SPARES);
    let status = job.json(&["status"]);
    assert_eq!(
        (&status["epoch"], &status["counted_evictions"]),
        (&2.into(), &3.into()),
        "{status}"
    );
    agents.iter().for_each(|agent| signal(*agent, Signal::CONT));
}

#[test]
fn two_that_stand_still_are_replaced_without_waiting() {
    let job = at_work("mass_silence_timeout_seconds = 100000\n");
    let agents = stop(&job, &NODES[..2]);
    wait_replaced(&job, &SPARES[..2]);
    assert!(!job.coordinator_log().contains("so many nodes"), "{}", job.coordinator_log());
    agents.iter().for_each(|agent| signal(*agent, Signal::CONT));
}

#[test]
fn a_crowd_whose_agents_died_is_replaced_when_survivors_fail_for_it() {
    let mut job = at_work("mass_silence_timeout_seconds = 100000\n");
    NODES[..3].iter().for_each(|node| job.kill_agent(node));
    fs::write(job.path("lost"), "").expect("a scratch file");
    wait_replaced(&job, &SPARES);
    assert_eq!(job.json(&["status"])["epoch"], 2);
}

#[test]
fn a_share_that_is_set_holds() {
    let job = at_work("mass_silence_share = 0.5\nmass_silence_timeout_seconds = 100000\n");
    let agents = stop(&job, &NODES[..3]);
    wait_replaced(&job, &SPARES);
    agents.iter().for_each(|agent| signal(*agent, Signal::CONT));
}
