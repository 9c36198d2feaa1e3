//! State that older services and coordinators left, taken over by those of today.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{ChildGuard, Scratch, wait_until};

use crate::corpus::entry::Entry;
use crate::corpus::files::printed;
use crate::corpus::fits::assert_fits;

const DEADLINE: Duration = Duration::from_secs(60);

fn make_private(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    for file in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn a_history_is_gone_on_with() {
    for entry in Entry::all() {
        let place = Scratch::new();
        let root = place.join("m");
        let _machine =
            Machine::create(&root, MachineKind::P150, &MachineOptions::default()).unwrap();
        let history = entry.path("history");
        make_private(&history);
        let report = || {
            let mut command = entry.telltale();
            command.args(["report", "telltale", "--json", "--state-dir"]).arg(&history);
            printed(&mut command).remove(0)
        };
        let before = report();
        let mut service = entry.telltale();
        service.args(["serve", "--http", "off", "--interval", "0.2", "--state-dir"]).arg(&history);
        service.arg("--root").arg(&root).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
        let mut service = ChildGuard::spawn(service.stderr(Stdio::null()));
        let devices = || {
            let mut command = entry.telltale();
            command.args(["history", "--json", "--metric", "power", "--since", "2026-01-01"]);
            printed(command.arg("--state-dir").arg(&history)).remove(0)
        };
        let of_both = |found: &Value| {
            let series = found["series"].as_array().unwrap();
            let ids = series.iter().map(|one| one["device"].as_str().unwrap());
            ids.collect::<std::collections::BTreeSet<_>>().len()
        };
        // Two chips of the n300 that it was written on, and the p150.
        wait_until("new samples", DEADLINE, || of_both(&devices()) == 3);
        service.terminate();
        service.wait_within("the service to end", DEADLINE);
        let names = |found: &Value| -> Vec<Value> {
            let reports = found.as_array().unwrap().iter();
            reports.map(|one| one["process"]["key"].clone()).collect()
        };
        assert_eq!(names(&report()), names(&before), "{}", entry.name);
    }
}

#[test]
fn a_journal_is_taken_over() {
    for entry in Entry::all() {
        let place = Scratch::new();
        let journal = entry.path("journal");
        make_private(&journal);
        let told: Value = entry.json("journal.json");
        let address = format!("unix:{}", place.join("coordinator.sock").display());
        let mut coordinator = entry.telltale();
        coordinator.args(["coordinator", "--job", "corpus", "--nodes", "2", "--no-http"]);
        coordinator.args(["--listen", &address, "--journal"]).arg(&journal);
        let _coordinator = ChildGuard::spawn(coordinator.stderr(Stdio::null()));
        let cluster = |what: &str| {
            let mut command = entry.telltale();
            command.args(["cluster", what, "--json", "--coordinator", &address]);
            command
        };
        wait_until("the coordinator to lead", DEADLINE, || {
            cluster("status").output().unwrap().status.success()
        });
        let status = printed(&mut cluster("status")).remove(0);
        assert_fits(&told["status"], &status, &format!("{}: status", entry.name));
        let incidents = printed(&mut cluster("incidents")).remove(0);
        assert_fits(&told["incidents"], &incidents, &format!("{}: incidents", entry.name));
    }
}
