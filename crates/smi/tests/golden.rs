//! What snapshots look like, to the character: made by hand, because most of what they hold a
//! healthy machine never shows. The expected pages are files beside this one; after a wanted
//! change, `TELLTALE_WRITE_PAGES=1 cargo test -p telltale-smi` rewrites them, for review.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod device_rows;
mod filled;
mod fleets;
mod monitors;
mod panes;
mod process_page;
mod process_table;
mod screens;
mod selecting;
mod snapshots;

use std::fs;
use std::path::Path;

use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::history::{PastProcess, ProcessReport};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Holder, RecordingFaults, Snapshot};
use telltale_smi::{Style, choices, csv, details, overview, overview_within, summary};
use unicode_width::UnicodeWidthStr;

use snapshots::{empty, idle_device, troubled};

/// Compares `page` with the expected one in `pages/<name>.txt`.
#[track_caller]
fn check(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/pages/{name}.txt"));
    if std::env::var_os("TELLTALE_WRITE_PAGES").is_some_and(|value| value == "1") {
        fs::write(&path, page).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(page == expected, "{name} is now:\n{page}\nand was to be:\n{expected}");
}

fn style(width: usize) -> Style {
    Style { width: Some(width), color: false, unicode: true }
}

#[test]
fn the_tables_fit_every_width() {
    let snapshot = troubled();
    check("overview", &overview(&snapshot, &Style::PLAIN));
    for width in [120, 80, 60, 40] {
        check(&format!("overview-{width}"), &overview(&snapshot, &style(width)));
    }
}

#[test]
fn idle_devices_make_room_where_the_window_is_low() {
    let mut snapshot = troubled();
    let busy = overview(&snapshot, &Style::PLAIN);
    snapshot.devices.push(idle_device("idle 1"));
    snapshot.devices.push(idle_device("idle 2"));
    let whole = overview(&snapshot, &Style::PLAIN);
    let rows = whole.lines().count();
    assert_eq!(overview_within(&snapshot, rows, &Style::PLAIN), whole);
    let low = overview_within(&snapshot, rows - 1, &Style::PLAIN);
    let words = "2 idle devices are left out; a taller window shows them\n";
    assert_eq!(low.replace(words, ""), busy);
    // One that a process has open is not idle, whatever is in use there.
    snapshot.processes[0].devices[0].device = 2;
    let low = overview_within(&snapshot, 1, &Style::PLAIN);
    assert!(low.contains("\nidle 1 ") && !low.contains("\nidle 2 "), "{low}");
    let alone = Snapshot { devices: vec![idle_device("idle")], ..empty() };
    let low = overview_within(&alone, 1, &Style::PLAIN);
    assert!(low.starts_with("1 idle device is left out; a taller window shows it\n\n"), "{low}");
}

#[test]
fn faults_that_are_alike_are_one_line_and_events_are_none() {
    let with = |id: &str, kind: FaultKind, detail: &str| {
        let mut device = idle_device(id);
        device.faults.push(Fault::new(kind, Timestamp(1), detail.to_owned()));
        device
    };
    let narrow = |id| with(id, FaultKind::PcieWidthBelowSlot, "width 8 of 16");
    let mut devices: Vec<_> = ["a", "b", "c", "d", "e"].map(narrow).into();
    devices.push(with("f", FaultKind::PcieWidthBelowSlot, "width 4 of 16"));
    devices.push(with("g", FaultKind::CameBack, "came back"));
    let fan = Fault {
        part: "fan1".to_owned(),
        ..Fault::new(FaultKind::FanFailed, Timestamp(1), "it stands still".to_owned())
    };
    let page = overview(&Snapshot { devices, faults: vec![fan], ..empty() }, &Style::PLAIN);
    let is_one = |line: &&str| ["width", "back", "fan"].iter().any(|word| line.contains(word));
    let expected =
        ["a, b, c and 2 more: width 8 of 16", "f: width 4 of 16", "fan1: it stands still"];
    assert_eq!(page.lines().filter(is_one).collect::<Vec<_>>(), expected);
}

#[test]
fn who_is_shown_no_process_is_not_told_that_there_is_none() {
    let mut snapshot = Snapshot { withheld_processes: 2, ..empty() };
    let page = overview(&snapshot, &style(100));
    assert!(page.contains("No process that is visible from here holds"), "{page}");
    assert!(page.contains("2 processes of other users are"), "{page}");
    let page = overview(&snapshot, &Style::PLAIN);
    let words =
        "ask at the service's Unix socket as root or a member of its group, or with its token";
    assert!(page.contains(words), "root may be who reads this: {page}");

    let unnamed = Holder { pid: None, open_descriptors: 1, memory_known: false };
    let mut device = idle_device("held");
    device.holders = Reading::new(vec![unnamed], Timestamp(0));
    snapshot.devices.push(device);
    let page = overview(&snapshot, &Style::PLAIN);
    assert!(page.contains("held: held by a process that is not shown to you; its"), "{page}");
    snapshot.withheld_processes = 0;
    let page = overview(&snapshot, &Style::PLAIN);
    assert!(page.contains("held by a process that is not visible from this PID"), "{page}");
}

#[test]
fn users_without_a_name_are_numbers_where_one_process_is_to_be_chosen() {
    let process = |user: Option<&str>, pid| PastProcess {
        identity: ProcessIdentity { boot_id: [1; 16], pid_namespace: 1, pid, start_time_ticks: 5 },
        key: String::new(),
        pid: Some(pid),
        name: String::from("train"),
        command: None,
        uid: Some(60001),
        user: user.map(str::to_owned),
    };
    let report = |process| ProcessReport {
        process,
        container: None,
        recording_since: None,
        first_seen: Timestamp(0),
        last_seen: Timestamp(0),
        lifetime_seconds: 1.0,
        ending: None,
        ended: None,
        usage: Vec::new(),
        faults: RecordingFaults::default(),
    };
    let found = [report(process(Some("ada"), 7)), report(process(None, 8))];
    let page = choices(&found, &Style::PLAIN);
    let users: Vec<_> =
        page.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(users, ["ada", "60001"], "{page}");
}

#[test]
fn nothing_is_said_in_words() {
    check("overview-of-nothing", &overview(&empty(), &Style::PLAIN));
    let alone = Snapshot { devices: troubled().devices, ..empty() };
    check("overview-without-processes", &overview(&alone, &Style::PLAIN));
}

#[test]
fn the_details_fit_every_width() {
    let snapshot = troubled();
    check("details", &details(&snapshot, &Style::PLAIN));
    for width in [80, 60, 40] {
        check(&format!("details-{width}"), &details(&snapshot, &style(width)));
    }
    check("summary", &summary(&snapshot, &Style::PLAIN));
}

#[test]
fn colour_marks_what_matters_and_ascii_is_enough() {
    let style = Style { width: Some(80), color: true, unicode: false };
    let page = overview(&troubled(), &style) + &details(&troubled(), &style);
    check("colour-80", &page.replace('\x1b', "<ESC>"));
}

#[test]
fn rows_for_programs_have_raw_numbers_and_empty_fields() {
    let snapshot = troubled();
    for (name, text) in [
        ("devices", csv::devices_heading() + &csv::devices(&snapshot)),
        ("processes", csv::PROCESSES_HEADING.to_owned() + &csv::processes(&snapshot)),
    ] {
        assert_eq!(text.matches("\r\n").count(), text.lines().count(), "as RFC 4180 wants");
        check(&format!("csv-{name}"), &text.replace("\r\n", "\n"));
    }
}

#[test]
fn no_line_is_ever_wider_than_asked() {
    let snapshot = troubled();
    // Wrapped text has at least four columns.
    for width in 4..150 {
        let style = style(width);
        let page = [
            overview(&snapshot, &style),
            overview(&empty(), &style),
            details(&snapshot, &style),
            summary(&snapshot, &style),
            telltale_smi::title("12:00:00 UTC. Every 1 s; Ctrl-C ends it.", &style),
            telltale_smi::note("removed /run/tt/metrics_17.sock: process 17 has ended", &style),
        ];
        for line in page.iter().flat_map(|part| part.lines()) {
            assert!(line.width() <= width, "{width}: {line:?}");
        }
    }
}
