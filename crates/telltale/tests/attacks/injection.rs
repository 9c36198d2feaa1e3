//! Mallory chooses names, labels and texts so that they become something else where they are shown.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use serde_json::json;
use telltale_harness::exposition::{parse, promtool};
use telltale_harness::{as_user, skip, wait_until};
use telltale_schema::snapshot::{MetricSample, MetricValue};

use crate::attacks::actor::{Actor, for_everyone};
use crate::attacks::asking;
use crate::attacks::fixture::{ADA, Fixture, MALLORY, SERVICE, TIMEOUT, TOKEN};

/// Texts that end a line, a string, an event or a terminal's mood, or turn a line around.
const HOSTILE: [&str; 9] = [
    "line\nforged_total 1\n",
    "quote\"} 1\nforged_total{a=\"",
    "back\\slash\\",
    "back\\\nforged_total 1",
    "carriage\r\nforged_total 1\r\n\r\nevent: forged\ndata: {}\n\n",
    "escape \u{1b}[2J\u{1b}]0;forged\u{7}",
    "turned \u{202e}around \u{2066}x",
    "nothing \0 after",
    "</script><script>alert(1)</script>",
];

/// Metrics whose every part is hostile.
pub(crate) fn metrics() -> Vec<MetricSample> {
    let sample = |name: &str, label: (&str, &str), text: &str| MetricSample {
        name: name.to_owned(),
        help: text.to_owned(),
        unit: text.to_owned(),
        labels: vec![(label.0.to_owned(), label.1.to_owned())],
        value: MetricValue::Gauge(1.0),
    };
    let long = "é".repeat(128);
    let mut all = Vec::new();
    for text in HOSTILE {
        all.push(sample(text, ("a", "b"), "A name."));
        all.push(sample("of_label", (text, "b"), "A label."));
        all.push(sample("of_value", ("a", text), "A value."));
    }
    for (number, text) in HOSTILE.into_iter().enumerate() {
        all.push(sample(&format!("of_help_{number}"), ("a", "b"), text));
    }
    // Labels and names that mean something to others.
    for label in ["le", "__name__", "quantile", "job", "instance", "process", "user", "device"] {
        all.push(sample(&format!("of_{label}"), (label, "60001"), "A label of another's."));
    }
    for name in ["up", "telltale_device_temperature_celsius", "telltale_source_up", "many_total"] {
        all.push(sample(name, ("device", "261732099"), "A name of another's."));
    }
    all.push(sample("of_length", ("a", &long), "A long one."));
    all
}

/// Mallory's program with hostile names everywhere, and its pid.
fn hostile(fixture: &Fixture) -> (Actor, Actor) {
    let part = json!({ "role": "endpoint", "bytes": 0, "metrics": "hostile",
        "name": HOSTILE[4] });
    // Its command line is longer than is ever read.
    let first = HOSTILE.concat().replace('\0', " ") + &"é".repeat(4096);
    let mut liar = Actor::named(MALLORY, &fixture.part(part), Some(&first));
    liar.says();
    let part = json!({ "role": "ledger", "bytes": 0, "name": HOSTILE[1] });
    let mut second = fixture.mallory(part);
    second.says();
    let pids = [liar.id(), second.id()];
    wait_until("both to be shown", TIMEOUT, || {
        let whole = fixture.whole();
        pids.iter().all(|pid| whole.processes.iter().any(|one| one.pid == Some(*pid)))
    });
    (liar, second)
}

