//! Mallory puts something where the service, or a client of it, will look.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use serde_json::json;
use telltale_harness::{as_user, wait_until};

use crate::attacks::actor::Actor;
use crate::attacks::asking;
use crate::attacks::fixture::{
    ADA, ADAS_BYTES, Fixture, MALLORY, SERVICE, Stage, TIMEOUT, no_source_fails,
};

#[test]
fn a_clients_question_goes_to_no_squatter() {
    let Some(stage) = Stage::set("a_clients_question_goes_to_no_squatter") else { return };
    let part = json!({ "role": "entries", "directory": stage.run, "kind": "socket",
        "before": "telemetry.", "after": "sock" });
    let mut squatter = Actor::start(MALLORY, &part);
    squatter.says();
    let refused = asking::snapshot(&stage.socket()).unwrap_err();
    assert!(refused.contains(&format!("belongs to user {MALLORY}")), "{refused}");
}

#[test]
fn a_service_takes_its_name_back_from_a_squatter() {
    let Some(stage) = Stage::set("a_service_takes_its_name_back_from_a_squatter") else { return };
    for kind in ["socket", "file", "link", "pipe", "directory"] {
        let part = json!({ "role": "entries", "directory": stage.run, "kind": kind,
            "before": "telemetry.", "after": "sock", "target": "/etc/passwd" });
        let mut squatter = Actor::start(MALLORY, &part);
        squatter.says();
        let service = stage.serve(stage.command());
        assert_eq!(stage.socket().symlink_metadata().unwrap().uid(), SERVICE, "{kind}");
        asking::snapshot(&stage.socket()).unwrap();
        // Nor can he take the name of one that runs: the directory is sticky.
        let mut command = std::process::Command::new("rm");
        command.arg("-f").arg(stage.socket()).stderr(std::process::Stdio::null());
        assert!(!as_user(MALLORY, MALLORY, command).status().unwrap().success());
        drop(service);
        fs::remove_file(stage.socket()).unwrap();
    }
}

#[test]
fn names_of_ledgers_and_endpoints_lead_nowhere_else() {
    let Some(fixture) = Fixture::set("names_of_ledgers_and_endpoints_lead_nowhere_else") else {
        return;
    };
    let target = fixture.stage.token.to_str().unwrap();
    let mut squatters = Vec::new();
    for (number, kind) in ["file", "directory", "pipe", "socket"].into_iter().enumerate() {
        for (before, after) in [("ledger_", "_1.tt"), ("metrics_", ".sock")] {
            let part = json!({ "role": "entries", "kind": kind, "before": before, "after": after,
                "from": 900_001 + number });
            squatters.push(fixture.mallory(part));
        }
    }
    for (number, target) in [target, "/dev/zero", "/proc/self/mem"].into_iter().enumerate() {
        for (before, after) in [("ledger_", "_1.tt"), ("metrics_", ".sock")] {
            let part = json!({ "role": "entries", "kind": "link", "target": target,
                "before": before, "after": after, "from": 900_011 + number });
            squatters.push(fixture.mallory(part));
        }
    }
    squatters.iter_mut().for_each(|one| drop(one.says()));
    wait_until("each to be told", TIMEOUT, || {
        let whole = fixture.whole();
        no_source_fails(&whole);
        let count = |name: &str| {
            let source = whole.sources.iter().find(|source| source.name == name).unwrap();
            let his = source.notes.iter().filter(|one| one.subject == format!("user {MALLORY}"));
            his.map(|note| note.count).sum::<u64>()
        };
        count("ledgers") == 7 && count("endpoints") >= 6
    });
    fixture.still_serves();
    let text = fixture.get_all("/api/v1/snapshot").body;
    assert!(!text.contains(crate::attacks::fixture::TOKEN), "nothing is read through a link");
    for source in ["ledgers", "endpoints"] {
        fixture.metric_reaches("telltale_source_notes_total", &[("source", source)], 1.0);
    }
}

/// Whether anything about these is as it was before.
fn look(path: &Path) -> (u32, u32) {
    let found = path.metadata().unwrap();
    (found.mode() & 0o7777, found.uid())
}

