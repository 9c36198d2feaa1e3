//! `telltale smi -w` without a terminal: pages, rows or objects until a signal.

use std::fs;
use std::process::Command;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Running, telltale};

fn watch(form: &[&str], check: impl Fn(&mut Running)) {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
    let mut command = telltale();
    command.args(["smi", "-w", "0.2"]).args(form).arg("--root").arg(&root);
    let mut watching = Running::start(&mut command);
    check(&mut watching);
    watching.child.interrupt();
    assert_eq!(watching.status(), Some(0));
}

#[test]
fn it_goes_on_until_interrupted() {
    watch(&[], |watching| {
        for _ in 0..3 {
            assert!(watching.line().starts_with("ID "));
            assert!(watching.line().starts_with("251732099 "));
            assert!(watching.line().starts_with("251732099R "));
            assert_eq!(watching.line(), "");
            assert!(watching.line().starts_with("No process"));
            assert_eq!(watching.line(), "");
        }
    });
}

#[test]
fn json_is_an_object_a_line() {
    watch(&["--json"], |watching| {
        let mut before = 0;
        for _ in 0..3 {
            let value: serde_json::Value = serde_json::from_str(&watching.line()).unwrap();
            assert_eq!(value["schema_version"], 1);
            let taken_at = value["taken_at"].as_u64().unwrap();
            assert!(taken_at > before, "{before} {taken_at}");
            before = taken_at;
        }
    });
}

#[test]
fn csv_has_one_heading_and_the_time_in_each_row() {
    watch(&["--csv"], |watching| {
        assert!(watching.line().starts_with("taken_at_unix_ns,id,"));
        let mut before = 0;
        for _ in 0..3 {
            let rows = [watching.line(), watching.line()];
            let [first, second] = rows.each_ref().map(|row| row.split_once(',').unwrap());
            assert!(first.1.starts_with("251732099,n300,wormhole_b0,"), "{first:?}");
            assert!(second.1.starts_with("251732099R,n300,"), "{second:?}");
            let taken_at: u64 = first.0.parse().unwrap();
            assert!(taken_at > before && second.0 == first.0, "{before} {rows:?}");
            before = taken_at;
        }
    });
}

#[test]
fn it_may_open_as_many_files_as_the_system_lets_it() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -S -n 64; exec \"$0\" smi -w 0.2 --json --root \"$1\""]);
    let mut watching = Running::start(shell.arg(env!("CARGO_BIN_EXE_telltale")).arg(&root));
    watching.line();
    let limits = fs::read_to_string(format!("/proc/{}/limits", watching.child.id())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let [soft, hard, ..] = files.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{files}")
    };
    assert!(soft == hard && soft != "64", "{files}");
    watching.child.interrupt();
    assert_eq!(watching.status(), Some(0));
}

#[test]
fn a_machine_that_is_not_there_yet_is_waited_for() {
    let place = Scratch::new();
    let mut command = telltale();
    command.args(["smi", "-w", "0.1", "--json", "--root"]).arg(place.path());
    let mut watching = Running::start(&mut command);
    let devices = |watching: &mut Running| {
        let value: serde_json::Value = serde_json::from_str(&watching.line()).unwrap();
        value["devices"].as_array().unwrap().len()
    };
    assert_eq!(devices(&mut watching), 0);
    let root = place.join(".");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    while devices(&mut watching) == 0 {}
    watching.child.terminate();
    assert_eq!(watching.status(), Some(0));
}
