//! `telltale record`, and what `telltale smi --replay` shows of it.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};
use telltale_schema::calendar;
use telltale_schema::snapshot::Snapshot;

use crate::cli::command::{Running, Said, TIMEOUT, said, telltale};

struct Fixture {
    place: Scratch,
    _machine: Machine,
}

impl Fixture {
    fn new() -> Self {
        let place = Scratch::new();
        let root = place.join("m");
        let machine =
            Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
        Self { place, _machine: machine }
    }

    fn record(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = telltale();
        command.arg("record").arg(self.place.join("run.tt")).args(arguments);
        command.arg("--root").arg(self.place.join("m"));
        command
    }

    fn replay(&self, arguments: &[&str]) -> Said {
        replay(&self.place.join("run.tt"), arguments)
    }
}

fn replay(path: &Path, arguments: &[&str]) -> Said {
    said(telltale().arg("smi").arg("--replay").arg(path).args(arguments))
}

fn snapshots(said: &Said) -> Vec<Snapshot> {
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_was_recorded_is_shown_in_every_form_and_at_any_moment() {
    let fixture = Fixture::new();
    let recorded = said(&mut fixture.record(&["--every", "0.1", "--for", "0.5"]));
    assert_eq!((recorded.status, recorded.out.as_str()), (Some(0), ""), "{recorded:?}");
    assert!(recorded.err.contains(" snapshots recorded in "), "{recorded:?}");
    let all = snapshots(&fixture.replay(&["--json", "-w"]));
    assert!(all.len() >= 3, "{}", all.len());
    assert!(all.windows(2).all(|pair| pair[0].taken_at < pair[1].taken_at));
    let last = all.last().unwrap();
    assert_eq!(snapshots(&fixture.replay(&["--json"])), all[all.len() - 1..]);
    let first = snapshots(&fixture.replay(&["--json", "--at", "1h ago"]));
    assert_eq!(first, all[..1]);
    let table = fixture.replay(&["--filter", "temperature is known"]);
    let title = format!("As of {}, recorded: ", calendar::format(last.taken_at));
    assert!(table.out.starts_with(&title), "{table:?}");
    assert!(table.out.contains("1 of 2 devices"), "{table:?}");
    let by_cpu = fixture.replay(&["--filter", "cpu > 1%"]);
    assert!(by_cpu.out.contains("0 of 0 processes match"), "{by_cpu:?}");
    let csv = fixture.replay(&["--csv", "-w"]);
    assert_eq!(csv.out.lines().count(), 1 + 2 * all.len(), "{csv:?}");
    // A recording is added to.
    let again = said(&mut fixture.record(&["--for", "0.1"]));
    assert!(again.err.contains(&format!(" to {} of before in ", all.len())), "{again:?}");
    assert!(snapshots(&fixture.replay(&["--json", "-w"])).len() > all.len());
}

#[test]
fn one_that_is_killed_leaves_whole_snapshots() {
    let fixture = Fixture::new();
    let path = fixture.place.join("run.tt");
    let mut recording = Running::start(&mut fixture.record(&["--every", "0.1"]));
    let has_some = || replay(&path, &["--json", "-w"]).out.lines().count() > 2;
    wait_until("some snapshots", TIMEOUT, has_some);
    said(&mut fixture.record(&[])).complains(2, &["is being recorded by another telltale"]);
    recording.child.kill();
    let there = snapshots(&fixture.replay(&["--json", "-w"])).len();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let torn = fixture.replay(&["--json", "-w"]);
    assert_eq!((torn.status, torn.out.lines().count()), (Some(0), there - 1), "{torn:?}");
    assert!(torn.err.contains("are no whole snapshot"), "{torn:?}");
}

#[test]
fn what_is_behind_its_snapshots_costs_none_of_them() {
    let fixture = Fixture::new();
    let recorded = said(&mut fixture.record(&["--every", "0.1", "--for", "0.3"]));
    assert_eq!(recorded.status, Some(0), "{recorded:?}");
    let path = fixture.place.join("run.tt");
    let whole = fs::read(&path).unwrap();
    let there = snapshots(&fixture.replay(&["--json", "-w"])).len();
    // A power cut may leave zeros, and they are cut off.
    fs::write(&path, [&whole[..], &[0; 5000]].concat()).unwrap();
    let zeros = fixture.replay(&["--json", "-w"]);
    assert_eq!((zeros.status, zeros.out.lines().count()), (Some(0), there), "{zeros:?}");
    assert!(zeros.err.contains("are no whole snapshot"), "{zeros:?}");
    let one = said(&mut fixture.record(&["--for", "0.1", "--every", "60"]));
    assert!(one.err.contains("1 snapshot recorded"), "{one:?}");
    assert_eq!(snapshots(&fixture.replay(&["--json", "-w"])).len(), there + 1);
    // Something else is not: snapshots may be behind it.
    fs::write(&path, [&whole[..], b"notes of mine that are long enough\n"].concat()).unwrap();
    let notes = fixture.replay(&["--json", "-w"]);
    assert_eq!((notes.status, notes.out.lines().count()), (Some(0), there), "{notes:?}");
    let words = ["is not to be added to", "that are no snapshot"];
    said(&mut fixture.record(&["--for", "0.1"])).complains(2, &words);
    let link = fixture.place.join("link.tt");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut command = telltale();
    command.arg("record").arg(&link).args(["--for", "0.1"]);
    said(&mut command).complains(2, &["link.tt is a symbolic link, which is not followed"]);
}

#[test]
fn it_ends_by_a_signal_and_where_it_may_not_grow() {
    let fixture = Fixture::new();
    let mut recording = Running::start(&mut fixture.record(&["--every", "0.1"]));
    let path = fixture.place.join("run.tt");
    wait_until("a snapshot", TIMEOUT, || replay(&path, &["--json"]).status == Some(0));
    let pid = Pid::from_raw(i32::try_from(recording.child.id()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    assert_eq!(recording.status(), Some(0));
    fs::remove_file(&path).unwrap();
    let nothing = replay(&path, &[]);
    nothing.complains(2, &["cannot be replayed", "No such file"]);
    fs::write(&path, "notes of mine\n").unwrap();
    said(&mut fixture.record(&[])).complains(2, &["is not to be added to", "no recording"]);
    replay(&path, &[]).complains(2, &["it is no recording of `telltale record`"]);
    fs::write(&path, "").unwrap();
    replay(&path, &[]).complains(2, &["has no snapshot yet"]);
    for wrong in [["--hosts", "a"], ["--root", "/"]] {
        assert_eq!(replay(&path, &wrong).status, Some(64));
    }
}
