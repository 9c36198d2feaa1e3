//! Health, from the node service to what an operator is shown and what a coordinator does about it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, wait_until};

use crate::cluster::job::{Job, TELLTALE, TIMEOUT};

/// A service that collects often.
const SERVICE: &str = "interval_seconds = 0.2\n[http]\nlisten = []\n";
/// Any temperature is too hot, at once.
const HOT: &str = "\
[[alerts.rule]]
name = \"device_hot\"
above_ratio = 0.001
clear_ratio = 0.0005
for_seconds = 0
";
/// A link may train for an hour.
const LONG_TRAINING: &str = "\
[[alerts.rule]]
name = \"network_link_down\"
for_seconds = 3600
";
/// Waits for the order to finish.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH rank $RANK; until test -e $STATE/finish; do sleep 0.1; done",
];

fn signal(process: &mut ChildGuard, signal: Signal) {
    let pid = Pid::from_child(process.child());
    kill_process(pid, signal).expect("it runs");
}

/// Where the node service of an emulated machine is, or will be.
fn service_of(job: &Job, machine: &str) -> String {
    format!("unix:{}", job.path(&format!("{machine}-run/telemetry.sock")).display())
}

/// An emulated machine with its node service; both end with this.
struct Machine {
    _emulator: ChildGuard,
    service: ChildGuard,
}

impl Machine {
    fn start(job: &Job, machine: &str, faults: &[&str], rules: &str) -> Self {
        let path = |part: &str| job.path(&format!("{machine}-{part}"));
        let mut emulate = Command::new(TELLTALE);
        emulate.args(["emulate", "--machine", "n150", "--root"]).arg(path("root"));
        emulate.args(faults.iter().flat_map(|fault| ["--fault", fault])).stderr(Stdio::piped());
        let mut emulator = ChildGuard::spawn(&mut emulate);
        let mut line = String::new();
        let errors = emulator.child().stderr.take().expect("it is piped");
        BufReader::new(errors).read_line(&mut line).expect("a line");
        assert!(line.starts_with("An emulated "), "{line}");
        fs::create_dir(path("run")).expect("a scratch directory");
        fs::write(path("service.toml"), [SERVICE, rules].concat()).expect("a scratch file");
        let mut serve = Command::new(TELLTALE);
        serve.arg("serve").arg("--root").arg(path("root")).arg("--runtime-dir").arg(path("run"));
        serve.arg("--state-dir").arg(path("state")).arg("--config").arg(path("service.toml"));
        serve.env("HOME", path("home")).stderr(Stdio::null());
        Self { _emulator: emulator, service: ChildGuard::spawn(&mut serve) }
    }
}

/// A job of nodes a and b at work with c as their spare. The service of b's machine has not begun.
fn job_with_spare(policy: &str) -> Job {
    let mut job = without_spare(policy);
    job.add("c", &["--node-service", "off"]);
    job.wait_connected("c");
    job
}

fn without_spare(policy: &str) -> Job {
    let mut job = Job::with_policy(2, &WORKER, policy);
    let service = service_of(&job, "b");
    job.add("a", &["--node-service", "off"]);
    job.add("b", &["--node-service", &service]);
    job.worker("a", 1, 0);
    job.worker("b", 1, 1);
    job
}

/// The newest incident.
fn incident(job: &Job) -> Value {
    job.json(&["explain"])["incident"].clone()
}

fn wait_held(job: &Job, hold: &str) {
    wait_until(&format!("an incident to be held for {hold}"), TIMEOUT, || {
        incident(job)["hold"] == hold
    });
}

/// The events of a kind in the newest incident.
fn events(job: &Job, kind: &str) -> Vec<Value> {
    let incident = incident(job);
    let events = incident["signs"].as_array().into_iter().flatten();
    events.filter(|event| event["kind"] == kind).cloned().collect()
}

/// A program that is run before drains, as a line of the policy.
fn hook(scratch: &Scratch, script: &str) -> String {
    let path = scratch.join("before-drain");
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).expect("a scratch file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a scratch file");
    format!("before_drain = [{path:?}, \"now\"]\n")
}

/// That all goes on as it began.
#[track_caller]
fn assert_goes_on(job: &Job) {
    assert_eq!(job.json(&["status"])["epoch"], 1);
    assert_eq!(job.node("b")["state"], "active");
}

