//! `telltale demo --cluster`: that a killed node is replaced and no bit differs, what is shown of it,
//! and that nothing is left, whatever ends the demo.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, TIMEOUT, alone, children, telltale};

/// How long a demo of few steps may take; most of it is noticing that a node is dead.
const DEMO_TIMEOUT: Duration = Duration::from_secs(300);

/// The demo, making its directory in `place`.
fn demo(place: &Path, arguments: &[&str]) -> Command {
    let mut command = telltale();
    command.args(["demo", "--cluster", "--steps", "40"]).args(arguments);
    command.env("XDG_RUNTIME_DIR", place);
    command
}

#[track_caller]
fn assert_empty(place: &Path) {
    let left: Vec<_> = fs::read_dir(place).unwrap().map(|one| one.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// All processes that have a directory in `place` in their environment, as those of a demo have.
fn processes(place: &Path) -> Vec<String> {
    let variable = format!("={}/telltale-demo-", place.display());
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let entries = numbers.filter(|entry| {
        fs::read(entry.path().join("environ"))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains(&variable))
    });
    let line = |path: &Path| fs::read_to_string(path.join("cmdline")).unwrap_or_default();
    entries.map(|entry| line(&entry.path()).replace('\0', " ")).collect()
}

/// Reads events until one has this name.
fn read_to(demo: &mut Running, name: &str) -> Value {
    loop {
        let event: Value = serde_json::from_str(&demo.line()).unwrap();
        if event["event"] == name {
            return event;
        }
    }
}

#[test]
fn a_killed_node_is_replaced_and_no_bit_differs() {
    let _alone = alone();
    let place = Scratch::new();
    let mut demo = Running::start(&mut demo(place.path(), &["--json"]));
    let killed = read_to(&mut demo, "killed");
    assert_eq!((&killed["node"], &killed["rank"]), (&"node-c".into(), &2.into()));
    assert!(killed["processes"].as_u64().unwrap() >= 2, "the agent and its worker: {killed}");
    let runs = read_to(&mut demo, "runs");
    assert_eq!(runs["nodes"], serde_json::json!(["node-a", "node-b", "node-e", "node-d"]));
    let after = runs["seconds_after_kill"].as_f64().unwrap();
    assert!((0.0..30.0).contains(&after), "{runs}");
    let stepped = read_to(&mut demo, "stepped");
    // On a busy machine a restart may take more than one attempt.
    assert!(stepped["epoch"].as_u64() >= runs["epoch"].as_u64(), "{stepped}");
    assert!(stepped["resumed_after"].as_u64().unwrap() >= 20, "{stepped}");
    let status = demo.child.wait_within("the demo to end", DEMO_TIMEOUT).code();
    let errors = demo.errors();
    let last: Value = serde_json::from_str(demo.rest().last().unwrap()).unwrap();
    assert_eq!((status, &last["event"]), (Some(0), &"compared".into()), "{last}: {errors}");
    assert_eq!((&last["identical"], &last["steps"]), (&true.into(), &40.into()));
    assert!(last["weights_digest"].is_string());
    assert_eq!(processes(place.path()), Vec::<String>::new());
    assert_empty(place.path());
}

#[test]
fn a_person_gets_a_line_for_each_thing_then_the_verdict_and_what_to_try_next() {
    let _alone = alone();
    let place = Scratch::new();
    let mut demo = Running::start(&mut demo(place.path(), &[]));
    let status = demo.child.wait_within("the demo to end", DEMO_TIMEOUT).code();
    let errors = demo.errors();
    let lines = demo.rest();
    assert_eq!(status, Some(0), "{lines:#?}: {errors}");
    let said = |words: &str| lines.iter().any(|line| line.contains(words));
    for words in [
        "a coordinator and 5 agents started, 1 of them a spare",
        "epoch 1 runs on node-a, node-b, node-c, node-d",
        "KILLED node-c (rank 2) after step ",
        "node-c out; ",
        ": the failure is answered: all stop, and this epoch is prepared",
        "runs on node-a, node-b, node-e, node-d; no spare is left",
        "every rank has done 40 steps; weights ",
    ] {
        assert!(said(words), "{words}: {lines:#?}");
    }
    // At the earliest half-way; beside other tests it is seen later.
    let killed = lines.iter().find_map(|line| line.split("after step ").nth(1));
    let step: u32 = killed.and_then(|rest| rest.split(',').next()?.parse().ok()).expect("a step");
    assert!((20..40).contains(&step), "{lines:#?}");
    let next = lines.iter().position(|line| line == "Try next:").expect("there is more to try");
    assert_eq!(lines.len(), next + 4, "three commands: {lines:#?}");
    let lines = &lines[..next - 1];
    let verdict = "The weights after 40 steps are identical, bit for bit";
    assert!(lines.last().unwrap().starts_with(verdict), "{lines:#?}");
    let end = &lines[lines.len() - 3..];
    assert!(end.iter().all(|line| line.chars().count() <= 80), "{end:#?}");
    assert!(lines.iter().all(|line| !line.contains('\x1b')));
    assert_empty(place.path());
}

#[test]
fn ctrl_c_ends_it_at_any_time_and_nothing_is_left() {
    let _alone = alone();
    for name in ["started", "killed", "trained"] {
        let place = Scratch::new();
        let mut demo = Running::start(&mut demo(place.path(), &["--json"]));
        read_to(&mut demo, name);
        assert!(!children(demo.child.id()).is_empty());
        demo.child.interrupt();
        assert_eq!(demo.status(), Some(0), "after {name}");
        let last: Value = serde_json::from_str(demo.rest().last().unwrap()).unwrap();
        assert_eq!(last["event"], "interrupted", "after {name}");
        assert_eq!(processes(place.path()), Vec::<String>::new(), "after {name}");
        assert_empty(place.path());
    }
}

#[test]
fn when_it_is_killed_its_processes_end_and_the_next_one_tidies_up() {
    let _alone = alone();
    let place = Scratch::new();
    let mut killed = Running::start(&mut demo(place.path(), &["--json"]));
    read_to(&mut killed, "stepped");
    killed.child.kill();
    wait_until("its processes to end", TIMEOUT, || processes(place.path()).is_empty());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nobody was left to remove it");
    let mut next = Running::start(&mut demo(place.path(), &["--json"]));
    read_to(&mut next, "started");
    next.child.interrupt();
    assert_eq!(next.status(), Some(0));
    assert_empty(place.path());
}
