//! A node's health as Kubernetes' node-problem-detector takes it: the configuration by the fields and rules of its
//! `pkg/custompluginmonitor/types` (v0.8), and what the plugin says to it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;
use telltale_harness::Scratch;

use crate::deploy::files::{deploy, text};

/// Fields of `CustomPluginConfig`, of its `pluginConfig`, of a condition and of a rule.
const CONFIGURATION: [&str; 6] =
    ["plugin", "pluginConfig", "source", "conditions", "rules", "metricsReporting"];
const PLUGIN: [&str; 6] = [
    "invoke_interval",
    "timeout",
    "max_output_length",
    "concurrency",
    "enable_message_change_based_condition_update",
    "skip_initial_status",
];
const CONDITION: [&str; 3] = ["type", "reason", "message"];
const RULE: [&str; 7] =
    ["type", "condition", "reason", "path", "args", "timeout", "invoke_interval"];

fn configuration() -> Value {
    serde_json::from_str(&text("kubernetes/node-problem-detector.json")).unwrap()
}

#[track_caller]
fn has_only(value: &Value, fields: &[&str]) {
    let object = value.as_object().unwrap();
    object.keys().for_each(|key| assert!(fields.contains(&key.as_str()), "no field {key}"));
}

fn seconds(value: &Value) -> u64 {
    value.as_str().unwrap().strip_suffix('s').unwrap().parse().unwrap()
}

#[test]
fn the_configuration_has_known_fields_and_passes_the_rules_of_its_reader() {
    let all = configuration();
    has_only(&all, &CONFIGURATION);
    let plugin = &all["pluginConfig"];
    has_only(plugin, &PLUGIN);
    assert_eq!(all["plugin"], "custom");
    let conditions = all["conditions"].as_array().unwrap();
    conditions.iter().for_each(|condition| has_only(condition, &CONDITION));
    for rule in all["rules"].as_array().unwrap() {
        has_only(rule, &RULE);
        assert_eq!(rule["type"], "permanent");
        assert!(conditions.iter().any(|one| one["type"] == rule["condition"]), "{rule}");
        assert!(seconds(&rule["timeout"]) <= seconds(&plugin["timeout"]));
        let path = rule["path"].as_str().unwrap();
        assert!(path.ends_with("/telltale-check") && deploy("kubernetes/telltale-check").is_file());
    }
    assert!(seconds(&plugin["timeout"]) < seconds(&plugin["invoke_interval"]));
}

#[test]
fn the_plugin_answers_with_its_status_and_one_line_that_fits() {
    let scratch = Scratch::new();
    let most = configuration()["pluginConfig"]["max_output_length"].as_u64().unwrap();
    let check = |output: &str, status: u8| {
        let telltale = scratch.join("telltale");
        let script = format!("#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit {status}\n");
        fs::write(&telltale, script).unwrap();
        fs::set_permissions(&telltale, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(deploy("kubernetes/telltale-check"));
        let answer = command.env("PATH", path).output().unwrap();
        assert!(answer.stdout.len() <= usize::try_from(most).unwrap());
        (answer.status.code().unwrap(), String::from_utf8(answer.stdout).unwrap())
    };
    let heading = "STATE   SEVERITY  RULE               FOR  WHAT\n";
    let line = |state: &str, severity: &str| {
        format!("{heading}{state}  {severity}  heartbeat_stopped  10s  device 7: it stands still")
    };
    let expected = String::from("heartbeat_stopped device 7: it stands still\n");
    assert_eq!(check(&line("firing", "critical"), 1), (1, expected));
    assert_eq!(check(&line("firing", "warning"), 1), (0, String::new()));
    assert_eq!(check(&line("pending", "critical"), 1), (0, String::new()));
    assert_eq!(check("", 2).0, 2, "it is unknown");
    assert_eq!(check(&(line("firing", "critical") + &"\u{e9}".repeat(500)), 1).0, 1);
}
