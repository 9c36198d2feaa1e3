//! Which directories a machine takes, and what is left of it.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::fs;
use std::path::Path;

use telltale_emulator::{
    CreateError, Emulator, EmulatorOptions, EmulatorStartError, Machine, MachineKind,
    MachineOptions,
};
use telltale_harness::Scratch;

fn start(root: &Path) -> Result<Emulator, EmulatorStartError> {
    Emulator::start(root, MachineKind::N150, EmulatorOptions::default())
}

#[test]
fn a_directory_with_other_files_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    fs::write(scratch.join("precious"), "x").unwrap();
    let error = start(scratch.path()).unwrap_err();
    assert!(matches!(error, EmulatorStartError::Create(CreateError::NotEmpty(_))), "{error}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[test]
fn two_machines_do_not_share_a_root() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let first = start(&root).unwrap();
    let error = start(&root).unwrap_err();
    assert!(matches!(error, EmulatorStartError::Create(CreateError::InUse(_))), "{error}");
    first.shutdown().unwrap();
    assert!(!root.exists());
    start(&root).unwrap().shutdown().unwrap();
}

#[test]
fn an_existing_directory_stays_when_the_machine_goes() {
    let scratch = Scratch::new();
    start(scratch.path()).unwrap().shutdown().unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    drop(Machine::create(scratch.path(), MachineKind::N150, &MachineOptions::default()).unwrap());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_looks_like_a_machine_is_taken_for_one_only_if_it_has_nothing_else() {
    for (directory, file, is_taken) in [
        ("var/lib/telltale", "var/lib/telltale/history.db", true),
        ("run/tt", "run/tt/ledger", true),
        ("dev/shm", "dev/shm/region", true),
        ("dev", "dev/null", false),
        ("run/lock", "run/lock/x", false),
        ("var/lib/dpkg", "var/lib/dpkg/status", false),
        ("etc", "etc/passwd", false),
        ("var", "var/lib", false),
    ] {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.join(directory)).unwrap();
        fs::write(scratch.join(file), "x").unwrap();
        let started = start(scratch.path());
        assert_eq!(started.is_ok(), is_taken, "{file}");
        if let Ok(emulator) = started {
            let left = emulator.shutdown().unwrap();
            assert_eq!(left.len(), 1, "{file}: {left:?}");
        }
        assert_eq!(fs::read(scratch.join(file)).unwrap(), b"x");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "{file}");
    }
    let scratch = Scratch::new();
    std::os::unix::fs::symlink("/var", scratch.join("var")).unwrap();
    assert!(start(scratch.path()).is_err());
}

#[test]
fn files_of_others_survive_and_the_root_can_be_used_again() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let emulator = start(&root).unwrap();
    let foreign = ["dev/shm/region", "run/tt/ledger", "var"];
    fs::create_dir_all(root.join("var/lib/telltale")).unwrap();
    for name in &foreign[..2] {
        fs::write(root.join(name), "x").unwrap();
    }
    let left = emulator.shutdown().unwrap();
    assert_eq!(left, foreign.map(|name| root.join(name)), "what is left is named");
    assert!(root.join("run/tt/ledger").exists());
    for name in ["sys", ".telltale-emulator"] {
        assert!(!root.join(name).exists(), "{name}");
    }
    let emulator = start(&root).unwrap();
    for name in &foreign[..2] {
        fs::remove_file(root.join(name)).unwrap();
    }
    fs::remove_dir_all(root.join("var")).unwrap();
    assert!(emulator.shutdown().unwrap().is_empty());
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "it was there before this machine");
    // What is no machine's is not written into again.
    let emulator = start(&root).unwrap();
    fs::write(root.join("precious"), "x").unwrap();
    assert_eq!(emulator.shutdown().unwrap(), [root.join("precious")]);
    let error = start(&root).unwrap_err();
    assert!(matches!(error, EmulatorStartError::Create(CreateError::NotEmpty(_))), "{error}");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
}

#[test]
fn what_a_crashed_machine_left_is_replaced() {
    let scratch = Scratch::new();
    // What a kill leaves: the marker without its lock, and a tree.
    for directory in [".telltale-emulator/staging", "sys/class/stale", "run/tt"] {
        fs::create_dir_all(scratch.join(directory)).unwrap();
    }
    fs::write(scratch.join(".telltale-emulator/lock"), "").unwrap();
    fs::write(scratch.join("run/tt/ledger"), "x").unwrap();
    let emulator = start(scratch.path()).unwrap();
    assert!(!scratch.join("sys/class/stale").exists());
    assert!(scratch.join("sys/class/tenstorrent/tenstorrent!0/tt_aiclk").exists());
    assert!(scratch.join("run/tt/ledger").exists(), "it tells of what ran on the machine");
    emulator.shutdown().unwrap();
}
