//! `telltale select`: what a job's runtime reads of the devices that it can have.

use std::process::Command;

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Said, said, telltale};

struct Fixture {
    place: Scratch,
    _machine: Machine,
}

impl Fixture {
    fn new(kind: MachineKind) -> Self {
        let place = Scratch::new();
        let machine = Machine::create(&place.join("m"), kind, &MachineOptions::default()).unwrap();
        Self { place, _machine: machine }
    }

    fn select(&self, arguments: &[&str]) -> Said {
        said(telltale().arg("select").args(arguments).arg("--root").arg(self.place.join("m")))
    }
}

#[test]
fn a_choice_is_printed_for_a_variable_for_a_shell_and_as_json() {
    let fixture = Fixture::new(MachineKind::T3000);
    let plain = fixture.select(&["2"]);
    assert_eq!((plain.status, plain.err.as_str()), (Some(0), ""), "{plain:?}");
    let value = plain.out.trim_end();
    assert_eq!(value.split(',').count(), 2, "{value}");
    let export = fixture.select(&["2", "--export"]).out;
    let mut shell = Command::new("sh");
    let script = format!("{export}\nprintf %s \"$TT_VISIBLE_DEVICES\"");
    assert_eq!(said(shell.args(["-c", &script])).out, value);
    let json: Value = serde_json::from_str(&fixture.select(&["2", "--json"]).out).unwrap();
    assert_eq!(json["variable"], "TT_VISIBLE_DEVICES");
    assert_eq!(json["value"], value);
    assert_eq!(json["devices"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_chosen_is_refused_with_what_to_do() {
    let fixture = Fixture::new(MachineKind::N150);
    let cases: [&[&str]; 3] =
        [&["2"], &["--min-free", "4096GiB"], &["--filter", "temperature > 200C"]];
    for arguments in cases {
        let refused = fixture.select(arguments);
        assert_eq!((refused.status, refused.out.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.err.contains("of 1 devices fit, and"), "{refused:?}");
        assert!(refused.err.contains("ask for fewer"), "{refused:?}");
    }
    let empty = Scratch::new();
    let refused = said(telltale().args(["select", "--root"]).arg(empty.path()));
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.err.contains("telltale doctor"), "{refused:?}");
    assert_eq!(fixture.select(&["0"]).status, Some(64));
    assert_eq!(fixture.select(&["--min-free", "much"]).status, Some(64));
}
