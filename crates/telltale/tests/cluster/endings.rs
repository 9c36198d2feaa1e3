//! What an agent makes of signals: scripts save, unless a second signal asks for an end at once.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use telltale_harness::skip;

use crate::cluster::job::{Job, signal};
use crate::cluster::training::PYTHON;

/// A script that takes its time to save, and loses what it saves if it is asked to end once more.
const SAVES_SLOWLY: &str = "\
import os, signal, sys, time
asked = 0
def save(*_):
    global asked
    asked += 1
    print('asked', asked, flush=True)
    if asked > 1:
        os._exit(1)
    time.sleep(float(os.environ['SAVES_FOR']))
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('pid', os.getpid(), flush=True)
while True:
    signal.pause()
";
const GRACE: [&str; 2] = ["--stop-grace", "60"];
/// Longer than any grace of these tests but the one above.
const FOR_EVER: &str = "600";

/// A job whose script saves for `seconds`, not yet with a node.
fn job(seconds: &str) -> Option<Job> {
    if !Path::new(PYTHON).exists() {
        skip("cluster::endings", "needs Python at /usr/bin/python3");
        return None;
    }
    let mut job = Job::start(1, &[PYTHON, "-u", "-c", SAVES_SLOWLY]);
    job.set("SAVES_FOR", seconds);
    Some(job)
}

/// Sends the agent these signals, each after so many milliseconds, and waits for its end.
fn end_by(job: &mut Job, signals: &[(u64, Signal)]) -> ExitStatus {
    job.worker("a", 1, 0);
    let agent = job.tree("a")[0];
    for (after, one) in signals {
        if *after > 0 {
            job.wait_printed("a", 1, 0, "asked 1");
            // What is tested is the time between signals.
            std::thread::sleep(Duration::from_millis(*after));
        }
        signal(agent, *one);
    }
    job.wait_ended("a")
}

#[test]
fn scripts_save_when_a_terminal_is_closed_and_signals_come_in_crowds() {
    for signals in [
        // A shell and the kernel each send one when a terminal is closed.
        &[(0, Signal::HUP), (0, Signal::HUP)][..],
        &[(0, Signal::HUP), (0, Signal::CONT), (1500, Signal::HUP), (0, Signal::HUP)],
        &[(0, Signal::HUP), (0, Signal::TERM)],
        &[(0, Signal::INT), (0, Signal::TERM)],
        &[(0, Signal::TERM), (0, Signal::INT), (1500, Signal::HUP)],
    ] {
        let Some(mut job) = job("3") else { return };
        job.add_with("a", &GRACE);
        let status = end_by(&mut job, signals);
        assert_eq!(status.code(), Some(0), "{}", job.agent_log("a"));
        let printed = job.printed("a", 1, 0);
        assert!(printed.ends_with("\nasked 1\nsaved\n"), "{signals:?}: {printed}");
    }
}

#[test]
fn a_second_signal_that_is_meant_so_ends_workers_at_once() {
    for signals in [
        &[(0, Signal::INT), (500, Signal::INT)][..],
        &[(0, Signal::TERM), (1500, Signal::TERM)],
        &[(0, Signal::HUP), (1500, Signal::TERM)],
    ] {
        let Some(mut job) = job(FOR_EVER) else { return };
        job.add_with("a", &["--stop-grace", "600"]);
        let status = end_by(&mut job, signals);
        assert_eq!(status.code(), Some(0), "{}", job.agent_log("a"));
        let printed = job.printed("a", 1, 0);
        assert!(printed.ends_with("\nasked 1\n"), "{signals:?}: {printed}");
        let log = job.agent_log("a");
        assert!(log.contains("second signal: killing rank 0"), "{log}");
    }
}

#[test]
fn an_agent_under_nohup_outlives_its_terminal() {
    let Some(mut job) = job("0") else { return };
    job.add_by(&["nohup".to_owned()], "127.0.0.1", "a", &GRACE);
    job.worker("a", 1, 0);
    let agent = job.tree("a")[0];
    for _ in 0..2 {
        signal(agent, Signal::HUP);
    }
    // It still obeys, and its worker was asked by nothing else.
    assert!(job.cluster(&["restart"]).status.success());
    job.worker("a", 2, 0);
    assert_eq!(job.stop_agent("a").code(), Some(0));
    assert!(job.agent_log("a").contains("epoch 1: rank 0 ended"), "{}", job.agent_log("a"));
}

#[test]
fn an_agent_that_ends_while_scripts_save_asks_none_of_them_twice() {
    for order in ["restart", "drain"] {
        let Some(mut job) = job("3") else { return };
        job.add_with("a", &GRACE);
        job.worker("a", 1, 0);
        if order == "drain" {
            job.add_with("b", &GRACE);
            job.wait_connected("b");
        }
        let arguments = if order == "drain" { &["drain", "a"][..] } else { &["restart"] };
        let ordered = job.cluster(arguments);
        assert!(ordered.status.success(), "{ordered:?}");
        job.wait_printed("a", 1, 0, "asked 1");
        job.stop_agent("a");
        let printed = job.printed("a", 1, 0);
        assert!(printed.ends_with("\nasked 1\nsaved\n"), "{order}: {printed}");
    }
}

#[test]
fn a_script_whose_save_outlasts_the_grace_is_named() {
    let Some(mut job) = job(FOR_EVER) else { return };
    job.add("a", &[]);
    job.worker("a", 1, 0);
    let warnings = |job: &Job| job.agent_log("a").matches("killing rank 0").count();
    assert!(job.cluster(&["restart"]).status.success());
    job.worker("a", 2, 0);
    let log = job.agent_log("a");
    let expected = "killing rank 0: still running 2 s after SIGTERM (--stop-grace)";
    assert!(log.contains(&format!("epoch 1: {expected}")), "{log}");
    assert_eq!(warnings(&job), 1, "{log}");
    job.stop_agent("a");
    assert_eq!(warnings(&job), 2, "{}", job.agent_log("a"));
    assert!(job.agent_log("a").contains(&format!("epoch 2: {expected}")));
}
