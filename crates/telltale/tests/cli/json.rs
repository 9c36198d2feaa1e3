//! JSON output fits the published schemas, and has no field that they do not describe: a validator
//! that is not ours says so.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, python_with, wait_until};

use crate::cli::command::{Running, TIMEOUT, emulate, smi, snapshot, telltale};

/// Reads values from standard input, a line each, and says of each line what is wrong with it. No
/// object may have a field that its schema does not name.
const VALIDATE: &str = r#"
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
definitions = schema.get("$defs", {})
parts = set()
for one in definitions.values():
    # What is part of another object is looked at there.
    if "properties" in one:
        parts |= {part["$ref"].split("/")[-1] for part in one.get("anyOf", []) if "$ref" in part}
for name, one in [("", schema), *definitions.items()]:
    if name not in parts and ("properties" in one or "anyOf" in one):
        one["unevaluatedProperties"] = False
kind = jsonschema.validators.validator_for(schema)
assert kind is jsonschema.Draft202012Validator
kind.check_schema(schema)
validator = kind(schema)
for line in sys.stdin:
    errors = [f"{e.json_path}: {e.message[:300]}" for e in validator.iter_errors(json.loads(line))]
    print(json.dumps(errors))
"#;

/// What is wrong with each of these lines by a schema in docs/; none, which is recorded for `test`,
/// where there is no validator.
pub(crate) fn complaints(test: &str, schema: &str, lines: &str) -> Option<Vec<Vec<String>>> {
    let mut command = python_with(test, "jsonschema")?;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(schema);
    command.args(["-c", VALIDATE]).arg(path);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = lines.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "the validator failed");
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Vec<Vec<String>> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len(), lines.lines().count());
    Some(said)
}

#[track_caller]
fn fits(test: &str, lines: &str) {
    assert!(!lines.is_empty());
    let Some(said) = complaints(test, "snapshot.schema.json", lines) else { return };
    assert!(said.iter().all(Vec::is_empty), "{said:#?}");
}

#[test]
fn what_is_printed_of_each_machine_fits_the_schema() {
    let mut lines = String::new();
    for kind in
        [MachineKind::N300, MachineKind::T3000, MachineKind::P150, MachineKind::GalaxyWormhole]
    {
        let place = Scratch::new();
        let root = place.join("m");
        let _machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
        lines += &smi(&root, &["--json"]).out;
        lines += &smi(&root, &["--json", "--clean"]).out;
        lines += &smi(&root, &["--json", "--filter", "temperature > 1000C"]).out;
    }
    lines += &smi(Scratch::new().path(), &["--json"]).out;
    fits("what_is_printed_of_each_machine_fits_the_schema", &lines);
}

#[test]
fn what_is_printed_of_processes_and_of_the_past_fits_the_schema() {
    let test = "what_is_printed_of_processes_and_of_the_past_fits_the_schema";
    let place = Scratch::new();
    let (root, state) = (place.join("m"), place.join("state"));
    let _machine = emulate("n300", &root, &[]);
    let mut command = telltale();
    command.args(["replay", "train", "--loop", "--root"]).arg(&root);
    let mut replay = Running::start(&mut command);
    let mut serve = telltale();
    serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]).arg(&root);
    serve.arg("--state-dir").arg(&state).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
    let _service = Running::start(&mut serve);
    wait_until("a record", TIMEOUT, || {
        snapshot(&root).processes.iter().any(|one| one.known_by.is_some())
    });
    let mut lines = smi(&root, &["--json"]).out;
    let mut past = telltale();
    past.args(["smi", "--at", "now", "--json", "--state-dir"]).arg(&state);
    wait_until("a past", TIMEOUT, || {
        let said = crate::cli::command::said(&mut past);
        if said.status == Some(0) && said.out.contains("\"known_by\"") {
            lines += &said.out;
        }
        lines.lines().count() > 1
    });
    // What a killed process leaves is known too.
    replay.child.kill();
    lines += &smi(&root, &["--json"]).out;
    fits(test, &lines);
}

#[test]
fn the_schema_refuses_what_is_not_a_snapshot() {
    let test = "the_schema_refuses_what_is_not_a_snapshot";
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let right = smi(&root, &["--json"]).out;
    let changes = [
        ("\"schema_version\":1", "\"schema_version\":2"),
        ("\"taken_at\":", "\"taken_at\":\"now\",\"other\":"),
        ("\"absent\":\"unsupported\"", "\"absent\":\"no idea\""),
        ("\"remote\":false", "\"remote\":0"),
        ("\"telemetry\":{", "\"telemetry\":{\"new\":1,"),
    ];
    let mut lines = String::new();
    for (from, to) in changes {
        assert!(right.contains(from), "{from} is not in {right}");
        lines += &right.replacen(from, to, 1);
    }
    let Some(said) = complaints(test, "snapshot.schema.json", &lines) else { return };
    assert!(said.iter().all(|errors| !errors.is_empty()), "{said:#?}");
}
