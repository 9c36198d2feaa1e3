//! What another user leaves in the runtime directory is noted and makes nothing fail; what is one's
//! own does. Needs root.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::Value;
use telltale_harness::{Scratch, needs_root};

use crate::cli::command::{Said, emulate, said, telltale};

const STRANGER: u32 = 61_001;

fn command(place: &Scratch, arguments: &[&str]) -> Said {
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    said(command.args(arguments).arg("--root").arg(place.join("m")))
}

fn fifo(path: &Path) {
    let (mode, kind) = (rustix::fs::Mode::from_raw_mode(0o666), rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[test]
fn another_users_odd_entries_are_a_note_with_a_count() {
    if !needs_root("cli::strangers::another_users_odd_entries") {
        return;
    }
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let directory = root.join("run/tt");
    let at = |name: &str| directory.join(name);
    fifo(&at("ledger_999999_1.tt"));
    fs::write(at("ledger_999998_1.tt"), "no ledger").unwrap();
    symlink("/etc/passwd", at("metrics_999997.sock")).unwrap();
    let _listener = UnixListener::bind(at("legacy-clients.sock")).unwrap();
    for name in
        ["ledger_999999_1.tt", "ledger_999998_1.tt", "metrics_999997.sock", "legacy-clients.sock"]
    {
        std::os::unix::fs::lchown(at(name), Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let alerts = command(&place, &["alerts"]);
    assert_eq!(alerts.status, Some(0), "{alerts:?}");
    assert_eq!(alerts.out, "No alert is pending or fires.\n");
    let smi = command(&place, &["smi", "-d"]);
    assert_eq!(smi.status, Some(0), "{smi:?}");
    assert!(smi.out.contains("2 of user 61001: not used, the first: ledger_99999"), "{smi:?}");
    assert!(smi.out.contains("1 of user 61001: not used, the first: metrics_"), "{smi:?}");
    assert!(smi.out.contains("legacy-clients.sock: it belongs to user 61001"), "{smi:?}");
    let json: Value = serde_json::from_str(&command(&place, &["smi", "--json"]).out).unwrap();
    let ledgers = json["sources"].as_array().unwrap().iter().find(|one| one["name"] == "ledgers");
    assert_eq!(ledgers.unwrap()["notes"][0]["count"], 2, "{json}");

    // Our own are ours to remove.
    chown(at("ledger_999998_1.tt"), Some(0), Some(0)).unwrap();
    let alerts = command(&place, &["alerts"]);
    assert_eq!(alerts.status, Some(1), "{alerts:?}");
    assert!(alerts.out.contains("source_down"), "{alerts:?}");
}
