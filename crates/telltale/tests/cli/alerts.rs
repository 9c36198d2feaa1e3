//! Alerts end to end: an emulated machine that fills up, the service that notices, who is notified.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Running, Said, TIMEOUT, emulate, said, telltale};
use crate::cli::serve::Serving;

/// A server that takes what is posted to it, one request a connection.
pub(crate) fn webhook() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            socket.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut text = Vec::new();
            let mut buffer = [0; 4096];
            let body = loop {
                let read = socket.read(&mut buffer).unwrap();
                text.extend_from_slice(&buffer[..read]);
                let head = text.windows(4).position(|four| four == b"\r\n\r\n");
                let body = head.map(|end| serde_json::from_slice::<Value>(&text[end + 4..]));
                match body {
                    Some(Ok(body)) => break body,
                    _ => assert!(read > 0, "the request ends early"),
                }
            };
            socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    (url, bodies)
}

fn alerts(place: &Scratch, more: &[&str]) -> Said {
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    command.args(["alerts", "--root"]).arg(place.join("m"));
    command.arg("--config").arg(place.join("t.toml"));
    said(command.args(more))
}

/// Fires as soon as a byte of DRAM is in use.
const RULES: &str = "\
interval_seconds = 0.1
[http]
listen = []
[[alerts.rule]]
name = \"anything\"
condition = \"capacity\"
severity = \"critical\"
above_ratio = 1e-12
clear_ratio = 1e-12
for_seconds = 0
clear_for_seconds = 0
";

#[test]
fn a_machine_that_fills_up_is_reported_and_so_is_its_end() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let (url, bodies) = webhook();
    let file = place.join("t.toml");
    fs::write(&file, format!("{RULES}[alerts.webhook]\nurl = \"{url}\"\n")).unwrap();
    let mut command = telltale();
    command.env("HOME", place.path()).arg("serve").arg("--root").arg(&root);
    command.arg("--state-dir").arg(place.join("state")).arg("--config").arg(&file);
    let mut service = Serving::start(&mut command);
    service.says("collecting each 0.1 s");

    let mut replay = telltale();
    replay.args(["replay", "train", "--loop", "--speed", "0.2", "--root"]).arg(&root);
    let replay = Running::start(&mut replay);
    let line = service.says("alert anything fires: ");
    assert!(line.contains(" error: ") && line.contains("of the dram of device"), "{line}");
    let body = bodies.recv_timeout(TIMEOUT).unwrap();
    let notice = &body["notices"][0];
    assert_eq!((&body["version"], &notice["event"]), (&1.into(), &"fired".into()), "{body}");
    assert_eq!(notice["alert"]["rule"], "anything");

    // The rules are the service's, whatever file is named.
    let mut asked = telltale();
    let asked = said(asked.arg("alerts").arg("--config").arg(&file).arg("--root").arg(&root));
    assert_eq!(asked.status, Some(1), "{asked:?}");
    assert!(asked.err.contains("t.toml is not read"), "{asked:?}");

    // A reload with a rule that is not understood changes nothing.
    fs::write(&file, format!("{RULES}above = 1\n")).unwrap();
    service.hang_up();
    service.says("the configuration stays as it was");
    // What goes on with other rules is not resolved; what its rule no longer covers is.
    fs::write(&file, format!("{RULES}[[alerts.rule]]\nname = \"device_hot\"\ndisabled = true\n"))
        .unwrap();
    service.hang_up();
    let mut seen = String::new();
    while !seen.contains("configuration read again") {
        seen = service.says("");
        assert!(!seen.contains("resolved"), "{seen}");
    }
    drop(replay);
    let line = service.says("alert anything is resolved");
    assert!(line.contains(" info: "), "{line}");
    service.end();
}

#[test]
fn without_a_service_one_sample_reports_what_holds() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    fs::write(place.join("t.toml"), RULES).unwrap();
    let quiet = alerts(&place, &[]);
    assert_eq!(quiet.status, Some(0), "{quiet:?}");
    assert_eq!(quiet.out, "No alert is pending or fires.\n");
    assert!(quiet.err.contains("no service runs here, so this is one sample"), "{quiet:?}");

    let mut replay = telltale();
    replay.args(["replay", "train", "--loop", "--speed", "0.2", "--root"]).arg(&root);
    let _replay = Running::start(&mut replay);
    telltale_harness::wait_until("memory to be in use", TIMEOUT, || {
        let said = alerts(&place, &["--json"]);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        let fires = found["alerts"].as_array().unwrap().iter().any(|one| one["rule"] == "anything");
        assert_eq!(said.status, Some(i32::from(fires)), "{said:?}");
        fires
    });
    let table = alerts(&place, &[]);
    assert_eq!(table.status, Some(1), "{table:?}");
    assert!(table.out.contains("\nfiring  critical  anything"), "{table:?}");
}

