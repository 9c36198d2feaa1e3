//! A chip whose firmware has stopped and one that vanishes are reported by every command that shows devices,
//! and a machine that is well is not accused.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use telltale_emulator::{Fault, Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::alerts::webhook;
use crate::cli::command::{Said, TIMEOUT, emulate, said, telltale};
use crate::cli::serve::Serving;

/// Fires at once, so that no test waits, and takes a moment to clear.
const RULES: &str = "\
interval_seconds = 0.1
[http]
listen = []
[[alerts.rule]]
name = \"heartbeat_stopped\"
for_seconds = 0
clear_for_seconds = 1
[[alerts.rule]]
name = \"device_vanished\"
for_seconds = 0
clear_for_seconds = 1
";

const STANDS_STILL: &str = "its heartbeat stands still at ";
const NOT_SAMPLED: &str = "No service answered: run `telltale smi -d` or `telltale alerts` to look for stopped heartbeats.";
const NOT_LISTED: &str = "the driver does not list it any more";

fn command(place: &Scratch, arguments: &[&str]) -> Said {
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    said(command.args(arguments).arg("--root").arg(place.join("m")))
}

fn machine(root: &Path) -> Machine {
    Machine::create(root, MachineKind::N300, &MachineOptions::default()).unwrap()
}

fn serve(place: &Scratch, root: &Path, configuration: &str) -> Serving {
    let file = place.join("t.toml");
    fs::write(&file, configuration).unwrap();
    let mut serve = telltale();
    serve.env("HOME", place.path()).arg("serve").arg("--root").arg(root);
    serve.arg("--state-dir").arg(place.join("state")).arg("--config").arg(&file);
    Serving::start(&mut serve)
}

#[test]
fn firmware_that_has_stopped_is_reported_by_one_sample_of_every_command() {
    let place = Scratch::new();
    // Its heartbeats do not count.
    let _machine = machine(&place.join("m"));
    let alerts = command(&place, &["alerts"]);
    assert_eq!(alerts.status, Some(1), "{alerts:?}");
    let words = "its heartbeat stands still at ";
    assert!(alerts.out.contains("heartbeat_stopped") && alerts.out.contains(words), "{alerts:?}");
    let state = place.join("state");
    let doctor = command(&place, &["doctor", "--state-dir", state.to_str().unwrap()]);
    assert_eq!(doctor.status, Some(2), "{doctor:?}");
    assert!(doctor.out.contains("2 found, the firmware of 1 has stopped"), "{doctor:?}");
    assert!(doctor.out.contains(words) && doctor.out.contains("> tt-smi -r 0"), "{doctor:?}");
    let smi = command(&place, &["smi", "-d"]);
    assert!(smi.out.contains("health") && smi.out.contains(words), "{smi:?}");
    assert!(smi.out.contains("health                failed since 20"), "{smi:?}");
    let fields = "--query-device=device,health,health_cause,health_since";
    let chosen = command(&place, &["smi", fields, "--format=csv,noheader"]);
    let rows: Vec<Vec<&str>> = chosen.out.lines().map(|line| line.split(',').collect()).collect();
    // Of the remote chip the driver shows nothing.
    let states: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(states, ["failed", "unknown"], "{chosen:?}");
    assert!(rows[0][2].contains(words), "{chosen:?}");
    let failed = command(&place, &["smi", "--filter", "health == failed", "--query-device=device"]);
    assert_eq!(failed.out.lines().count(), 2, "a heading and one device: {failed:?}");
}

#[test]
fn firmware_that_runs_is_not_accused() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n300", &root, &[]);
    for arguments in [&["alerts"][..], &["smi", "-d"]] {
        let said = command(&place, arguments);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert!(!said.out.contains("stopped") && !said.out.contains("stands still"), "{said:?}");
    }
    let chosen = command(&place, &["smi", "--query-device=health", "--format=csv,noheader"]);
    assert_eq!(chosen.out, "ok\r\nunknown\r\n", "{chosen:?}");
    let state = place.join("state");
    let doctor = command(&place, &["doctor", "--state-dir", state.to_str().unwrap()]);
    assert!(doctor.out.contains("2 found, all with sensors but 1 remote chip\n"), "{doctor:?}");

    // A chip without a heartbeat is no fault either.
    let old = Scratch::new();
    let mut machine = machine(&old.join("m"));
    let attribute = String::from("tt_heartbeat");
    machine.inject(Fault::Missing { ordinal: 0, attribute }).unwrap();
    let alerts = command(&old, &["alerts"]);
    assert_eq!(alerts.status, Some(0), "{alerts:?}");
}

