//! The full-screen view where its surroundings are unsteady: it is stopped and goes on, its terminal
//! vanishes or lies, or its source stands still.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, TIMEOUT, children, telltale};
use crate::cli::terminal::{HIDE_CURSOR, SHOW_CURSOR, Terminal};
use crate::cli::top::View;

const ALTERNATE: &str = "\x1b[?1049h";
const MAIN: &str = "\x1b[?1049l";

/// An emulated machine, and a shell on a terminal that runs what `line` makes of the view's command.
struct Fixture {
    _place: Scratch,
    _machine: Machine,
    terminal: Terminal,
}

impl Fixture {
    fn start(test: &str, line: impl Fn(&str) -> String) -> Option<Self> {
        let place = Scratch::new();
        let root = place.join("m");
        let machine =
            Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
        let view = format!(
            "env LC_ALL=C XDG_CONFIG_HOME={0}/c {1} top -w 0.2 --root {0}/m",
            place.path().display(),
            env!("CARGO_BIN_EXE_telltale")
        );
        let shell = format!("sh -c '{}'", line(&view));
        let terminal = Terminal::start(test, (100, 30), &shell, &place)?;
        Some(Self { _place: place, _machine: machine, terminal })
    }

    fn shows(&self, words: &str) {
        wait_until(words, TIMEOUT, || self.terminal.text().contains(words));
    }

    /// The process whose command is the view's.
    fn pid(&self) -> Option<u32> {
        let mut below = vec![self.terminal.child.id()];
        while let Some(pid) = below.pop() {
            let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            if program == Path::new(env!("CARGO_BIN_EXE_telltale")) {
                return Some(pid);
            }
            below.extend(children(pid));
        }
        None
    }
}

/// Whether it runs. An ended process may stay until its status is read.
fn runs(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_takes_it_again() {
    let test = "ctrl_z_gives_the_terminal_back_and_fg_takes_it_again";
    let line = |view: &str| {
        format!("set -m; {view}; echo stopped with $?; stty -a; fg; echo ended with $?; stty -a")
    };
    let Some(mut fixture) = Fixture::start(test, line) else { return };
    fixture.shows("251732099R");
    fixture.terminal.type_in(b"\x1a");
    fixture.shows("stopped with");
    wait_until("the view again", TIMEOUT, || {
        // To go on is also a signal, upon which the terminal is taken again.
        fixture.terminal.text().matches(ALTERNATE).count() >= 2
    });
    // It takes keys as before.
    fixture.terminal.type_in(b"t");
    fixture.shows("TREE");
    fixture.terminal.type_in(b"q");
    fixture.shows("ended with 0");
    let (_, text) = fixture.terminal.end();
    let stopped = text.find("stopped with").unwrap();
    let before = &text[..stopped];
    let given = before.rfind(MAIN).expect("the terminal was given back");
    assert!(before[given..].contains(SHOW_CURSOR), "{before:?}");
    for (at, words) in [(stopped, "stopped"), (text.rfind("ended with").unwrap(), "ended")] {
        let modes: String = text[at..].chars().take(1_500).collect();
        assert!(modes.contains(" icanon") && modes.contains(" echo "), "{words}: {modes}");
    }
    let last = text.rfind(HIDE_CURSOR).unwrap();
    assert!(text[last..].contains(SHOW_CURSOR), "the cursor is back at the end");
}

#[test]
fn a_terminal_that_vanishes_ends_the_view() {
    // With a hangup, and where the view gets none: only reading and writing fail then. (A
    // shell gives what it does not wait for nothing to read, by default.)
    let lines: [fn(&str) -> String; 2] =
        [|view| format!("{view}; exit 7"), |view| format!("setsid {view} <&1 & wait")];
    for line in lines {
        let test = "a_terminal_that_vanishes_ends_the_view";
        let Some(fixture) = Fixture::start(test, line) else { return };
        fixture.shows("251732099R");
        let pid = fixture.pid().expect("the view runs");
        // `script` holds the other side of the terminal.
        let script = i32::try_from(fixture.terminal.child.id()).unwrap();
        kill(Pid::from_raw(script), Signal::SIGKILL).unwrap();
        wait_until("the end of the view", TIMEOUT, || !runs(pid));
    }
}

#[test]
fn a_terminal_may_lie_about_its_size() {
    for (size, words) in [("0 rows 0", "251732099R"), ("1 rows 1", HIDE_CURSOR)] {
        let test = "a_terminal_may_lie_about_its_size";
        let line = |view: &str| format!("stty cols {size}; {view}; echo ended with $?");
        let Some(mut fixture) = Fixture::start(test, line) else { return };
        fixture.shows(words);
        fixture.terminal.type_in(b"q");
        fixture.shows("ended with 0");
    }
    let line = |view: &str| format!("stty cols 65535 rows 65535; {view}; echo ended with $?");
    let Some(mut fixture) = Fixture::start("a_terminal_may_lie_about_its_size", line) else {
        return;
    };
    fixture.shows("251732099R");
    let status = fs::read_to_string(format!("/proc/{}/status", fixture.pid().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kib < 256 << 10, "{kib} KiB, where 65535 x 65535 cells would take gigabytes");
    fixture.terminal.type_in(b"q");
    fixture.shows("ended with 0");
}

#[test]
fn a_view_whose_source_stands_still_reports_it_and_takes_keys() {
    let test = "a_view_whose_source_stands_still_reports_it_and_takes_keys";
    let Some(mut view) = View::open(test, "top -w 0.2 --state-dir $STATE", None) else { return };
    view.shows("251732099R");
    let mut serve = telltale();
    serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]);
    serve.arg(view.place.join("m")).arg("--state-dir").arg(view.place.join("state"));
    let service = Running::start(&mut serve);
    view.shows_again("service");
    // It stands still with its connections open.
    let pid = Pid::from_raw(i32::try_from(service.child.id()).unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    view.shows("NOTHING");
    view.terminal.type_in(b"t");
    view.shows("TREE");
    kill(pid, Signal::SIGCONT).unwrap();
    view.terminal.type_in(b"q");
    view.expect_end();
}
