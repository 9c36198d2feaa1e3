//! Agents whose coordinator is not there: they say so in words, and go on.

use std::fs::{self, File};
use std::process::Command;

use telltale_harness::{ChildGuard, Scratch, wait_until};

use crate::cluster::job::{Job, TIMEOUT};

#[test]
fn an_agent_whose_coordinator_goes_away_reports_it_once_and_keeps_its_workers() {
    let mut job = Job::start(1, &["sleep", "600"]);
    job.add("a", &[]);
    wait_until("the worker to run", TIMEOUT, || job.agent_log("a").contains("starting rank"));
    job.kill_coordinator(0);
    let lost = "; workers go on, and it is tried again";
    wait_until("its loss to be told", TIMEOUT, || job.agent_log("a").contains(lost));
    wait_until("why it is not reached", TIMEOUT, || {
        job.agent_log("a").contains("no process listens at")
    });
    let log = job.agent_log("a");
    assert_eq!(log.matches(lost).count(), 1, "{log}");
    assert!(!log.contains("stops its workers") && !log.contains("Kind"), "{log}");
}

#[test]
fn a_coordinator_s_name_that_nobody_knows_yet_is_tried_again() {
    let place = Scratch::new();
    let log = place.join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
    command.args(["agent", "--coordinator", "no-such-host.invalid:9440", "--node-service", "off"]);
    command.arg("--state").arg(place.join("state")).args(["--", "true"]);
    let mut agent = ChildGuard::spawn(command.stderr(File::create(&log).unwrap()));
    wait_until("it to be told", TIMEOUT, || {
        let reported = fs::read_to_string(&log).unwrap();
        reported.contains("cannot resolve no-such-host.invalid:9440: ")
            && reported.contains("; tries again")
    });
    // It goes on until it is asked to end.
    agent.interrupt();
    let status = agent.wait_within("the agent to end", TIMEOUT);
    assert_eq!(status.code(), Some(0), "{}", fs::read_to_string(&log).unwrap());
}
