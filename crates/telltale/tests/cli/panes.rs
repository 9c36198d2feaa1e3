//! The panes of the full-screen view on a real terminal, with what they show beside it.

use std::fs::{self, OpenOptions};
use std::io::Write;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{TIMEOUT, said, telltale};
use crate::cli::terminal::Terminal;
use crate::cli::top::View;

/// A text event as a line of a capture.
fn event(text: &str) -> String {
    format!(r#"{{"kind":"text","type":2,"core":3,"prefix":"note","text":"{text}"}}"#) + "\n"
}

#[test]
fn the_end_of_a_capture_is_followed() {
    let test = "the_end_of_a_capture_is_followed";
    let capture = Scratch::new();
    let file = capture.join("run.jsonl");
    let command = format!("top -w 0.2 --events {}", file.display());
    let Some(mut view) = View::open(test, &command, None) else { return };
    view.shows("251732099R");
    view.terminal.type_in(b"6");
    // A capture that is not there yet is waited for.
    view.shows("waiting");
    fs::write(&file, event("FIRST-OF-ALL")).unwrap();
    view.shows("FIRST-OF-ALL");
    let mut file = OpenOptions::new().append(true).open(&file).unwrap();
    file.write_all(event("ANOTHER\\u001b[2JONE").as_bytes()).unwrap();
    view.shows("ANOTHER?[2JONE");
    view.terminal.type_in(b"q");
    view.expect_end();
}

#[test]
fn a_recording_is_played_and_gone_through() {
    let test = "a_recording_is_played_and_gone_through";
    let place = Scratch::new();
    let root = place.join("m");
    let options = MachineOptions::default();
    let _machine = Machine::create(&root, MachineKind::N300, &options).unwrap();
    let file = place.join("run.tt");
    let mut record = telltale();
    record.args(["record", "--every", "0.1", "--for", "2", "--root"]).arg(&root).arg(&file);
    assert_eq!(said(&mut record).status, Some(0));
    let program = env!("CARGO_BIN_EXE_telltale");
    for command in ["top --replay", "smi -w 0.2 --replay"] {
        let line = format!(
            "sh -c 'env LC_ALL=C XDG_CONFIG_HOME={0}/c {program} {command} {0}/run.tt; \
             echo ended with $?'",
            place.path().display()
        );
        let Some(mut terminal) = Terminal::start(test, (100, 30), &line, &place) else { return };
        let shows = |terminal: &Terminal, words: &str| {
            wait_until(words, TIMEOUT, || terminal.text().contains(words));
        };
        shows(&terminal, "RECORDED");
        shows(&terminal, "251732099R");
        // To the end, which stands still, and then to the beginning.
        terminal.type_in(b"}");
        shows(&terminal, "play");
        let before = terminal.text().len();
        terminal.type_in(b"{");
        wait_until("the first snapshot", TIMEOUT, || {
            // Everything is sent again, also what was there before.
            terminal.type_in(b"\x0c");
            terminal.text().get(before..).is_some_and(|text| text.contains("RECORDED 1 of"))
        });
        terminal.type_in(b"2");
        shows(&terminal, "recording");
        terminal.type_in(b"q");
        shows(&terminal, "ended with 0");
    }
}

#[test]
fn without_a_coordinator_or_programs_panes_report_it() {
    let test = "without_a_coordinator_or_programs_panes_report_it";
    let Some(mut view) = View::open(test, "top --theme monochrome", None) else { return };
    view.shows("251732099R");
    view.terminal.type_in(b"5");
    view.shows("TELLTALE_COORDINATOR");
    view.terminal.type_in(b"4");
    view.shows("telltale-program-cache");
    view.terminal.type_in(b"3");
    view.shows("Ethernet");
    view.terminal.type_in(b"q");
    view.expect_end();
}
