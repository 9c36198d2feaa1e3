//! `telltale doctor`: what it finds on machines that are well, unwell, and without any accelerator;
//! and what its bundle tells of nobody.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use telltale_emulator::{Fault, InjectedErrno, Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::command::{PATIENCE, Running, Said, emulate, said, snapshot, telltale};

fn doctor(root: &Path, arguments: &[&str]) -> Said {
    let state = root.with_extension("state");
    let place = [root.as_os_str(), "--state-dir".as_ref(), state.as_os_str()];
    said(telltale().args(["doctor", "--root"]).args(place).args(arguments))
}

/// Verdicts and remedies of one subject.
fn found(said: &Said, subject: &str) -> Vec<(String, String)> {
    let object: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let findings = object["findings"].as_array().unwrap();
    let of_subject = findings.iter().filter(|finding| finding["subject"] == subject);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_subject.map(|finding| (text(&finding["verdict"]), text(&finding["remedy"][0]))).collect()
}

#[test]
fn a_machine_that_is_well_is_said_to_be_so() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
    let said = doctor(&root, &["--json"]);
    assert_eq!(found(&said, "devices"), [("works".into(), String::new())], "{said:?}");
    assert_eq!(found(&said, "service"), [("not_here".into(), "telltale serve".into())]);
    assert_eq!(found(&said, "leftovers"), []);
    let table = doctor(&root, &[]);
    assert!(table.out.contains("works    devices     2 found, all with sensors\n"), "{table:?}");
    assert!(table.out.contains("> telltale serve\n"), "{table:?}");
    assert_eq!(table.status, said.status);
}

#[test]
fn no_accelerator_is_no_fault_and_a_driver_without_devices_is() {
    let place = Scratch::new();
    let root = place.join("m");
    std::fs::create_dir(&root).unwrap();
    assert_eq!(found(&doctor(&root, &["--json"]), "devices"), [("not_here".into(), String::new())]);
    std::fs::create_dir_all(root.join("sys/class/tenstorrent")).unwrap();
    let said = doctor(&root, &["--json"]);
    let remedy = "sudo dmesg | grep -i tenstorrent".to_owned();
    assert_eq!(found(&said, "devices"), [("broken".into(), remedy)]);
    assert_eq!(said.status, Some(2), "{said:?}");
}

#[test]
fn a_source_that_fails_is_named_with_its_reason() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine =
        Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let attribute = String::from("tt_aiclk");
    machine.inject(Fault::Error { ordinal: 0, attribute, errno: InjectedErrno::Io }).unwrap();
    let said = doctor(&root, &["--json"]);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(!found(&said, "source").is_empty(), "{said:?}");
}

#[test]
fn what_the_dead_left_is_told_with_the_command_that_removes_it() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let mut replay =
        Running::start(telltale().args(["replay", "train", "--loop", "--root"]).arg(&root));
    wait_until("a record of memory", PATIENCE, || {
        let processes = snapshot(&root).processes;
        processes.iter().flat_map(|one| &one.devices).any(|held| !held.kinds.is_empty())
    });
    replay.child.kill();
    let said = doctor(&root, &["--json"]);
    let remedy = "telltale smi --clean".to_owned();
    assert_eq!(found(&said, "leftovers"), [("partly".into(), remedy)], "{said:?}");

    let bundle = place.join("bundle.json");
    let told = doctor(&root, &["--bundle", bundle.to_str().unwrap()]);
    assert!(told.out.contains("look at it before you send it"), "{told:?}");
    let text = std::fs::read_to_string(&bundle).unwrap();
    let object: Value = serde_json::from_str(&text).unwrap();
    let process = &object["snapshot"]["processes"][0];
    assert_eq!(process["name"], "name-1", "{text}");
    assert!(process["devices"][0]["kinds"][0]["live_bytes"].is_u64(), "{text}");
    // Neither who nor where nor what.
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for secret in ["replay", "251732099", "2517320", host.as_str()] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert_eq!(bundle.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = doctor(&root, &["--bundle", bundle.to_str().unwrap()]);
    again.complains(2, &["cannot write the bundle", "it is not overwritten"]);
    assert_eq!(std::fs::read_to_string(&bundle).unwrap(), text);
}
