//! `telltale smi -c`: what killed processes left is removed and named, in every form of output.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, TIMEOUT, emulate, said, smi, snapshot, telltale};
use crate::cli::serve::{Serving, serve};

/// Lets a process record below `root` and kills it.
fn kill_one(root: &Path) {
    let mut command = telltale();
    command.args(["replay", "train", "--loop", "--root"]).arg(root);
    let mut replay = Running::start(&mut command);
    let pid = replay.child.id();
    wait_until("a record", TIMEOUT, || {
        snapshot(root).processes.iter().any(|one| one.pid == Some(pid) && one.known_by.is_some())
    });
    replay.child.kill();
}

fn files(root: &Path) -> usize {
    fs::read_dir(root.join("run/tt")).unwrap().count()
}

#[test]
fn what_the_killed_left_is_removed_and_named() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let living = {
        let mut command = telltale();
        command.args(["replay", "train", "--loop", "--root"]).arg(&root);
        Running::start(&mut command)
    };
    let recorded = || snapshot(&root).processes.iter().any(|one| one.known_by.is_some());
    wait_until("the living one to record", TIMEOUT, recorded);
    let of_the_living = files(&root);

    kill_one(&root);
    assert!(files(&root) > of_the_living);
    let reported = smi(&root, &["-c"]);
    assert_eq!((reported.status, reported.err.as_str()), (Some(0), ""), "{reported:?}");
    let (table, removed) = reported.out.split_once("\nremoved ").expect("it says what");
    assert!(table.contains(&living.child.id().to_string()), "{table}");
    assert!(removed.contains("ledger_") && removed.contains("metrics_"), "{removed}");
    assert_eq!(files(&root), of_the_living);

    kill_one(&root);
    let reported = smi(&root, &["-c", "--json"]);
    let object: Value = serde_json::from_str(&reported.out).unwrap();
    assert_eq!((reported.status, object["schema_version"].as_u64()), (Some(0), Some(1)));
    let removed = object["cleaned"]["removed"].as_array().unwrap();
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert!(removed.iter().all(|file| file["path"].is_string() && file["why"].is_string()));
    assert_eq!(object["cleaned"]["left"], Value::Array(Vec::new()));

    kill_one(&root);
    let reported = smi(&root, &["-c", "--csv"]);
    assert!(
        reported.out.lines().count() == 2 && reported.out.starts_with("taken_at_unix_ns,id,"),
        "{reported:?}"
    );
    assert_eq!(reported.err.matches("removed ").count(), 2, "{reported:?}");
    assert_eq!(files(&root), of_the_living);
}

#[test]
fn the_sockets_of_a_killed_service_are_removed_and_those_of_a_living_one_stay() {
    let place = Scratch::new();
    let mut service = Serving::start(&mut serve(&place));
    service.says("collecting");
    let directory = place.join("run");
    drop(UnixListener::bind(directory.join("legacy-clients.sock")).unwrap());
    // Of no user that a service knows.
    drop(UnixListener::bind(directory.join("others.sock")).unwrap());
    let clean = || said(telltale().args(["smi", "-c", "--runtime-dir"]).arg(&directory));
    let gone = |name: &str| !directory.join(name).exists();
    wait_until("the one that is not served to go", TIMEOUT, || {
        clean();
        gone("legacy-clients.sock")
    });
    assert!(!gone("telemetry.sock") && !gone("http.sock"));
    service.kill();
    let reported = clean();
    assert!(gone("telemetry.sock") && gone("http.sock"), "{reported:?}");
    assert_eq!(reported.out.matches("sock: no service listens there\n").count(), 2, "{reported:?}");
    assert!(!gone("others.sock") && reported.status == Some(0), "{reported:?}");
}

#[test]
fn nothing_to_clean_is_said_too() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let reported = smi(&root, &["-c"]);
    assert!(
        reported.status == Some(0) && reported.out.ends_with("\nnothing to clean\n"),
        "{reported:?}"
    );
    let plain = smi(&root, &["--json"]);
    assert!(!plain.out.contains("cleaned"), "only when asked to");
}

#[test]
fn what_has_a_name_of_ours_and_is_none_is_removed_for_what_it_is() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let directory = root.join("run/tt");
    fs::write(directory.join("ledger_999999999_7.tt"), "not one").unwrap();
    symlink("/etc/passwd", directory.join("ledger_999999999_8.tt")).unwrap();
    let seen = smi(&root, &["-d"]);
    assert!(seen.out.contains("_8.tt: refused (the ledger is not a regular file"), "{seen:?}");
    let reported = smi(&root, &["-c"]);
    for why in ["_7.tt: it is no ledger, and its", "_8.tt: it is not a regular file, and its"] {
        assert!(reported.out.contains(why), "{reported:?}");
    }
    assert_eq!((reported.status, files(&root)), (Some(0), 0), "{reported:?}");
}

#[test]
fn what_cannot_be_removed_is_counted_and_named() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    // A directory of that name is no ledger, and not even root removes it as a file.
    fs::create_dir_all(root.join("run/tt/ledger_999999999_7.tt")).unwrap();
    let reported = smi(&root, &["-c"]);
    assert!(
        reported.out.contains("left ") && reported.out.contains("cannot remove it"),
        "{reported:?}"
    );
    assert_eq!(reported.status, Some(1), "{reported:?}");
    let object: Value = serde_json::from_str(&smi(&root, &["-c", "--json"]).out).unwrap();
    assert_eq!(object["cleaned"]["failed"], 1, "{object}");
}
