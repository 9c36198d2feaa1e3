//! `telltale smi -w` without a terminal: pages, rows or objects until a signal.

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::command::{Running, telltale};

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
fn csv_repeats_its_heading_with_each_snapshot() {
    watch(&["--csv"], |watching| {
        for _ in 0..2 {
            assert!(watching.line().starts_with("id,"));
            assert!(watching.line().starts_with("251732099,"));
            assert!(watching.line().starts_with("251732099R,"));
        }
    });
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