#[test]
fn nothing_that_a_process_chooses_becomes_a_line_of_metrics() {
    let Some(fixture) = Fixture::set("nothing_that_a_process_chooses_becomes_a_line") else {
        return;
    };
    let _liars = hostile(&fixture);
    fixture.metric_reaches("telltale_series_dropped_total", &[("reason", "malformed")], 1.0);
    let token = format!("Authorization: Bearer {TOKEN}");
    let open = "Accept: application/openmetrics-text;version=1.0.0";
    let address = fixture.service.http.unwrap();
    for (lines, is_open) in [(vec![token.as_str()], false), (vec![token.as_str(), open], true)] {
        let text = asking::get(address, "/metrics", &lines).body;
        let families = parse(&text, is_open).unwrap();
        for family in &families {
            assert!(family.name.starts_with("telltale_"), "{}", family.name);
            for sample in &family.samples {
                let is_his = sample.name.starts_with("telltale_application_of_");
                let user = sample.labels.get("user").map(String::as_str);
                assert!(!is_his || user == Some("60002"), "{sample:?}");
            }
        }
        let devices = families.iter().find(|one| one.name == "telltale_device_temperature_celsius");
        assert_eq!(devices.unwrap().samples.len(), 1);
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{text}");
        assert!(text.contains("of_value"), "what can be shown is shown");
    }
    match promtool(&fixture.get_all("/metrics").body) {
        None => skip("attacks::nothing_that_a_process_chooses", "there is no promtool"),
        Some(said) => assert_eq!(said, ""),
    }
    fixture.still_serves();
}

#[test]
fn nothing_that_a_process_chooses_becomes_json_or_an_event() {
    let Some(fixture) = Fixture::set("nothing_that_a_process_chooses_becomes_json") else { return };
    let _liars = hostile(&fixture);
    let body = fixture.get_all("/api/v1/snapshot").body;
    assert!(!body.contains('\n'));
    let read: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(read["forged"].is_null());
    let mut stream = asking::connect(fixture.service.http.unwrap());
    let head = format!(
        "GET /api/v1/stream HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut data = 0;
    for line in lines.skip_while(|line| !line.is_empty()).skip(1) {
        let known = ["id: ", "event: snapshot", "event: lag", "data: {", "retry: ", ": "];
        assert!(line.is_empty() || known.iter().any(|one| line.starts_with(one)), "{line:?}");
        data += usize::from(line.starts_with("data: {"));
        if data == 3 {
            break;
        }
    }
    // What a browser gets says that it is no page, whatever is in it.
    let answer = fixture.get_all("/api/v1/snapshot");
    let head = answer.head.to_ascii_lowercase();
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
}

#[test]
fn nothing_that_a_process_chooses_reaches_a_terminal() {
    let Some(fixture) = Fixture::set("nothing_that_a_process_chooses_reaches_a_terminal") else {
        return;
    };
    let (liar, _second) = hostile(&fixture);
    let pid = liar.id().to_string();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(for_everyone(env!("CARGO_BIN_EXE_telltale").as_ref()));
        command.args(arguments).arg("--runtime-dir").arg(&fixture.stage.run);
        command
            .arg("--root")
            .arg(fixture.stage.machine.root())
            .env("HOME", fixture.stage.place.path());
        if arguments[0] != "smi" && arguments[0] != "alerts" {
            command.arg("--state-dir").arg(&fixture.stage.state);
        }
        let output = as_user(SERVICE, SERVICE, command).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    wait_until("its report", TIMEOUT, || run(&["report", &pid]).contains(&pid));
    for arguments in [
        &["smi"][..],
        &["smi", "-d"],
        &["smi", "--csv", "-d"],
        &["report", &pid],
        &["history", "--process", &pid, "--since", "1m ago"],
        &["alerts"],
    ] {
        // Rows of CSV end as RFC 4180 has it.
        let text = run(arguments).replace("\r\n", "\n");
        let shown = |letter: char| letter == '\n' || !(letter.is_control() || is_turning(letter));
        let bad: Vec<char> = text.chars().filter(|letter| !shown(*letter)).collect();
        assert!(bad.is_empty(), "{arguments:?} shows {bad:?} in {text}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{text}");
    }
    assert_eq!(fixture.seen_by(ADA).processes.len(), 1);
}

/// Whether a letter changes the direction of others (Unicode's bidirectional controls).
fn is_turning(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
