//! The command as a user meets it: its exit statuses, what it does not print, and whom it leaves as they were.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use telltale_harness::{ChildGuard, Scratch, as_user, needs_root, python_with};

use crate::cli::command::{said, telltale};
use crate::cli::json;
use crate::hangs::fixture::HungJob;

const NO_ONE: u32 = 65_534;

#[test]
fn what_moves_is_not_explained_and_is_left_as_it_was() {
    const TEST: &str = "hangs::command::what_moves_is_not_explained_and_is_left_as_it_was";
    let Some(mut python) = python_with(TEST, "json") else { return };
    // One line after the other, so that no two samples are equal.
    let lines: String =
        (0..2000).map(|number| format!("    x = {number} + sum(range(500))\n")).collect();
    python.args(["-c", &format!("while True:\n{lines}")]);
    let mut moving = ChildGuard::spawn(&mut python);
    thread::sleep(Duration::from_millis(500));
    let pid = moving.id().to_string();
    let found = said(telltale().args(["autopsy", "--pause", "0.1", &pid]));
    assert_eq!(found.status, Some(2), "{found:?}");
    assert!(found.out.contains("Nothing stands still"), "{found:?}");
    assert!(moving.is_running());
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("TracerPid:\t0"), "{status}");
}

#[test]
fn another_users_process_is_refused_with_the_remedy() {
    const TEST: &str = "hangs::command::another_users_process_is_refused_with_the_remedy";
    if !needs_root(TEST) {
        return;
    }
    let mut sleep = Command::new("sleep");
    let sleeping = ChildGuard::spawn(sleep.arg("1000").stdout(Stdio::null()));
    let mut command = telltale();
    command.args(["autopsy", "--pause", "0.1", &sleeping.id().to_string()]);
    let found = said(&mut as_user(NO_ONE, NO_ONE, command));
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.out.contains("run it as user 0 or as root"), "{found:?}");
}

#[test]
fn a_process_that_does_not_exist_is_named() {
    let found = said(telltale().args(["autopsy", "4194304"]));
    assert_eq!(found.status, Some(2), "{found:?}");
    assert!(found.err.contains("process 4194304 does not exist"), "{found:?}");
}

#[test]
fn the_files_to_attach_hold_the_sentence_and_no_secret() {
    const TEST: &str = "hangs::command::the_files_to_attach_hold_the_sentence_and_no_secret";
    let Some(job) = HungJob::start(TEST, "empty_queue", 1) else { return };
    let scratch = Scratch::new();
    for name in ["hang.html", "hang.json", "hang.txt"] {
        let path = scratch.join(name);
        let found = said(
            telltale().args(["autopsy", "--pause", "0.2", "--output"]).arg(&path).args(job.pids()),
        );
        assert_eq!(found.status, Some(0), "{found:?}");
        let sentence = found.out.lines().next().unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains("rank 1 has not entered it"), "{written}");
        assert!(sentence.starts_with("ranks 0, 2, 3 wait in all_reduce"), "{sentence}");
        assert!(!written.contains("never to be seen"), "an environment variable was written");
        if name.ends_with("json")
            && let Some(wrong) = json::complaints(TEST, "autopsy.schema.json", &written)
        {
            assert!(wrong.iter().all(Vec::is_empty), "{wrong:#?}");
        }
    }
}
