//! A store that knows less of the job than its agents do: it was emptied, or restored from an older copy.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};
use telltale_harness::{EtcdCluster, needs_etcd, wait_until};

use crate::cluster::job::{Job, TIMEOUT};

/// Waits for the order to finish.
const WORKER: [&str; 3] =
    ["bash", "-c", "echo pid $$; until test -e $STATE/finish; do sleep 0.1; done"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a scratch directory");
    for entry in fs::read_dir(from).expect("a journal").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a file of the journal");
    }
}

fn replace(journal: &Path, by: &Path) {
    fs::remove_dir_all(journal).expect("a journal");
    copy(by, journal);
}

/// Waits until the coordinator refuses to decide for what its agents know.
fn wait_refused(job: &Job, how: &str) {
    wait_until("the coordinator to refuse", TIMEOUT, || {
        job.json(&["status"])["store_trouble"].to_string().contains(how)
    });
    let said = job.cluster(&["status", "--json"]);
    let text = String::from_utf8(said.stdout).expect("text");
    assert_eq!(said.status.code(), Some(1), "not all is well: {text}");
    for part in ["knows less than agents do", "--reset-job", "workers go on", "Restore it"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(job.coordinator_log().contains(how), "{}", job.coordinator_log());
    wait_until("an agent to be told", TIMEOUT, || {
        job.agent_log("a").contains("this coordinator's store knows less of the job than agents do")
    });
    let ordered = job.cluster(&["restart"]);
    assert_eq!(ordered.status.code(), Some(1), "the order is refused: {ordered:?}");
    let why = String::from_utf8_lossy(&ordered.stderr).into_owned();
    assert!(why.contains("the store knows less of the job"), "{why}");
}

#[track_caller]
fn assert_run(workers: &[Pid]) {
    assert!(workers.iter().all(|worker| test_kill_process(*worker).is_ok()), "workers go on");
}

#[test]
fn an_empty_journal_begins_no_job_beside_agents_that_run_one() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let workers = [job.worker("a", 1, 0), job.worker("b", 1, 1)];
    job.kill_coordinator(0);
    fs::remove_dir_all(job.path("journal")).expect("a journal");
    job.restart_coordinator(0);
    wait_refused(&job, "it is empty");
    // Two that are new would be enough for a job.
    ["c", "d"].into_iter().for_each(|node| job.add(node, &[]));
    wait_until("one to be refused", TIMEOUT, || {
        job.agent_log("d").contains("the coordinator refused a message")
    });
    assert_eq!(job.json(&["status"])["phase"], "forming");
    assert_run(&workers);
    // What an operator may want all the same.
    job.kill_coordinator(0);
    job.restart_coordinator_with(0, &["--reset-job"]);
    wait_until("the former job's workers to be ended", TIMEOUT, || {
        workers.iter().all(|worker| test_kill_process(*worker).is_err())
    });
    wait_until("the job to begin anew", TIMEOUT, || job.json(&["status"])["runs"] == true);
    assert!(job.json(&["status"])["store_trouble"].is_null());
    job.finish();
}

#[test]
fn an_older_copy_of_the_journal_commands_nobody_and_the_newer_goes_on() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    job.worker("a", 1, 0);
    job.worker("b", 1, 1);
    let (journal, older, newer) = (job.path("journal"), job.path("older"), job.path("newer"));
    copy(&journal, &older);
    assert!(job.cluster(&["restart"]).status.success());
    let workers = [job.worker("a", 2, 0), job.worker("b", 2, 1)];
    job.kill_coordinator(0);
    copy(&journal, &newer);
    replace(&journal, &older);
    job.restart_coordinator(0);
    wait_refused(&job, "it ends at epoch 1");
    assert_run(&workers);
    job.kill_coordinator(0);
    replace(&journal, &newer);
    job.restart_coordinator(0);
    wait_until("the job to be well", TIMEOUT, || job.cluster(&["status"]).status.success());
    assert_run(&workers);
    assert_eq!(job.json(&["status"])["epoch"], 2);
    job.finish();
}

#[test]
fn agents_that_are_started_again_begin_a_job_on_an_empty_journal() {
    let mut job = Job::start(2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    job.worker("a", 1, 0);
    job.worker("b", 1, 1);
    job.kill_coordinator(0);
    fs::remove_dir_all(job.path("journal")).expect("a journal");
    job.restart_coordinator(0);
    wait_refused(&job, "it is empty");
    for node in ["a", "b"] {
        job.stop_agent(node);
        job.add(node, &[]);
    }
    wait_until("the job to begin", TIMEOUT, || job.json(&["status"])["runs"] == true);
    job.finish();
}

#[test]
fn an_empty_etcd_begins_no_job_beside_agents_that_run_one() {
    if !needs_etcd("cluster::behind::an_empty_etcd") {
        return;
    }
    let etcd = EtcdCluster::start(1);
    let mut job = Job::with_etcd(2, &WORKER, &etcd);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let workers = [job.worker("a", 1, 0), job.worker("b", 1, 1)];
    for index in 0..2 {
        job.kill_coordinator(index);
        let file = job.path(&format!("coordinator-{index}.toml"));
        let text = fs::read_to_string(&file).expect("a configuration");
        let other = text.replace("[store]\n", "[store]\netcd_prefix = \"telltale/emptied\"\n");
        fs::write(&file, other).expect("a configuration");
    }
    (0..2).for_each(|index| job.restart_coordinator(index));
    wait_refused(&job, "it is empty");
    assert_run(&workers);
}