#[test]
fn a_service_reports_a_stopped_heartbeat_and_a_vanished_chip_and_of_their_end() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine = machine(&root);
    let (url, bodies) = webhook();
    let rules = format!("{RULES}[alerts.webhook]\nurl = \"{url}\"\n");
    let mut service = serve(&place, &root, &rules);
    let line = service.says("alert heartbeat_stopped fires: device ");
    assert!(line.contains(" error: ") && line.contains(STANDS_STILL), "{line}");
    let asked = command(&place, &["alerts"]);
    assert!(asked.status == Some(1) && asked.out.contains("heartbeat_stopped"), "{asked:?}");
    // The first only sets the beginning.
    for now_ns in [0, 60_000_000_000] {
        machine.tick(now_ns, &[]).unwrap();
    }
    // While it clears, and when it is resolved, it is still what it was.
    let ticked = Instant::now();
    while ticked.elapsed() < Duration::from_secs(1) {
        let shown = command(&place, &["alerts"]);
        assert!(shown.status == Some(0) || shown.out.contains(STANDS_STILL), "{shown:?}");
    }
    let line = service.says("alert heartbeat_stopped is resolved; it was: device ");
    assert!(line.contains(STANDS_STILL), "{line}");

    // One that stops again, and then vanishes: its heartbeat is over.
    service.says("alert heartbeat_stopped fires: device ");
    let vanish = Fault::Vanish { ordinal: 0, returns_as: None };
    machine.inject(vanish.clone()).unwrap();
    let line = service.says("alert device_vanished fires: device ");
    assert!(line.contains(NOT_LISTED), "{line}");
    let asked = command(&place, &["alerts"]);
    assert!(asked.status == Some(1) && asked.out.contains("device_vanished"), "{asked:?}");
    let doctor = command(&place, &["doctor", "--state-dir", place.path().to_str().unwrap()]);
    assert!(doctor.out.contains(NOT_LISTED), "{doctor:?}");
    let line = service.says("alert heartbeat_stopped is resolved; it was: device ");
    assert!(line.contains(STANDS_STILL), "{line}");
    machine.clear(&vanish).unwrap();
    let line = service.says("alert device_vanished is resolved; it was: device ");
    assert!(line.contains(NOT_LISTED), "{line}");

    let mut notices = std::iter::from_fn(|| bodies.recv_timeout(TIMEOUT).ok())
        .flat_map(|body| body["notices"].as_array().cloned().unwrap_or_default())
        // The other chip of the board vanishes with it.
        .filter(|notice| notice["alert"]["subject"]["device"] == "251732099");
    for (event, rule, words) in [
        ("fired", "heartbeat_stopped", STANDS_STILL),
        ("resolved", "heartbeat_stopped", STANDS_STILL),
        ("fired", "heartbeat_stopped", STANDS_STILL),
        ("fired", "device_vanished", NOT_LISTED),
        ("resolved", "heartbeat_stopped", STANDS_STILL),
        ("resolved", "device_vanished", NOT_LISTED),
    ] {
        let notice = notices.next().unwrap();
        assert_eq!((&notice["event"], &notice["alert"]["rule"]), (&event.into(), &rule.into()));
        let text = notice["alert"]["text"].as_str().unwrap();
        assert!(text.contains(words) && notice["alert"]["value"] == 1.0, "{notice}");
    }
    service.end();
}

#[test]
fn a_chip_that_vanished_hides_none_whose_firmware_has_stopped() {
    let place = Scratch::new();
    let root = place.join("m");
    let options = MachineOptions::default();
    let mut machine = Machine::create(&root, MachineKind::GalaxyWormhole, &options).unwrap();
    let mut service = serve(&place, &root, RULES);
    service.says("alert heartbeat_stopped fires: device ");
    machine.inject(Fault::Vanish { ordinal: 7, returns_as: None }).unwrap();
    service.says("alert device_vanished fires: device ");
    let doctor = command(&place, &["doctor", "--state-dir", place.path().to_str().unwrap()]);
    let words = "32 found, the firmware of 31 has stopped, 1 of them vanished";
    assert!(doctor.status == Some(2) && doctor.out.contains(words), "{doctor:?}");
    service.end();
}

