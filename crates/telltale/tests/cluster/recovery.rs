//! Recovery with workers that only wait: who runs what after a worker, an agent or the coordinator
//! has died.

use rustix::process::{Signal, kill_process, test_kill_process};
use telltale_harness::wait_until;

use crate::cluster::job::{Job, TIMEOUT, signal};

/// Waits for the order to finish.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH rank $RANK of $WORLD_SIZE port $MASTER_PORT \
     restarts $TORCHELASTIC_RESTART_COUNT; until test -e $STATE/finish; do sleep 0.1; done",
];

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
    job.finish();
}

#[test]
fn workers_see_the_coordinator_s_job_and_agents_of_another_are_refused() {
    let run = "echo of $TORCHELASTIC_RUN_ID; until test -e $STATE/finish; do sleep 0.1; done";
    let mut job = Job::start(1, &["bash", "-c", run]);
    job.add("b", &["--job", "other"]);
    let reason = "node b was started for the job \"other\", and this coordinator runs \"test\"";
    wait_until("both to say why", TIMEOUT, || {
        job.agent_log("b").contains(reason) && job.coordinator_log().contains(reason)
    });
    job.kill_agent("b");
    job.add("a", &["--job", "test"]);
    job.wait_printed("a", 1, 0, "of test");
    job.finish();
}

#[test]
fn an_agent_that_comes_to_a_finished_job_ends_and_one_that_comes_after_a_restart_runs_it() {
    let mut job = Job::start(1, &WORKER);
    job.add("a", &[]);
    job.worker("a", 1, 0);
    std::fs::write(job.path("finish"), "").expect("a scratch file");
    assert!(job.wait_ended("a").success());
    job.add("late", &[]);
    assert!(job.wait_ended("late").success());
    let reported = job.agent_log("late");
    let words = "the job is over: every rank has finished; `telltale cluster restart` runs it";
    assert!(reported.contains(words), "{reported}");
    std::fs::remove_file(job.path("finish")).expect("it was written");
    assert!(job.cluster(&["restart"]).status.success());
    job.add("a", &[]);
    job.worker("a", 2, 0);
    job.finish();
}

#[test]
fn the_spare_takes_the_ranks_of_an_agent_that_was_killed() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    job.worker("a", 1, 0);
    job.worker("b", 1, 1);
    job.add("c", &[]);
    // Of a spare it is known as well how busy its machine is.
    wait_until("the spare to tell of its machine", TIMEOUT, || {
        let spare = job.node("c");
        let busy = spare["processors_busy_ratio"].as_f64().is_some_and(|it| it <= 1.0);
        let [used, all] = ["used", "total"].map(|of| spare[format!("memory_{of}_bytes")].as_u64());
        spare["state"] == "standby" && busy && used > Some(0) && used < all
    });
    job.kill_agent("a");
    job.wait_printed("c", 2, 0, "epoch 2 rank 0 of 2");
    job.wait_printed("b", 2, 1, "epoch 2 rank 1 of 2");
    job.finish();
}

#[test]
fn an_agent_that_is_asked_to_end_gives_its_ranks_to_the_spare_and_costs_nothing() {
    let mut job = Job::with_spare(&WORKER);
    job.stop_agent("a");
    job.wait_printed("c", 2, 0, "epoch 2 rank 0 of 2");
    job.wait_printed("b", 2, 1, "epoch 2 rank 1 of 2");
    let log = job.coordinator_log();
    let wanted = "epoch 2: agents that were asked to end have given up their slots: a";
    assert!(log.contains(wanted), "{log}");
    assert!(!job.agent_log("a").contains("has not heard"), "it was heard");
    let [status, incidents] = [["status"], ["incidents"]].map(|what| job.json(&what));
    assert_eq!(incidents.as_array().map(Vec::len), Some(0), "{incidents}");
    assert_eq!(status["epoch"], 2);
    // It may come back as any other.
    job.add("a", &[]);
    wait_until("it to be a spare", TIMEOUT, || job.node("a")["state"] == "standby");
    job.finish();
}

#[test]
fn a_node_that_stands_still_is_replaced_and_a_spare_when_it_goes_on() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let worker = job.worker("a", 1, 0);
    job.worker("b", 1, 1);
    job.add("c", &[]);
    job.wait_connected("c");
    let tree = job.tree("a");
    assert!(tree.contains(&worker), "an agent has its workers below it");
    let send = |signal| {
        for pid in &tree {
            // What a worker has started may have ended meanwhile.
            let _ = kill_process(*pid, signal);
        }
    };
    send(Signal::STOP);
    job.wait_printed("c", 2, 0, "epoch 2 rank 0 of 2");
    job.wait_printed("b", 2, 1, "epoch 2 rank 1 of 2");
    assert!(test_kill_process(worker).is_ok(), "it stands still, and is there");
    send(Signal::CONT);
    wait_until("the node to be a spare", TIMEOUT, || job.node("a")["state"] == "standby");
    wait_until("its worker to be gone", TIMEOUT, || test_kill_process(worker).is_err());
    assert_eq!(job.json(&["status"])["epoch"], 2, "nobody is disturbed by it");
    job.finish();
}

#[test]
fn a_coordinator_that_is_killed_and_comes_back_disturbs_nobody() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let workers = [job.worker("a", 1, 0), job.worker("b", 1, 1)];
    let attends = |job: &Job, times| {
        job.agent_log("a").matches("connected to the coordinator").count() == times
    };
    assert!(attends(&job, 1));
    job.kill_coordinator(0);
    job.restart_coordinator(0);
    wait_until("the agent to be back", TIMEOUT, || attends(&job, 2));
    assert_eq!([job.worker("a", 1, 0), job.worker("b", 1, 1)], workers);
    for worker in workers {
        assert!(test_kill_process(worker).is_ok(), "its workers go on");
    }
    assert!(!job.agent_log("a").contains("restart this agent"));
    // It knows the epoch, and goes on from there.
    signal(workers[0], Signal::KILL);
    job.wait_printed("a", 2, 0, "epoch 2 rank 0 of 2");
    job.finish();
}

#[test]
fn an_agent_reads_a_new_token_without_a_restart() {
    let mut job = Job::with_token(1, &WORKER, "the-word-of-last-year");
    let token = job.path("token");
    job.add("a", &["--token-file", token.to_str().expect("a path of ours is text")]);
    let worker = job.worker("a", 1, 0);
    job.kill_coordinator(0);
    job.set_token("the-word-of-this-year");
    job.restart_coordinator(0);
    wait_until("the agent to be back", TIMEOUT, || {
        job.agent_log("a").matches("connected to the coordinator").count() == 2
    });
    assert_eq!(job.worker("a", 1, 0), worker);
    job.finish();
}
