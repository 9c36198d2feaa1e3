//! What went wrong in the night, for one who comes in the morning: which rank, where, when and how, its exception,
//! and where its log is.

use std::fs;
use std::path::Path;

use serde_json::Value;
use telltale_harness::wait_until;

use crate::cluster::job::{Job, TIMEOUT};
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
