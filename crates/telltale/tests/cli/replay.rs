//! `telltale replay`: what it refuses, what it measures, and that others see what it records.

use std::fs;
use std::path::Path;

use telltale_harness::{Scratch, wait_until};
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::Snapshot;

use crate::cli::command::{Running, TIMEOUT, emulate, said, snapshot, telltale};

#[test]
fn what_cannot_be_replayed_is_reported_in_one_sentence() {
    let place = Scratch::new();
    let path = |name: &str| place.join(name).to_str().unwrap().to_owned();
    fs::write(path("text"), "this is no trace\n").unwrap();
    // A complete gzip file of nothing.
    fs::write(path("gzip"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0").unwrap();
    fs::write(path("empty"), "").unwrap();
    let cases: [(&[&str], &[&str]); 8] = [
        (&[&path("missing")], &["missing", "No such file", "`train` or `generate`"]),
        (&[&path("text")], &["text is no usable trace", "docs/traces.md"]),
        (&[&path("gzip")], &["gzip is no usable trace", "docs/traces.md"]),
        (&[&path("empty")], &["empty is no usable trace", "docs/traces.md"]),
        (&[&path("")], &["is no usable trace", "Is a directory"]),
        (&["train", "--device", "2"], &["no chip 2", "chips 0 to 1", "--device"]),
        (&["train", "--root", &path("")], &["no emulated machine", "telltale emulate"]),
        (&["train", "--root", &path("nowhere")], &["no emulated machine", "telltale emulate"]),
    ];
    for (arguments, words) in cases {
        said(telltale().arg("replay").args(arguments)).complains(2, words);
    }
}

#[test]
fn at_full_speed_it_reports_what_a_record_costs() {
    let place = Scratch::new();
    let mut command = telltale();
    command.args(["replay", "generate", "--device", "1", "--speed", "max", "--runtime-dir"]);
    let said = said(command.arg(place.path()));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    let mut lines = said.out.lines();
    assert!(lines.next().unwrap().ends_with("on 251732099R"), "{said:?}");
    let (cost, rest) = lines.next().unwrap().split_once(" ns a record (median of ").unwrap();
    assert!(cost.parse::<f64>().unwrap() > 0.0);
    assert!(rest.contains(" rounds of "), "{rest}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "it leaves no file");
}

/// The bytes that the process `pid` has on the device `id`, by space.
fn held(snapshot: &Snapshot, pid: u32, id: &str, space: MemorySpace) -> u64 {
    let process = snapshot.processes.iter().find(|process| process.pid == Some(pid));
    let held = process.into_iter().flat_map(|process| &process.devices);
    let there = held.filter(|held| snapshot.devices[held.device].id == id);
    let kinds = there.flat_map(|held| &held.kinds).filter(|one| one.kind.space() == space);
    kinds.map(|one| one.usage.live_bytes()).sum()
}

fn used(snapshot: &Snapshot, id: &str, space: MemorySpace) -> Option<u64> {
    let device = snapshot.devices.iter().find(|device| device.id == id)?;
    device.space(space)?.used_bytes.value().copied()
}

fn replay(root: &Path, device: &str) -> Running {
    let mut command = telltale();
    command.args(["replay", "train", "--loop", "--speed", "0.2", "--device", device]);
    Running::start(command.arg("--root").arg(root))
}

#[test]
fn a_paced_replay_is_seen_with_the_right_totals_and_gone_after_a_signal() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("t3000", &root, &[]);
    let mut replays = ["2", "2", "3"].map(|device| replay(&root, device));
    let pids = replays.each_ref().map(|replay| replay.child.id());
    let (local, remote) = ("2517320d4", "2517320d4R");
    wait_until("all three to allocate", TIMEOUT, || {
        let seen = snapshot(&root);
        pids.iter()
            .zip([local, local, remote])
            .all(|(pid, id)| held(&seen, *pid, id, MemorySpace::Dram) > 0)
    });
    let seen = snapshot(&root);
    assert!(!seen.has_errors(), "{:?}", seen.sources);
    for space in [MemorySpace::Dram, MemorySpace::L1] {
        let sum = |id: &str| pids.iter().map(|pid| held(&seen, *pid, id, space)).sum::<u64>();
        assert_eq!(used(&seen, local, space), Some(sum(local)));
        assert_eq!(used(&seen, remote, space), Some(sum(remote)));
    }
    replays[0].child.terminate();
    assert_eq!(replays[0].status(), Some(0));
    let after = snapshot(&root);
    let left: Vec<_> = after.processes.iter().filter_map(|process| process.pid).collect();
    assert!(!left.contains(&pids[0]) && left.contains(&pids[1]), "{left:?}");
    for replay in &mut replays[1..] {
        replay.child.interrupt();
        assert_eq!(replay.status(), Some(0));
    }
    let after = snapshot(&root);
    assert!(after.processes.is_empty(), "{:?}", after.processes);
    assert_eq!(used(&after, local, MemorySpace::Dram), Some(0));
    assert_eq!(fs::read_dir(root.join("run/tt")).unwrap().count(), 0, "no file is left");
}

#[test]
fn the_machine_going_away_ends_it_with_a_sentence() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine = emulate("n150", &root, &[]);
    let mut replay = replay(&root, "0");
    replay.line();
    machine.interrupt();
    assert_eq!(machine.wait_within("the machine to end", TIMEOUT).code(), Some(0));
    assert_eq!(replay.status(), Some(2));
}

#[test]
fn a_pipe_without_a_writer_is_not_waited_for() {
    let place = Scratch::new();
    let pipe = place.join("pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
    for arguments in [&["replay"][..], &["smi", "--replay"], &["top", "--plain", "--replay"]] {
        let mut running = Running::start(telltale().args(arguments).arg(&pipe));
        assert_ne!(running.status(), Some(0), "{arguments:?}");
    }
    // One with a writer is read.
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/generate.trace");
    let program = env!("CARGO_BIN_EXE_telltale");
    let script = format!(
        "(sleep 0.2; cat {trace}) | {program} replay /dev/stdin --speed max --runtime-dir {}",
        place.path().display()
    );
    let read = said(std::process::Command::new("sh").args(["-c", &script]));
    assert_eq!((read.status, read.err.as_str()), (Some(0), ""), "{read:?}");
}