#[test]
fn one_sample_says_in_every_form_what_the_service_has_found_by_watching() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine = machine(&root);
    let smi = |arguments: &[&str]| command(&place, &[&["smi"], arguments].concat());
    let says = |arguments: &[&str], words: &str| {
        // A service that is too busy to answer at once is not waited for.
        wait_until(&format!("smi {arguments:?} to say {words:?}"), TIMEOUT, || {
            smi(arguments).out.contains(words)
        });
    };
    let chosen = ["--query-device", "device,fault", "--format", "csv,noheader"];
    let alone = smi(&[]);
    assert!(!alone.out.contains("stands still"), "one look alone cannot know: {alone:?}");
    // It says who can, and nothing of that to a program.
    assert!(alone.out.ends_with(&format!("\n{NOT_SAMPLED}\n")), "{alone:?}");
    for arguments in [&["-d"][..], &["--json"], &["--csv"], &["--csv", "-d"]] {
        let said = smi(arguments);
        assert!(!said.out.contains("No service") && said.err.is_empty(), "{said:?}");
    }
    // Who asks for it by name is worth a longer look.
    assert_eq!(smi(&chosen).out, "251732099,heartbeat_stopped\r\n251732099R,\r\n");

    let mut service = serve(&place, &root, RULES);
    service.says("alert heartbeat_stopped fires: device ");
    says(&[], "251732099: its heartbeat stands still at ");
    assert!(!smi(&[]).out.contains("No service"), "the service has watched them");
    says(&["--plain", "-d"], "251732099: its heartbeat stands still at ");
    says(
        &["--json"],
        "\"faults\":[{\"kind\":\"heartbeat_stopped\",\"state\":\"failed\",\"since\":1",
    );
    says(&["--csv"], ",heartbeat_stopped\r\n");
    says(&chosen, "251732099,heartbeat_stopped\r\n251732099R,\r\n");
    says(&["--csv", "--filter", "fault == heartbeat_stopped"], ",heartbeat_stopped\r\n");
    let healthy = smi(&["--csv", "--filter", "fault is absent"]);
    assert!(!healthy.out.contains("heartbeat_stopped"), "{healthy:?}");

    let vanish = Fault::Vanish { ordinal: 0, returns_as: None };
    machine.inject(vanish.clone()).unwrap();
    service.says("alert device_vanished fires: device ");
    says(&[], "251732099, 251732099R: the driver does not list it any more");
    says(&["--json"], "\"kind\":\"vanished\"");
    says(&chosen, "251732099,vanished\r\n251732099R,vanished\r\n");

    // What has ended is not said, though the service may not have looked since.
    machine.clear(&vanish).unwrap();
    let back = smi(&chosen);
    assert!(!back.out.contains("vanished"), "{back:?}");
    service.end();
    assert!(!smi(&[]).out.contains("stands still"), "nobody knows it any more");
}

#[test]
fn what_only_time_shows_is_in_every_form_of_one_sample() {
    let place = Scratch::new();
    let root = place.join("m");
    let options = MachineOptions::default();
    let mut machine = Machine::create(&root, MachineKind::P150, &options).unwrap();
    let mut service = serve(&place, &root, RULES);
    service.says("alert heartbeat_stopped fires: device ");
    machine.inject("trip:0".parse().unwrap()).unwrap();
    service.says("alert thermal_trip fires: device ");
    // Some of these do not read the counter: what the service found holds all the same.
    for (arguments, words) in [
        (&[][..], "thermal trips rose from"),
        (&["-d"], "thermal trips rose from"),
        (&["--csv"], "thermal_trip"),
        (&["--json"], "\"kind\":\"thermal_trip\""),
        (&["--query-device", "device,fault", "--format", "csv,noheader"], "thermal_trip"),
        (&["--csv", "--filter", "health == failed"], "thermal_trip"),
    ] {
        wait_until(&format!("smi {arguments:?} to say {words:?}"), TIMEOUT, || {
            command(&place, &[&["smi"], arguments].concat()).out.contains(words)
        });
    }
    service.end();
}

#[test]
fn a_view_that_stays_keeps_the_row_of_a_chip_that_vanished() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine = machine(&root);
    let mut command = telltale();
    command.args(["smi", "-w", "0.1", "--plain", "--root"]).arg(&root);
    let mut watched = crate::cli::command::Running::start(&mut command);
    watched.line();
    machine.inject(Fault::Vanish { ordinal: 0, returns_as: None }).unwrap();
    wait_until("the chip to be told of", TIMEOUT, || {
        watched.line().contains("the driver does not list it any more")
    });
}
