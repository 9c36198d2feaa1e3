//! Device health, from the node service to what an operator is shown.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, wait_until};

use crate::cluster::job::{Job, TIMEOUT};

/// Any temperature is too hot, at once.
const RULES: &str = "\
interval_seconds = 0.2
[http]
listen = []
[[alerts.rule]]
name = \"device_hot\"
above_ratio = 0.001
clear_ratio = 0.0005
for_seconds = 0
";

fn telltale() -> Command {
    Command::new(env!("CARGO_BIN_EXE_telltale"))
}

#[test]
fn an_operator_is_shown_what_the_node_service_finds_wrong_with_a_device() {
    let mut job = Job::start(1, &["bash", "-c", "until test -e $STATE/finish; do sleep 0.1; done"]);
    let (root, run) = (job.path("machine"), job.path("run"));
    let mut emulate = telltale();
    emulate.args(["emulate", "--machine", "n150", "--root"]).arg(&root).stderr(Stdio::piped());
    let mut machine = ChildGuard::spawn(&mut emulate);
    let mut line = String::new();
    let errors = machine.child().stderr.take().expect("it is piped");
    BufReader::new(errors).read_line(&mut line).expect("a line");
    assert!(line.starts_with("An emulated "), "{line}");
    fs::create_dir(&run).expect("a scratch directory");
    fs::write(job.path("service.toml"), RULES).expect("a scratch file");
    let socket = format!("unix:{}", run.join("telemetry.sock").display());
    let begun = job.path("finish");
    job.add("a", &["--node-service", &socket]);
    // The agent was there first: it asks again.
    let mut serve = telltale();
    serve.arg("serve").arg("--root").arg(&root).arg("--runtime-dir").arg(&run);
    serve.arg("--state-dir").arg(job.path("state")).arg("--config").arg(job.path("service.toml"));
    serve.env("HOME", job.path("home")).stderr(Stdio::null());
    let _service = ChildGuard::spawn(&mut serve);
    let device = |job: &Job| job.json(&["nodes"])[0]["devices"][0].clone();
    wait_until("the device's fault to be shown", TIMEOUT, || device(&job)["healthy"] == false);
    let shown = device(&job);
    let reason = shown["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("throttles"), "{shown}");
    assert!(shown["device"].as_str().is_some_and(|name| !name.is_empty()), "{shown}");
    fs::write(begun, "").expect("a scratch file");
    job.wait_finished();
}
