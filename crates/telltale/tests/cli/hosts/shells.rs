//! Machines behind `ssh`, with a program in its place that does what a test wants.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use telltale_collector::clock::SystemClock;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};
use telltale_schema::clock::Clock;
use telltale_schema::fleet::{Fleet, HostState};

use crate::cli::command::{Running, Said, TIMEOUT, said, telltale};

/// A directory with an `ssh` that runs `script` in its shell; the arguments are kept in `seen`.
fn with_ssh(script: &str) -> Scratch {
    let place = Scratch::new();
    let program = place.join("ssh");
    let seen = place.join("seen");
    let text = format!("#!/bin/sh\necho \"$@\" >> {}\n{script}\n", seen.display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn command(place: &Path, list: &str, arguments: &[&str]) -> Command {
    let mut command = telltale();
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).args(["smi", "--hosts", list]).args(arguments);
    command
}

fn hosts(place: &Scratch, list: &str, arguments: &[&str]) -> Said {
    said(&mut command(place.path(), list, arguments))
}

fn reason(said: &Said) -> String {
    let fleet: Fleet =
        serde_json::from_str(&said.out).unwrap_or_else(|it| panic!("{it}: {said:?}"));
    assert_eq!(fleet.hosts[0].state, HostState::Unreachable, "{said:?}");
    fleet.hosts[0].reason.clone().unwrap()
}

/// What the machine at the other end does with the command that it is given.
fn remote(root: &Path) -> String {
    let program = env!("CARGO_BIN_EXE_telltale");
    format!(
        "while [ \"$1\" != -- ]; do shift; done; shift 3; \
         exec {program} \"$@\" --root {}",
        root.display()
    )
}

#[test]
fn a_machine_is_seen_through_a_shell() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
    let ssh = with_ssh(&remote(&root));
    let table = hosts(&ssh, "ssh://ada@node7:2222", &[]);
    assert_eq!((table.status, table.err.as_str()), (Some(0), ""), "{table:?}");
    assert!(table.out.contains("ssh://ada@node7:2222  251732099R"), "{table:?}");
    let seen = fs::read_to_string(ssh.join("seen")).unwrap();
    let wanted =
        "-T -o BatchMode=yes -o ConnectTimeout=2 -p 2222 -- ada@node7 telltale smi --json\n";
    assert_eq!(seen, wanted);
}

#[test]
fn one_session_reports_each_period_and_is_opened_again_when_it_ends() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let ssh = with_ssh(&remote(&root));
    let mut watching =
        Running::start(&mut command(ssh.path(), "ssh://node7", &["--json", "-w", "0.2"]));
    let mut times = std::collections::BTreeSet::new();
    wait_until("three snapshots", TIMEOUT, || {
        let fleet: Fleet = serde_json::from_str(&watching.line()).unwrap();
        times.extend(fleet.hosts[0].snapshot.as_ref().map(|snapshot| snapshot.taken_at));
        times.len() >= 3
    });
    let seen = || fs::read_to_string(ssh.join("seen")).unwrap();
    assert_eq!(seen().lines().count(), 1, "{}", seen());
    assert!(seen().ends_with("telltale smi --json --watch 0.2\n"), "{}", seen());
    let session = crate::cli::command::children(watching.child.id());
    let [session] = session[..] else { panic!("one session: {session:?}") };
    let session = nix::unistd::Pid::from_raw(i32::try_from(session).unwrap());
    nix::sys::signal::kill(session, nix::sys::signal::SIGKILL).unwrap();
    wait_until("another session", TIMEOUT, || seen().lines().count() == 2);
    // A session that lasted is opened again at once, so that no output need say that it ended.
    let reopened = SystemClock.now();
    wait_until("what the other session reports", TIMEOUT, || {
        let fleet: Fleet = serde_json::from_str(&watching.line()).unwrap();
        let taken_at = fleet.hosts[0].snapshot.as_ref().map(|snapshot| snapshot.taken_at);
        fleet.hosts[0].state == HostState::Answering && taken_at > Some(reopened)
    });
    assert_eq!(seen().lines().count(), 2, "{}", seen());
}

#[test]
fn what_goes_wrong_has_its_own_words() {
    let cases = [
        ("echo 'Permission denied (publickey).' >&2; exit 255", "ssh ended: Permission denied"),
        ("exit 3", "ssh ended: exit status: 3"),
        ("echo 'sh: telltale: not found' >&2; exit 127", "telltale: not found"),
        ("echo hello", "what it sent cannot be used"),
        ("echo '{\"schema_version\":1}'", "missing field"),
        ("exec sleep 60", "did not answer within 0.5 s"),
        ("printf 'no end of the line'", "ssh ended"),
        ("yes x | tr -d '\\n'", "it sent more than"),
    ];
    for (script, words) in cases {
        let ssh = with_ssh(script);
        let timeout = if script.starts_with("yes") { "20" } else { "0.5" };
        let said = hosts(&ssh, "ssh://node7", &["--json", "--timeout", timeout]);
        assert_eq!(said.status, Some(2), "{script}: {said:?}");
        assert!(reason(&said).contains(words), "{script}: {said:?}");
    }
    let nothing = Scratch::new();
    let said = said(telltale().env("PATH", nothing.path()).args([
        "smi",
        "--hosts",
        "ssh://node7",
        "--json",
    ]));
    assert!(reason(&said).contains("ssh cannot be started; install it"), "{said:?}");
}