#[test]
fn rules_are_tried_on_what_was_recorded() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    fs::write(place.join("t.toml"), RULES).unwrap();
    let recording = place.join("run.tt");
    let record = || {
        let mut command = telltale();
        command.arg("record").arg(&recording).args(["--every", "0.1", "--for", "0.3", "--root"]);
        assert_eq!(said(command.arg(&root)).status, Some(0));
    };
    let replayed = |more: &[&str]| {
        let mut command = telltale();
        command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME");
        command.args(["alerts", "--replay"]).arg(&recording).args(more);
        said(command.arg("--config").arg(place.join("t.toml")))
    };
    record();
    let quiet = replayed(&[]);
    assert_eq!(quiet.status, Some(0), "{quiet:?}");
    assert!(quiet.out.starts_with("No alert fired.\n\n"), "{quiet:?}");
    let mut replay = telltale();
    replay.args(["replay", "train", "--loop", "--speed", "0.2", "--root"]).arg(&root);
    let replay = Running::start(&mut replay);
    let fires = || alerts(&place, &[]).status == Some(1);
    telltale_harness::wait_until("memory to be in use", TIMEOUT, fires);
    record();
    drop(replay);
    telltale_harness::wait_until("memory to be free", TIMEOUT, || !fires());
    record();

    let found = replayed(&["--json"]);
    assert_eq!(found.status, Some(1), "{found:?}");
    let found: Value = serde_json::from_str(&found.out).unwrap();
    let notices = found["notices"].as_array().unwrap();
    let reported = notices.iter().filter(|one| one["alert"]["rule"] == "anything");
    let reported: Vec<[&Value; 2]> = reported.map(|one| [&one["event"], &one["at"]]).collect();
    let [[fired, from], .., [resolved, to]] = reported.as_slice() else { panic!("{notices:?}") };
    assert_eq!([fired.as_str(), resolved.as_str()], [Some("fired"), Some("resolved")]);
    assert!(from.as_u64() < to.as_u64() && to.as_u64() <= found["to"].as_u64(), "{found}");
    assert!(found["alerts"].as_array().unwrap().iter().all(|one| one["rule"] != "anything"));
    let table = replayed(&[]);
    assert!(table.out.contains("  fired     critical  anything"), "{table:?}");
    assert_eq!(replayed(&["--rules"]).status, Some(64));
    assert_eq!(replayed(&["--root", "/"]).status, Some(64));
}

#[test]
fn rules_are_listed_with_where_they_come_from() {
    let place = Scratch::new();
    fs::create_dir(place.join("m")).unwrap();
    let more = "[[alerts.rule]]\nname = \"device_hot\"\nfor_seconds = 7\n";
    fs::write(place.join("t.toml"), format!("{RULES}{more}")).unwrap();
    let table = alerts(&place, &["--rules"]);
    assert_eq!(table.status, Some(0), "{table:?}");
    for words in ["idle_memory", "the program, changed by ", "above_ratio=", "space=dram"] {
        assert!(table.out.contains(words), "{words}: {table:?}");
    }
    let listed: Value = serde_json::from_str(&alerts(&place, &["--rules", "--json"]).out).unwrap();
    let of = |name: &str| listed.as_array().unwrap().iter().find(|one| one["name"] == name);
    assert_eq!(of("device_hot").unwrap()["for_seconds"], 7);
    assert_eq!(of("idle_memory").unwrap()["origin"], "the program");
    let origin = of("anything").unwrap()["origin"].as_str().unwrap();
    assert!(origin.contains("t.toml:"), "{origin}");
    fs::write(place.join("t.toml"), "[[alerts.rule]]\nname = \"device_hot\"\nabove = 1\n").unwrap();
    alerts(&place, &["--rules"]).complains(2, &["t.toml:", "unknown key `above`"]);
}

/// A machine whose firmware has stopped, and its service, with these lines in its configuration.
fn stopped_firmware(place: &Scratch, rules: &str) -> (Machine, Serving) {
    let root = place.join("m");
    let machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let text = format!("interval_seconds = 0.1\n[http]\nlisten = []\n{rules}");
    fs::write(place.join("t.toml"), text).unwrap();
    let mut serve = telltale();
    serve.env("HOME", place.path()).arg("serve").arg("--root").arg(&root);
    serve.arg("--state-dir").arg(place.join("state")).arg("--config").arg(place.join("t.toml"));
    let mut service = Serving::start(&mut serve);
    service.says("collecting");
    (machine, service)
}

/// What `telltale alerts` says of that machine.
fn of_the_service(place: &Scratch, more: &[&str]) -> Said {
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    said(command.args(["alerts", "--root"]).arg(place.join("m")).args(more))
}

