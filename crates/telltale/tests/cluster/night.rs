//! What went wrong in the night, for one who comes in the morning: which rank, where, when and how, its exception,
//! and where its log is.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::Mode;
use serde_json::Value;
use telltale_harness::{Scratch, wait_until};

use crate::cluster::job::{Job, TELLTALE, TIMEOUT};
use crate::cluster::training::{PYTHON, turn};

/// Rank 1 raises an exception as Python prints it, and another in each epoch; rank 0 goes on.
const SCRIPT: &str = "\
echo begun
if [ $RANK = 1 ]; then
    printf 'Traceback (most recent call last):\\n  File \"t.py\", line 3\\nValueError: bad batch %s\\n' $TELLTALE_EPOCH >&2
    exit 1
fi
sleep 1000
";

/// The first failure of a worker that incidents have.
fn failure(job: &Job) -> Value {
    let mut found = Value::Null;
    wait_until("a failure", TIMEOUT, || {
        let incidents = job.json(&["incidents"]);
        let all = incidents.as_array().into_iter().flatten();
        let mut events = all.flat_map(|one| one["signs"].as_array().cloned().unwrap_or_default());
        found = events.find(|event| event["kind"] == "worker_failed").unwrap_or_default();
        !found.is_null()
    });
    found
}

#[test]
fn the_exception_and_the_log_are_named_and_the_first_failure_s_logs_are_kept() {
    let mut job = Job::start(2, &["bash", "-c", SCRIPT]);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    let failure = failure(&job);
    assert_eq!(
        (&failure["rank"], &failure["message"]),
        (&1.into(), &"ValueError: bad batch 1".into())
    );
    let node = failure["node"].as_str().unwrap().to_owned();
    let log = Path::new(failure["log"].as_str().unwrap());
    assert_eq!(log, job.path(&node).join("logs/epoch-1/1.log"));
    assert!(fs::read_to_string(log).unwrap().contains("ValueError: bad batch 1"));
    let words = format!(
        "the worker of rank 1 on {node} failed: exit code 1: ValueError: bad batch 1; log: "
    );
    assert_eq!(failure["text"], format!("{words}{}", log.display()));
    // Agent and coordinator have it in their logs; each line with its moment.
    let own = format!(
        "epoch 1: rank 1 failed: exit code 1: ValueError: bad batch 1; log: {}",
        log.display()
    );
    let line = job.agent_log(&node).lines().find(|line| line.ends_with(&own)).map(str::to_owned);
    assert!(line.is_some_and(|line| line.starts_with("20")), "{}", job.agent_log(&node));
    let logged = job.coordinator_log();
    assert!(logged.lines().any(|line| line.contains(&words)), "{logged}");
    job.wait_printed("a", 4, 0, "begun");
    for node in ["a", "b"] {
        let logs = job.path(node).join("logs");
        assert_eq!(fs::read_link(logs.join("first-failure")).unwrap(), Path::new("epoch-1"));
    }
    let explained = job.cluster(&["explain"]);
    let text = String::from_utf8_lossy(&explained.stdout).replace(char::is_whitespace, "");
    assert!(text.contains("exitcode1:ValueError:badbatch"), "{text}");
}

/// The JSON that `telltale cluster` prints of a journal, and how it ended.
fn of_journal(arguments: &[&str], journal: &Path) -> (Value, Option<i32>) {
    let mut command = Command::new(TELLTALE);
    command.args(["cluster", "--json"]).args(arguments).arg("--journal").arg(journal);
    let output = command.output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), output.status.code())
}

#[test]
fn the_journal_of_an_ended_coordinator_has_what_it_reported() {
    let mut job = Job::start(1, &["bash", "-c", "sleep 0.2; exit 7"]);
    job.add("a", &[]);
    failure(&job);
    // No further incident comes once the agent has ended.
    job.stop_agent("a");
    let mut reported = Value::Null;
    wait_until("incidents that stand", TIMEOUT, || {
        let before = std::mem::replace(&mut reported, job.json(&["incidents"]));
        reported == before && job.json(&["status"])["open_incident"].is_null()
    });
    let id = reported[0]["id"].as_str().unwrap().to_owned();
    let explained = job.json(&["explain", &id]);
    let journal = job.path("journal");
    // While the coordinator runs, and after it was killed, whether the directory is named or the file.
    assert_eq!(of_journal(&["incidents"], &journal), (reported.clone(), Some(0)));
    job.kill_coordinator(0);
    assert_eq!(of_journal(&["incidents"], &journal.join("journal")), (reported.clone(), Some(0)));
    let (newest, _) = of_journal(&["incidents", "--limit", "1"], &journal);
    assert_eq!(newest.as_array().unwrap()[..], reported.as_array().unwrap()[..1]);
    assert_eq!(of_journal(&["explain"], &journal), (explained, Some(0)));
    let (refused, status) = of_journal(&["explain", "9-9"], &journal);
    assert_eq!(status, Some(1));
    assert_eq!(refused["refused"], "the journal keeps no incident 9-9; `incidents` lists them");
}

