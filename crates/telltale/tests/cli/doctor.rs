//! `telltale doctor`: what it finds on machines that are well, unwell, and without any accelerator.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use telltale_emulator::{Fault, InjectedErrno, Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, Said, TIMEOUT, emulate, said, snapshot, telltale};

fn doctor(root: &Path, arguments: &[&str]) -> Said {
    let state = root.with_extension("state");
    let place = [root.as_os_str(), "--state-dir".as_ref(), state.as_os_str()];
    said(telltale().args(["doctor", "--root"]).args(place).args(arguments))
}

/// A machine whose firmware has no heartbeat, which need not count.
fn machine(root: &Path, kind: MachineKind) -> Machine {
    let mut machine = Machine::create(root, kind, &MachineOptions::default()).unwrap();
    let attribute = String::from("tt_heartbeat");
    machine.inject(Fault::Missing { ordinal: 0, attribute }).unwrap();
    machine
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
    let _machine = machine(&root, MachineKind::N300);
    let said = doctor(&root, &["--json"]);
    assert_eq!(found(&said, "devices"), [("works".into(), String::new())], "{said:?}");
    assert_eq!(found(&said, "service"), [("not_here".into(), "telltale serve".into())]);
    assert_eq!(found(&said, "leftovers"), []);
    let table = doctor(&root, &[]);
    assert!(
        table.out.contains("works    devices     2 found, all with sensors but 1 remote chip\n"),
        "{table:?}"
    );
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
    let mut machine = machine(&root, MachineKind::N150);
    let attribute = String::from("tt_aiclk");
    machine.inject(Fault::Error { ordinal: 0, attribute, errno: InjectedErrno::Io }).unwrap();
    let said = doctor(&root, &["--json"]);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(!found(&said, "source").is_empty(), "{said:?}");
}

#[test]
fn what_the_dead_left_is_reported_with_the_command_that_removes_it() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let mut replay =
        Running::start(telltale().args(["replay", "train", "--loop", "--root"]).arg(&root));
    wait_until("a record of memory", TIMEOUT, || {
        let processes = snapshot(&root).processes;
        processes.iter().flat_map(|one| &one.devices).any(|held| !held.kinds.is_empty())
    });
    replay.child.kill();
    let said = doctor(&root, &["--json"]);
    let remedy = "telltale smi --clean".to_owned();
    assert_eq!(found(&said, "leftovers"), [("partly".into(), remedy)], "{said:?}");
}

/// The finding of one subject that is worst, and its text.
fn worst(said: &Said, subject: &str) -> (String, String) {
    let object: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let findings = object["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rank = |verdict: &str| {
        ["works", "not_here", "partly", "broken"].iter().position(|it| *it == verdict)
    };
    let of_subject = findings.iter().filter(|finding| finding["subject"] == subject);
    let found = of_subject.map(|it| (text(&it["verdict"]), text(&it["what"])));
    found.max_by_key(|(verdict, _)| rank(verdict)).unwrap_or_else(|| panic!("{subject}: {said:?}"))
}

/// Whatever does not work as it should comes with a command.
fn is_mended(said: &Said) {
    let object: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    for finding in object["findings"].as_array().unwrap() {
        let verdict = finding["verdict"].as_str().unwrap();
        let remedies = finding["remedy"].as_array().map_or(0, Vec::len);
        assert!(!matches!(verdict, "partly" | "broken") || remedies > 0, "{finding}");
    }
}

#[test]
fn each_thing_that_is_broken_is_reported_with_what_mends_it() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = machine(&root, MachineKind::N300);
    let runtime = root.join("run/tt");
    let socket = runtime.join("telemetry.sock");
    let look = |status: i32, subject: &str, words: &str| {
        let said = doctor(&root, &["--json"]);
        is_mended(&said);
        assert_eq!(said.status, Some(status), "{said:?}");
        let object: Value = serde_json::from_str(&said.out).unwrap();
        let mut findings = object["findings"].as_array().unwrap().iter();
        let is_reported = findings
            .any(|it| it["subject"] == subject && it["what"].as_str().unwrap().contains(words));
        assert!(is_reported, "{subject}: {words}: {said:?}");
    };
    look(0, "service", "none runs");
    // A service that was killed, one that says nothing, and no service at all.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    look(2, "service", "no service answers");
    std::fs::remove_file(&socket).unwrap();
    let silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    look(2, "service", "did not answer");
    drop(silent);
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "no socket").unwrap();
    look(2, "service", "no service answers");
    std::fs::remove_file(&socket).unwrap();
    // A history that is none.
    let state = root.with_extension("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("history.db"), "no database, but longer than a header of one")
        .unwrap();
    look(2, "history", "damaged");
    std::fs::remove_file(state.join("history.db")).unwrap();
    // A directory in which anybody can replace anything, and one that is not there.
    let mode = |mode| std::fs::set_permissions(&runtime, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o777);
    look(2, "directory", "any user can replace");
    mode(0o1777);
    look(0, "directory", "kept by user");
    std::fs::remove_dir(&runtime).unwrap();
    look(2, "directory", "cannot open");
    std::fs::create_dir(&runtime).unwrap();
    // A board that no driver has.
    let board = root.join("sys/bus/pci/devices/0000:99:00.0");
    std::fs::create_dir_all(&board).unwrap();
    std::fs::write(board.join("vendor"), "0x1e52\n").unwrap();
    std::fs::write(board.join("class"), "0x120000\n").unwrap();
    look(2, "hardware", "Tenstorrent at 0000:99:00.0 has no driver");
    std::os::unix::fs::symlink("../../drivers/vfio-pci", board.join("driver")).unwrap();
    look(0, "hardware", "for a virtual machine");
}

#[test]
fn settings_that_contradict_each_other_are_found() {
    let place = Scratch::new();
    let directory = place.join("telltale");
    std::fs::create_dir(&directory).unwrap();
    let text = "[http]\nlisten = [\"192.0.2.77:9435\"]\n";
    std::fs::write(directory.join("telltale.toml"), text).unwrap();
    let mut command = telltale();
    let said = said(command.env("XDG_CONFIG_HOME", place.path()).args(["doctor", "--json"]));
    is_mended(&said);
    let (verdict, what) = worst(&said, "settings");
    assert_eq!(verdict, "broken", "{what}");
    assert!(what.contains("http.listen"), "{what}");
}

#[test]
fn nvidias_library_is_left_alone_where_that_is_reported() {
    let reported = said(telltale().args(["doctor", "--json", "--no-nvml"]));
    let object: Value =
        serde_json::from_str(&reported.out).unwrap_or_else(|_| panic!("{reported:?}"));
    let findings = object["findings"].as_array().unwrap();
    let is_left = |it: &&Value| it["what"] == "nvidia: not asked, as configured";
    assert_eq!(findings.iter().filter(is_left).count(), 1, "{reported:?}");

    let arguments = ["config", "show", "--json", "--no-nvml", "--with-host"];
    let shown = said(telltale().args(arguments));
    let values: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
    let value = |key: &str| {
        let found = values.as_array().unwrap().iter().find(|it| it["key"] == key).unwrap();
        (found["value"].clone(), found["origin"].as_str().unwrap().to_owned())
    };
    let (nvml, origin) = value("hardware.nvml");
    assert_eq!((nvml, origin.contains("--no-nvml")), (Value::from(false), true), "{origin}");
    let (host, origin) = value("hardware.host");
    assert_eq!((host, origin.contains("--with-host")), (Value::from("always"), true), "{origin}");
}
