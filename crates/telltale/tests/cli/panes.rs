//! The panes of the full-screen view on a real terminal, with what they show beside it.

use std::fs::{self, OpenOptions};
use std::io::Write;

use telltale_harness::Scratch;

use crate::top::View;

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
fn without_a_coordinator_or_programs_panes_say_so() {
    let test = "without_a_coordinator_or_programs_panes_say_so";
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
