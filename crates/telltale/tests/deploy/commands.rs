//! Command lines of the files, as the built program takes them.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// The program's path where it is installed.
pub(crate) const INSTALLED: &str = "/usr/bin/telltale";
/// The same of those that run for long.
pub(crate) const SERVE: &str = "/usr/bin/telltale-serve";
pub(crate) const TOP: &str = "/usr/bin/telltale-top";
pub(crate) const AGENT: &str = "/usr/bin/telltale-agent";
pub(crate) const COORDINATOR: &str = "/usr/bin/telltale-coordinator";

/// The built program for one that is installed.
pub(crate) fn built(installed: &str) -> &'static str {
    match installed {
        INSTALLED => env!("CARGO_BIN_EXE_telltale"),
        SERVE => env!("CARGO_BIN_EXE_telltale-serve"),
        TOP => env!("CARGO_BIN_EXE_telltale-top"),
        AGENT => env!("CARGO_BIN_EXE_telltale-agent"),
        COORDINATOR => env!("CARGO_BIN_EXE_telltale-coordinator"),
        _ => panic!("{installed} is not installed"),
    }
}

/// The configuration that a service with these words and variables would have, by key.
pub(crate) type Shown = BTreeMap<String, Value>;

/// The built program with these variables and no other of its own.
pub(crate) fn telltale(variables: &[(String, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Asserts that the service's program with these words makes sense, and gives what it comes to.
#[track_caller]
pub(crate) fn serves(words: &[String], variables: &[(String, String)]) -> Shown {
    let [program, rest @ ..] = words else { panic!("{words:?} is too short") };
    assert_eq!(program, SERVE);
    let mut command = telltale(variables);
    let output = command.args(["config", "show", "--json"]).args(rest).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    // An unread variable is reported there.
    assert!(output.status.success() && err.is_empty(), "{words:?}: {err}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let key = |row: &Value| row["key"].as_str().unwrap().to_owned();
    rows.iter().map(|row| (key(row), row["value"].clone())).collect()
}

/// Asserts that a probe's words are those of `telltale health`.
#[track_caller]
pub(crate) fn probes(words: &[String]) {
    let [program, health, rest @ ..] = words else { panic!("{words:?} is too short") };
    assert_eq!((program.as_str(), health.as_str()), (INSTALLED, "health"));
    let output = telltale(&[]).arg("health").args(rest).output().unwrap();
    // Whether a service runs here is not what is asked.
    assert!(matches!(output.status.code(), Some(0..=2)), "{words:?}: {output:?}");
}
