//! `telltale smi --filter`: the same rows in every form, and the place where a query makes no sense.

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{emulate, replaying, smi};

#[test]
fn every_form_has_the_rows_that_match() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
    let filter = ["--filter", "temperature is known"];
    let table = smi(&root, &filter);
    assert_eq!((table.status, table.err.as_str()), (Some(0), ""), "{table:?}");
    assert!(table.out.contains("251732099 ") && !table.out.contains("251732099R"), "{table:?}");
    assert!(table.out.contains("1 of 2 devices and 0 of 0 processes match"), "{table:?}");
    let json = smi(&root, &["--json", "-f", "device ~ /R$/"]);
    let object: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(object["devices"].as_array().unwrap().len(), 1);
    assert_eq!(object["devices"][0]["id"], "251732099R");
    let csv = smi(&root, &["--csv", "--filter", "board == n150"]);
    assert_eq!((csv.status, csv.out.lines().count()), (Some(0), 1), "{csv:?}");
}

#[test]
fn a_process_is_found_by_what_it_has() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let replay = replaying(&root);
    let pid = replay.child.id();
    let found = |query: &str| {
        let said = smi(&root, &["--csv", "--details", "--filter", query]);
        assert_eq!(said.status, Some(0), "{said:?}");
        said.out.lines().skip(1).count()
    };
    assert!(found(&format!("peak > 1B and pid == {pid} and source == ledger")) > 0);
    assert_eq!(found(&format!("pid == {pid} and uptime > 300d")), 0);
    assert_eq!(found(&format!("not pid == {pid}")), 0);
}

#[test]
fn a_query_that_makes_no_sense_is_shown_with_the_place() {
    let said = smi(Scratch::new().path(), &["--filter", "dram > 2Gi"]);
    assert_eq!((said.status, said.out.as_str()), (Some(64), ""), "{said:?}");
    assert!(said.err.contains("\ndram > 2Gi\n       ^\ncolumn 8: `dram` is an amount"), "{said:?}");
}