#[test]
fn a_state_directory_of_others_is_neither_used_nor_changed() {
    let Some(mut stage) = Stage::set("a_state_directory_of_others_is_neither_used") else { return };
    // Each with the name that it has where none is named: telltale, in a directory for states.
    let at = |name: &str| {
        let states = stage.place.join(name);
        fs::create_dir(&states).unwrap();
        chown(&states, Some(SERVICE), Some(SERVICE)).unwrap();
        states.join("telltale")
    };
    let make = |name: &str, owner: u32, mode: u32| {
        let path = at(name);
        fs::create_dir(&path).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    // What belongs to another user; what the service owns and others use; and what Mallory's link
    // makes it.
    let foreign = make("foreign", MALLORY, 0o777);
    let shared = make("shared", SERVICE, 0o1777);
    fs::write(shared.join("somebody's"), "").unwrap();
    let own = make("own", SERVICE, 0o755);
    fs::write(own.join("a-file-of-another-program"), "").unwrap();
    let link = at("link");
    let precious = make("precious", SERVICE, 0o750);
    symlink(&precious, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(MALLORY), Some(MALLORY)).unwrap();
    for (path, behind) in
        [(&foreign, &foreign), (&shared, &shared), (&own, &own), (&link, &precious)]
    {
        let before = look(behind);
        stage.state = path.clone();
        // With a named directory a history is wanted, and the error says why there can be none.
        let said = stage.refused(stage.command());
        assert!(said.contains(&*path.to_string_lossy()), "{said}");
        assert_eq!(look(behind), before, "{}", path.display());
        // Where none is named the service goes on: what it shows is worth having.
        let mut command = stage.command_for_any_state();
        command.env("XDG_STATE_HOME", path.parent().unwrap());
        let service = stage.serve(command);
        asking::snapshot(&stage.socket()).unwrap();
        assert_eq!(look(behind), before, "{}", path.display());
        assert!(!behind.join("history.db").exists(), "{}", path.display());
        drop(service);
    }
}

#[test]
fn a_token_that_others_know_or_made_is_refused() {
    let Some(stage) = Stage::set("a_token_that_others_know_or_made_is_refused") else { return };
    let token = &stage.token;
    fs::set_permissions(token, Permissions::from_mode(0o644)).unwrap();
    assert!(stage.refused(stage.command()).contains("so others can read it"));
    // Mallory's own, of which only he knows the word; the group is the service's, so it can read.
    fs::set_permissions(token, Permissions::from_mode(0o640)).unwrap();
    chown(token, Some(MALLORY), Some(SERVICE)).unwrap();
    let said = stage.refused(stage.command());
    assert!(said.contains(&format!("belongs to user {MALLORY}")), "{said}");
    // A pipe without a writer is not waited for.
    fs::remove_file(token).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, token, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    chown(token, Some(SERVICE), Some(SERVICE)).unwrap();
    let said = stage.refused(stage.command());
    assert!(said.contains("token"), "{said}");
    // A link is followed to what it leads to, which has to be right.
    fs::remove_file(token).unwrap();
    symlink("/etc/passwd", token).unwrap();
    assert!(stage.refused(stage.command()).contains("so others can read it"));
}

#[test]
fn a_workloads_own_names_are_free_again_or_another_is_taken() {
    let Some(fixture) = Fixture::set("a_workloads_own_names_are_free_again") else { return };
    // Mallory guesses the pids that come next, and takes the names of their endpoints.
    let next = u64::from(fixture.ada.id()) + 1;
    let part = json!({ "role": "entries", "kind": "socket", "before": "metrics_",
        "after": ".sock", "from": next, "count": 400 });
    let mut squatter = fixture.mallory(part);
    squatter.says();
    let hers: Vec<_> = (0..3).map(|_| fixture.stage.workload(ADA, 1000)).collect();
    let squatted = |pid: u32| (next..next + 400).contains(&u64::from(pid));
    assert!(hers.iter().any(|one| squatted(one.id())), "a pid was guessed");
    fixture.serves_beside(3000);
    wait_until("what only endpoints tell", TIMEOUT, || {
        fixture.metric("telltale_application_steps_total", &[("project", "adas-project")]) >= 28.0
    });
    assert_eq!(ADAS_BYTES % 1000, 1);
}
