//! The commands, as different users type them beside a service of another user.

use std::process::Command;

use serde_json::Value;
use telltale_harness::{as_user, wait_until};
use telltale_schema::snapshot::Snapshot;

use crate::attacks::actor::for_everyone;
use crate::attacks::fixture::{ADA, Fixture, MALLORY, TIMEOUT, process, shows_nothing_of_ada};

/// Fires as soon as a byte of DRAM is in use, and of each process that holds any for a while.
const RULES: &str = "\
[[alerts.rule]]
name = \"anything\"
condition = \"capacity\"
severity = \"critical\"
above_ratio = 1e-12
clear_ratio = 1e-12
for_seconds = 0
clear_for_seconds = 0
";

/// What a command ended with, and said.
struct Said {
    status: Option<i32>,
    out: String,
    err: String,
}

/// Runs a command as this user, who has no service and no history of its own.
fn run(fixture: &Fixture, uid: u32, arguments: &[&str]) -> Said {
    let mut command = Command::new(for_everyone(env!("CARGO_BIN_EXE_telltale").as_ref()));
    command.args(arguments).arg("--root").arg(fixture.stage.machine.root());
    command.arg("--runtime-dir").arg(&fixture.stage.run);
    command.env("HOME", fixture.stage.place.path()).env_remove("TELLTALE_STATE_DIR");
    command.env_remove("TT_METRICS_SOCKET_DIR").env_remove("TELLTALE_ROOT");
    let output = as_user(uid, uid, command).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn the_commands_show_each_user_its_own() {
    let Some(fixture) = Fixture::with("the_commands_show_each_user_its_own", |stage, command| {
        let rules = stage.place.join("rules.toml");
        std::fs::write(&rules, RULES).unwrap();
        command.arg("--config").arg(rules);
    }) else {
        return;
    };
    let mallorys = fixture.stage.workload(MALLORY, 5);
    let (hers, his) = (fixture.ada.id().to_string(), mallorys.id().to_string());
    let report = |uid: u32, pid: &str| run(&fixture, uid, &["report", pid, "--json"]);
    wait_until("both to be recorded", TIMEOUT, || {
        report(ADA, &hers).status == Some(0) && report(MALLORY, &his).status == Some(0)
    });
    let history = ["history", "--metric", "live_bytes", "--since", "1m ago", "--json"];
    let past = ["smi", "--at", "0s ago", "--json"];
    let alerts = ["alerts", "--json"];

    // Ada is shown her process, now and then.
    let report_of_hers: Value = serde_json::from_str(&report(ADA, &hers).out).unwrap();
    assert_eq!(report_of_hers["process"]["identity"]["pid"], fixture.ada.id());
    wait_until("her series", TIMEOUT, || run(&fixture, ADA, &history).out.contains(&hers));
    wait_until("her past", TIMEOUT, || {
        let said = run(&fixture, ADA, &past);
        let then: Result<Snapshot, _> = serde_json::from_str(&said.out);
        then.is_ok_and(|then| process(&then, fixture.ada.id()).is_some())
    });

    // Mallory is shown his own, and that there is more.
    let refused = report(MALLORY, &hers);
    assert_eq!((refused.status, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    assert!(refused.err.contains("no process"), "{}", refused.err);
    for arguments in [&history[..], &past, &["history", "--process", &hers], &alerts] {
        let said = run(&fixture, MALLORY, arguments);
        assert!(!said.out.contains(&format!("\"pid\":{hers}")), "{}", said.out);
        shows_nothing_of_ada(&fixture, &said.out);
    }
    let series = run(&fixture, MALLORY, &history);
    assert!(series.out.contains(&his), "{} {}", series.out, series.err);
    let then: Snapshot = serde_json::from_str(&run(&fixture, MALLORY, &past).out).unwrap();
    assert_eq!(then.processes.len(), 1);

    // What is wrong with a device is for everybody.
    for uid in [ADA, MALLORY, 0] {
        let said = run(&fixture, uid, &alerts);
        assert_eq!(said.status, Some(1), "{}", said.err);
        assert_eq!(said.err, "");
        let reported: Value = serde_json::from_str(&said.out).unwrap();
        let fires = |one: &Value| one["rule"] == "anything" && one["state"] == "firing";
        assert!(reported["alerts"].as_array().unwrap().iter().any(fires), "{reported}");
    }
    let table = run(&fixture, MALLORY, &["alerts"]);
    assert!(table.out.contains("firing") && table.out.contains("anything"), "{}", table.out);

    // Without the service, a closed history is said to be one.
    drop(fixture.service);
    let mut command = Command::new(for_everyone(env!("CARGO_BIN_EXE_telltale").as_ref()));
    command.args(["history", "--state-dir"]).arg(&fixture.stage.state);
    command.arg("--runtime-dir").arg(&fixture.stage.run).env("HOME", fixture.stage.place.path());
    let output = as_user(MALLORY, MALLORY, command).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no service answers"), "{said}");
}