#[test]
fn what_is_no_journal_is_refused_with_what_to_do() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.join(name);
    fs::write(path("newer"), b"TTJRNL\0\x07 and what this program cannot know").unwrap();
    fs::write(path("other"), b"GIF89a").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::RUSR).unwrap();
    for (name, expected) in [
        ("newer", "has version 7, and this program knows 1; run the newer program"),
        ("other", "is no journal of a coordinator"),
        ("pipe", "it is no regular file"),
        ("absent", "No such file or directory"),
        ("", "No such file or directory"),
    ] {
        let mut command = Command::new(TELLTALE);
        command.args(["cluster", "incidents", "--journal"]).arg(path(name));
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(expected) && output.status.code() == Some(2), "{name}: {error}");
    }
}

#[test]
fn what_pytorch_s_record_wrote_is_the_message() {
    let Some(_turn) = turn("cluster::night::record") else { return };
    let script = "\
import os
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    open(os.environ['STATE'] + '/begun', 'w').close()
    raise RuntimeError('not enough memory for 3 things')
main()
";
    let mut job = Job::start(1, &[PYTHON, "-c", script]);
    job.add("a", &[]);
    let failure = failure(&job);
    assert_eq!(failure["message"], "RuntimeError: not enough memory for 3 things");
    assert!(job.path("a/logs/epoch-1/0.error.json").exists());
}

#[test]
fn a_script_that_cannot_start_is_given_up_soon_and_the_reason_is_named() {
    let script = "import sys\ndef main(:\n    pass\n";
    let mut job = Job::start(1, &[PYTHON, "-c", script]);
    job.add("a", &[]);
    let mut status = Value::Null;
    wait_until("the job to be given up", TIMEOUT, || {
        status = job.json(&["status"]);
        status["outcome"] == "given_up"
    });
    assert_eq!(status["restarts"], 5, "{status}");
    let explained = job.json(&["explain"]);
    let incident = &explained["incident"];
    let expected =
        "the job was given up: 6 epochs in a row failed in the same way within 60 s of their start";
    assert!(incident["text"].as_str().unwrap().starts_with(expected), "{incident}");
    let failed = &incident["signs"][0];
    assert_eq!(failed["message"], "SyntaxError: invalid syntax", "{failed}");
    assert!(job.wait_ended("a").code() == Some(1));
    assert!(job.agent_log("a").contains("`telltale cluster explain` has the reason"));
    assert!(job.agent_log("a").contains("start it again after `telltale cluster restart`"));
    // One who orders another epoch learns what is missing.
    let ordered = job.cluster(&["restart"]);
    let said = String::from_utf8_lossy(&ordered.stdout).into_owned();
    assert!(
        said.contains("restarted; no agent is heard: start one on each node; epoch 7"),
        "{said}"
    );
    let status = String::from_utf8_lossy(&job.cluster(&["status"]).stdout).into_owned();
    assert!(status.contains("waits before epoch 7: no agent is heard"), "{status}");
}

#[test]
fn a_rank_that_left_early_is_named_beside_those_that_missed_it() {
    let script = "if [ $RANK = 1 ]; then exit 0; fi; sleep 2; exit 9";
    let mut job = Job::of_workers(1, 2, &["bash", "-c", script]);
    job.add("a", &[]);
    failure(&job);
    let incidents = job.json(&["incidents"]);
    let first = incidents.as_array().unwrap().last().unwrap();
    assert_eq!(first["finished"], serde_json::json!([{"rank": 1, "node": "a"}]), "{first}");
    let id = first["id"].as_str().unwrap();
    let text = String::from_utf8_lossy(&job.cluster(&["explain", id]).stdout).into_owned();
    assert!(text.contains("ended with exit code 0 before that: rank 1 on a"), "{text}");
}