#[test]
fn a_service_that_is_stopped_is_not_waited_for_and_one_that_was_killed_is_done_without() {
    let place = Scratch::new();
    let (_machine, service) = stopped_firmware(&place, "");
    let socket = place.join("m/run/tt/telemetry.sock");
    let socket = socket.to_str().unwrap();
    let pid = Pid::from_raw(i32::try_from(service.id()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let late = of_the_service(&place, &[]);
    late.complains(2, &[socket, "did not answer within 2 s", "systemctl status telltale"]);
    service.kill();
    for (more, words) in [(&[][..], "telltale smi -c"), (&["--service"], "telltale smi -c")] {
        let killed = of_the_service(&place, more);
        assert!(killed.err.contains(socket) && killed.err.contains(words), "{killed:?}");
        let is_sampled = killed.err.contains("this is one sample");
        assert_eq!(
            (killed.status, is_sampled),
            if more.is_empty() { (Some(1), true) } else { (Some(2), false) }
        );
        assert_eq!(killed.out.contains("heartbeat_stopped"), is_sampled, "{killed:?}");
    }
    let cleaned = said(telltale().args(["smi", "-c", "--root"]).arg(place.join("m")));
    assert!(!fs::exists(socket).unwrap(), "{cleaned:?}");
    of_the_service(&place, &["--service"]).complains(2, &["no service runs here", socket]);
}

#[test]
fn what_is_pending_is_wrong_already_unless_it_is_for_information_only() {
    for (severity, status) in [("critical", 1), ("info", 0)] {
        let place = Scratch::new();
        let rule = format!(
            "[[alerts.rule]]\nname = \"heartbeat_stopped\"\nfor_seconds = 3600\nseverity = \"{severity}\"\n"
        );
        let (_machine, service) = stopped_firmware(&place, &rule);
        let line = format!("pending  {severity}");
        telltale_harness::wait_until("a pending alert", TIMEOUT, || {
            let said = of_the_service(&place, &[]);
            let is_pending = said.out.contains(&line);
            assert_eq!(said.status, Some(if is_pending { status } else { 0 }), "{said:?}");
            is_pending
        });
        service.end();
    }
}

#[test]
fn rules_of_health_of_the_configuration_hold_for_a_check_by_hand() {
    let place = Scratch::new();
    let options = MachineOptions::default();
    let _machine = Machine::create(&place.join("m"), MachineKind::N150, &options).unwrap();
    let named = place.join("t.toml");
    let own = place.join(".config/telltale/telltale.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    let off = "[[health.rule]]\nname = \"heartbeat_stopped\"\nenabled = false\n";
    let query = ["smi", "--query-device=health", "--format=csv,noheader"];
    let check = |arguments: &[&str]| {
        let mut command = telltale();
        command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME");
        command.env_remove("TELLTALE_CONFIG").args(arguments).arg("--root").arg(place.join("m"));
        said(&mut command)
    };
    let state = place.join("state");
    let doctor = ["doctor", "--state-dir", state.to_str().unwrap()];
    let finds = |is_off: bool| {
        assert_eq!(check(&query).out, if is_off { "ok\r\n" } else { "failed\r\n" });
        assert_eq!(check(&["alerts"]).status, Some(i32::from(!is_off)));
        assert_eq!(check(&doctor).out.contains("stands still"), !is_off);
    };
    finds(false);
    fs::write(&named, off).unwrap();
    let with_file = check(&["alerts", "--config", named.to_str().unwrap()]);
    assert_eq!(with_file.status, Some(0), "{with_file:?}");
    fs::write(&own, off).unwrap();
    finds(true);
    // One that cannot be used is reported, and hides nothing.
    fs::write(&own, "[[health.rule]]\nname = \"heartbeat_stoped\"\n").unwrap();
    finds(false);
    for arguments in [&query[..], &["alerts"], &doctor] {
        let said = check(arguments);
        let lines = said.err.lines().filter(|line| line.contains("built-in rules are used"));
        let lines: Vec<&str> = lines.collect();
        assert!(lines.len() == 1 && lines[0].contains("telltale.toml:2:1"), "{said:?}");
    }
}

#[test]
fn the_variable_of_the_runtime_directory_is_for_every_command() {
    let place = Scratch::new();
    let mut service = Serving::start(&mut crate::cli::serve::serve(&place));
    service.says("collecting");
    for (arguments, words) in [
        (&["health"][..], "serving"),
        (&["doctor"], "answers on"),
        (&["alerts", "--service"], "source_down"),
    ] {
        telltale_harness::wait_until(&format!("{arguments:?} to say {words:?}"), TIMEOUT, || {
            let mut command = telltale();
            command
                .env("TELLTALE_ROOT", place.join("root"))
                .env("TELLTALE_RUNTIME_DIR", place.join("run"));
            said(command.args(arguments)).out.contains(words)
        });
    }
    service.end();
}
