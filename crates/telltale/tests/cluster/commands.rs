//! Commands that are wrong: reported at once where they can never run, and started ever later where they
//! end at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use telltale_harness::{Scratch, wait_until};

use crate::cluster::job::{Job, TIMEOUT};

/// An agent of a coordinator that does not exist.
fn agent(place: &Scratch, command: &[&str]) -> Output {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_telltale"));
    agent.args(["agent", "--node-service", "off", "--address", "127.0.0.1", "--coordinator"]);
    agent.arg(format!("unix:{}", place.join("none.sock").display()));
    agent.arg("--state").arg(place.join("state")).arg("--").args(command);
    agent.output().expect("it runs")
}

fn program(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("a program's file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

#[test]
fn a_program_that_is_not_there_is_reported_before_anybody_is_asked() {
    let place = Scratch::new();
    let text = place.join("text");
    program(&text, "#!/bin/sh\n", 0o644);
    for (program, words) in [
        ("pyton3-of-nobody", ["\"pyton3-of-nobody\"", "none of the directories of PATH"]),
        ("/no/such/program", ["/no/such/program", "there is no program"]),
        (text.to_str().unwrap(), ["/text", "may not be executed"]),
    ] {
        let output = agent(&place, &[program, "--batch", "32"]);
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(words.iter().all(|word| reported.contains(word)), "{reported}");
        assert!(!place.join("state").exists(), "nothing was begun");
    }
}

#[test]
fn a_program_that_cannot_be_executed_after_all_ends_the_agent_and_not_the_budget() {
    let place = Scratch::new();
    let path = place.join("train");
    program(&path, "#!/no/such/interpreter\n", 0o755);
    let mut job = Job::start(1, &[path.to_str().unwrap()]);
    job.add("a", &[]);
    let status = job.wait_ended("a");
    assert_eq!(status.code(), Some(2));
    let log = fs::read_to_string(job.path("a.log")).unwrap();
    let reported = log.lines().last().unwrap_or_default();
    assert!(
        reported.contains("cannot run the job") && reported.contains("train\" cannot be run"),
        "{log}"
    );
    assert_eq!(log.matches("starting rank").count(), 1, "it is not tried again: {log}");
    wait_until("the coordinator to know why", TIMEOUT, || {
        job.json(&["incidents"]).to_string().contains("could not be started")
    });
    let status = job.json(&["status"]);
    assert!(status["counted_restarts"].as_u64().is_some_and(|restarts| restarts <= 1), "{status}");
    // After mending it the operator starts the agent again, and the job begins.
    program(&path, "#!/bin/sh\necho begun\n", 0o755);
    job.add("a", &[]);
    job.wait_finished();
}

#[test]
fn a_command_that_ends_at_once_is_started_ever_later() {
    let usage = "echo begins epoch $TELLTALE_EPOCH; echo 'usage: train FILE' >&2; exit 64";
    let mut job = Job::start(1, &["bash", "-c", usage]);
    let begun = Instant::now();
    job.add("a", &[]);
    job.wait_printed("a", 5, 0, "begins epoch 5");
    // Before the third epoch one second, then two, then four.
    assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}", begun.elapsed());
    let log = fs::read_to_string(job.path("a.log")).unwrap();
    assert!(log.contains("next start in 4 s; check the command"), "{log}");
}
