//! Files of older versions, read by the commands that read them for people.

use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use telltale_ledger::LedgerReader;
use telltale_schema::snapshot::Snapshot;
use telltale_wire::Reply;

use crate::corpus::entry::Entry;
use crate::corpus::fits::assert_fits;

/// A command over the files, and the lines of JSON that it printed when they were made.
#[derive(Deserialize)]
struct RecordedCommand {
    arguments: Vec<String>,
    printed: Vec<Value>,
}

/// The lines of JSON that a command prints.
#[track_caller]
pub(crate) fn printed(command: &mut Command) -> Vec<Value> {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (out, err) = (out.unwrap(), err.unwrap());
    // 1 says that not all is well with what is shown, as several processes of one name are.
    let is_done = matches!(output.status.code(), Some(0 | 1));
    assert!(is_done && err.is_empty(), "{command:?}: {}{err}", output.status);
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn commands_print_what_they_printed_when_the_files_were_written() {
    for entry in Entry::all() {
        let commands: Vec<RecordedCommand> = entry.json("commands.json");
        assert!(commands.len() >= 7, "{}: {}", entry.name, commands.len());
        let place = entry.path("");
        for told in commands {
            let place = place.to_str().unwrap().trim_end_matches('/');
            let arguments = told.arguments.iter().map(|word| word.replace("{entry}", place));
            let found = printed(entry.telltale().args(arguments));
            let of = format!("{}: telltale {}", entry.name, told.arguments.join(" "));
            assert_fits(&Value::Array(told.printed), &Value::Array(found), &of);
        }
    }
}

#[test]
fn snapshots_are_read_and_written_as_they_were() {
    for entry in Entry::all() {
        for machine in ["n300.json", "p150.json", "t3000.json"] {
            let snapshot: Snapshot = entry.json(machine);
            assert_eq!(snapshot.check(), Ok(()), "{}: {machine}", entry.name);
            let found = serde_json::to_value(snapshot).unwrap();
            assert_fits(&entry.json(machine), &found, &format!("{}: {machine}", entry.name));
        }
    }
}

#[test]
fn a_process_is_known_by_its_ledger_and_its_answer() {
    for entry in Entry::all() {
        let file = std::fs::File::open(entry.path("ledger.tt")).unwrap();
        let mut ledger = LedgerReader::from_descriptor(file.into()).unwrap();
        let ledger = ledger.read().unwrap().clone();
        let Ok(Reply::Report(report)) = Reply::decode(&entry.bytes("endpoint.bin")) else {
            panic!("{}: no report", entry.name)
        };
        assert_eq!((report.identity, &report.name), (ledger.owner, &ledger.name));
        assert_eq!(report.runtime, ledger.runtime);
        assert_eq!(ledger.devices.len(), 1, "{}", entry.name);
        let live: u64 = ledger.usage.iter().map(|(_, _, usage)| usage.live_bytes).sum();
        assert!(live > 1 << 20, "{}: {live}", entry.name);
        let kinds: Vec<_> = ledger.usage.iter().map(|(_, kind, _)| *kind).collect();
        let told: Vec<_> = report.devices[0].kinds.iter().map(|one| one.kind).collect();
        assert_eq!(told, kinds, "{}", entry.name);
        assert!(!report.metrics.is_empty() && ledger.unknown_cells == 0, "{}", entry.name);
    }
}