#[test]
fn a_node_whose_chip_stopped_is_drained_once_a_command_has_run() {
    let scratch = Scratch::new();
    let (saw, go) = (scratch.join("saw"), scratch.join("go"));
    let script = format!(
        "echo \"$1: $TELLTALE_NODES of $TELLTALE_JOB in $TELLTALE_EPOCH, $TELLTALE_INCIDENT: $TELLTALE_REASON\" > {saw:?}\n\
         until test -e {go:?}; do sleep 0.1; done\n\
         echo saved"
    );
    let job = job_with_spare(&hook(&scratch, &script));
    let worker = job.worker("b", 1, 1);
    let mut machine = Machine::start(&job, "b", &["stop:0"], "");
    wait_held(&job, "before_drain");
    // A service that does not answer for a while is no sign that the chip is well.
    signal(&mut machine.service, Signal::STOP);
    std::thread::sleep(Duration::from_secs(8));
    wait_held(&job, "before_drain");
    signal(&mut machine.service, Signal::CONT);
    assert_goes_on(&job);
    assert!(test_kill_process(worker).is_ok(), "the worker runs while the command does");
    wait_until("the command to write", TIMEOUT, || saw.metadata().is_ok_and(|file| file.len() > 0));
    let seen = fs::read_to_string(&saw).expect("it was written");
    let id = incident(&job)["id"].as_str().expect("a number").to_owned();
    assert!(seen.starts_with(&format!("now: b of test in 1, {id}: the health of b has")), "{seen}");
    fs::write(go, "").expect("a scratch file");
    job.wait_printed("c", 2, 1, "epoch 2 rank 1");
    job.wait_printed("a", 2, 0, "epoch 2 rank 0");
    assert_eq!(job.node("b")["bar"], "draining");
    let unhealthy = events(&job, "unhealthy");
    assert_eq!((unhealthy.len(), &unhealthy[0]["node"]), (1, &Value::from("b")));
    let ended = events(&job, "before_drain");
    assert_eq!((ended.len(), &ended[0]["message"]), (1, &Value::from("saved")));
    let incident = incident(&job);
    assert_eq!((&incident["cause"], &incident["evicted"][0]), (&"b".into(), &"b".into()));
    assert_eq!(incident["cause_is_certain"], true);
    job.finish();
}

#[test]
fn a_warning_drains_nothing() {
    let job = job_with_spare("");
    let _machine = Machine::start(&job, "b", &[], HOT);
    let device = || job.node("b")["devices"][0].clone();
    wait_until("the device's fault to be shown", TIMEOUT, || device()["healthy"] == false);
    let shown = device();
    let reason = shown["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("throttles"), "{shown}");
    assert_eq!(shown["health"], "warning");
    assert!(shown["device"].as_str().is_some_and(|name| !name.is_empty()), "{shown}");
    assert_eq!(job.json(&["incidents"]), Value::Array(Vec::new()));
    assert_goes_on(&job);
    job.finish();
}

#[test]
fn a_fault_that_may_pass_by_itself_drains_nothing_before_its_alert_fires() {
    let job = job_with_spare("");
    let machine = Machine::start(&job, "b", &["nic:eth0:down"], LONG_TRAINING);
    let host = || job.node("b")["host"].clone();
    wait_until("the link to be a warning", TIMEOUT, || host()["health"] == "warning");
    assert_eq!((&host()["rule"], &host()["device"]), (&"network_link_down".into(), &"eth0".into()));
    assert_eq!(job.json(&["incidents"]), Value::Array(Vec::new()));
    assert_goes_on(&job);
    // With the rule as it is, it is a fault once it has lasted.
    drop(machine);
    fs::remove_dir_all(job.path("b-run")).expect("a scratch directory");
    fs::remove_dir_all(job.path("b-root")).expect("a scratch directory");
    let _machine = Machine::start(&job, "b", &["nic:eth0:down"], "");
    job.wait_printed("c", 2, 1, "epoch 2 rank 1");
    assert_eq!(events(&job, "unhealthy")[0]["node"], "b");
    job.finish();
}

#[test]
fn without_a_spare_a_budget_or_leave_a_failed_health_is_reported_and_nothing_is_done() {
    let job = without_spare("eviction_budget = 0\nhealth_settling_seconds = 0.5\n");
    assert!(job.cluster(&["mode", "recover"]).status.success());
    let _machine = Machine::start(&job, "b", &["stop:0"], "");
    wait_held(&job, "mode");
    assert_eq!(job.node("b")["devices"][0]["rule"], "heartbeat_stopped");
    assert!(job.cluster(&["mode", "act"]).status.success());
    wait_held(&job, "no_spare");
    let mut job = job;
    job.add("c", &["--node-service", "off"]);
    wait_held(&job, "eviction_budget");
    let text = incident(&job)["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("nothing is done: the eviction budget is used up"), "{text}");
    assert_goes_on(&job);
    job.finish();
}

#[test]
fn a_command_that_does_not_end_in_time_delays_the_drain_and_no_more() {
    let scratch = Scratch::new();
    let script = "echo tries; exec sleep 1000";
    let policy = hook(&scratch, script) + "before_drain_timeout_seconds = 1.0\n";
    let job = job_with_spare(&policy);
    let _machine = Machine::start(&job, "b", &["stop:0"], "");
    job.wait_printed("c", 2, 1, "epoch 2 rank 1");
    let ended = events(&job, "before_drain");
    let text = ended[0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("since its time was over; its last line: tries"), "{text}");
    job.finish();
}
