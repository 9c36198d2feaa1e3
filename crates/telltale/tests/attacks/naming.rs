//! Mallory speaks in another process's name.

use serde_json::{Value, json};
use telltale_harness::wait_until;
use telltale_schema::snapshot::ProcessState;

use crate::attacks::actor::Actor;
use crate::attacks::fixture::{
    ADA, ADAS_BYTES, Fixture, MALLORY, TIMEOUT, complaints, process, used,
};

/// Waits until the service complains of what has all of `words`.
#[track_caller]
fn complains(fixture: &Fixture, words: &[&str]) {
    wait_until(&format!("a complaint of {words:?}"), TIMEOUT, || {
        let found = complaints(&fixture.whole());
        found.iter().any(|text| words.iter().all(|word| text.contains(word)))
    });
}

/// Whose process Ada's is, as the service reports it.
fn identity(fixture: &Fixture) -> Value {
    let whole = fixture.whole();
    let found = process(&whole, fixture.ada.id()).unwrap();
    serde_json::to_value(found.identity).unwrap()
}

#[test]
fn a_socket_under_another_processs_name_is_refused() {
    let Some(fixture) = Fixture::set("a_socket_under_another_processs_name_is_refused") else {
        return;
    };
    // A process of hers that has no endpoint, so that its name is free.
    let sleeper = Actor::start(ADA, &fixture.part(json!({ "role": "ledger", "bytes": 30 })));
    let named = sleeper.id();
    fixture.serves_beside(30);
    let before = fixture.metric("telltale_source_notes_total", &[("source", "endpoints")]);
    let identity = identity(&fixture);
    let liars = [
        // As himself under her name, and claiming to be her process.
        json!({ "role": "endpoint", "named": named, "bytes": 999 }),
        json!({ "role": "endpoint", "identity": identity, "bytes": 999 }),
    ];
    for part in liars {
        let mut liar = fixture.mallory(part);
        liar.says();
        complains(&fixture, &["metrics_"]);
        let seen = fixture.seen_by(ADA);
        assert!(!serde_json::to_string(&seen).unwrap().contains("\"live_bytes\":999,"));
        fixture.serves_beside(30);
        drop(liar);
        clear(&fixture, "metrics_", MALLORY);
    }
    let name = [("source", "endpoints")];
    fixture.metric_reaches("telltale_source_notes_total", &name, before + 2.0);
}

/// Removes what a user left under names that begin so.
fn clear(fixture: &Fixture, beginning: &str, uid: u32) {
    use std::os::unix::fs::MetadataExt;
    for entry in std::fs::read_dir(&fixture.stage.run).unwrap().flatten() {
        let is_so = entry.file_name().to_str().is_some_and(|name| name.starts_with(beginning));
        if is_so && entry.metadata().is_ok_and(|found| found.uid() == uid) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn a_ledger_in_another_processs_name_is_refused() {
    let Some(fixture) = Fixture::set("a_ledger_in_another_processs_name_is_refused") else {
        return;
    };
    let mut forged = identity(&fixture);
    // The right pid with another start, and, where the name is free, the very same.
    for start in [1, 2] {
        forged["start_time_ticks"] = json!(start);
        let mut liar =
            fixture.mallory(json!({ "role": "ledger", "identity": forged, "bytes": 999 }));
        liar.says();
        fixture.serves_beside(0);
        // It is taken for what an earlier process of that pid left, and Mallory's.
        let whole = fixture.whole();
        let row = |one: &&telltale_schema::snapshot::Process| one.pid == Some(fixture.ada.id());
        for process in whole.processes.iter().filter(row) {
            let is_hers = process.uid.value() == Some(&ADA);
            assert_eq!(is_hers, process.state == ProcessState::Alive, "{process:?}");
        }
    }
    let mut other = fixture.stage.workload(ADA, 11);
    fixture.serves_beside(11);
    let exact = {
        let whole = fixture.whole();
        serde_json::to_value(process(&whole, other.id()).unwrap().identity).unwrap()
    };
    // Its ledger goes; its name is free while it lives on.
    clear(&fixture, &format!("ledger_{}_", other.id()), ADA);
    let mut liar = fixture.mallory(json!({ "role": "ledger", "identity": exact, "bytes": 999 }));
    assert!(liar.says()["file"].is_string());
    complains(&fixture, &[&format!("user {MALLORY} made it")]);
    fixture.metric_reaches("telltale_source_notes_total", &[("source", "ledgers")], 1.0);
    let whole = fixture.whole();
    assert!(used(&whole).is_some_and(|bytes| bytes <= ADAS_BYTES + 11), "999 is in no sum");
    other.kill();
}

#[test]
fn what_an_earlier_process_of_a_pid_left_is_not_the_later_ones() {
    let Some(fixture) = Fixture::set("what_an_earlier_process_of_a_pid_left") else { return };
    let mut earlier = fixture.mallory(json!({ "role": "ledger", "bytes": 1 }));
    let mut identity = earlier.says()["identity"].clone();
    let start = identity["start_time_ticks"].as_u64().unwrap();
    // As if its pid had been another process's before.
    identity["start_time_ticks"] = json!(start - 1);
    let part = json!({ "role": "ledger", "identity": identity, "bytes": 999, "name": "ghost" });
    let mut ghost = fixture.mallory(part);
    ghost.says();
    fixture.serves_beside(1);
    wait_until("it to be shown as dead", TIMEOUT, || {
        let whole = fixture.whole();
        let found = whole.processes.iter().find(|one| one.name == "ghost");
        found.is_some_and(|one| one.state == ProcessState::Dead)
    });
    // Nothing of it is in a sum, nor in the row of the process that has the pid now.
    fixture.serves_beside(1);
}

#[test]
fn a_user_who_poses_as_another_process_of_its_own_harms_itself_alone() {
    let Some(fixture) = Fixture::set("a_user_who_poses_as_another_process_of_its_own") else {
        return;
    };
    let mut honest = fixture.mallory(json!({ "role": "ledger", "bytes": 100 }));
    let identity = honest.says()["identity"].clone();
    fixture.serves_beside(100);
    // By socket the kernel distinguishes the two.
    let mut liar = fixture.mallory(json!({
        "role": "endpoint", "named": honest.id(), "identity": identity, "bytes": 999
    }));
    liar.says();
    complains(&fixture, &[&format!("metrics_{}", honest.id()), "answers for process"]);
    fixture.serves_beside(100);
    // A file is its user's: a user who may end a process may also forge its ledger.
    let entries = std::fs::read_dir(&fixture.stage.run).unwrap().flatten();
    let file = entries
        .map(|entry| entry.path())
        .find(|path| path.to_str().unwrap().contains(&format!("ledger_{}_", honest.id())))
        .unwrap();
    std::fs::remove_file(file).unwrap();
    let mut forger =
        fixture.mallory(json!({ "role": "ledger", "identity": identity, "bytes": 55 }));
    forger.says();
    fixture.serves_beside(55);
    let whole = fixture.whole();
    let found = process(&whole, honest.id()).unwrap();
    assert_eq!(found.uid.value(), Some(&MALLORY), "it is counted as his");
}
