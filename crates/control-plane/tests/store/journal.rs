//! The journal on a real disk.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use telltale_cluster::epoch::{Epoch, Revision, Term};
use telltale_cluster::stored::StoreOutcome;
use telltale_control_plane::store::{JournalSettings, StoreLocation};
use telltale_harness::{Scratch, on_small_disk};

use crate::store::conformance;
use crate::store::coordinator::{Coordinator, revision};

fn place(directory: &Path) -> StoreLocation {
    StoreLocation::Journal(JournalSettings { directory: directory.to_path_buf() })
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

#[test]
fn it_is_a_store() {
    let scratch = Scratch::new();
    let mut number = 0;
    conformance::check(|| {
        number += 1;
        place(&scratch.join(format!("job/{number}")))
    });
}

#[test]
fn it_is_private_and_says_who_has_it() {
    block_on(async {
        let scratch = Scratch::new();
        let directory = scratch.join("state");
        let mut first = Coordinator::start(&place(&directory));
        first.gains().await;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("journal")), 0o600);
        let mut second = Coordinator::start(&place(&directory));
        let soon = tokio::time::Instant::now() + std::time::Duration::from_millis(700);
        assert!(second.event_until(soon).await.is_none());
        assert_eq!(second.troubles.len(), 1, "told once: {:?}", second.troubles);
        assert!(second.troubles[0].contains("belongs to another coordinator"));
    });
}

#[test]
fn a_journal_that_cannot_be_used_is_reported_and_tried_again() {
    block_on(async {
        let scratch = Scratch::new();
        let directory = scratch.join("state");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("journal"), "no journal").unwrap();
        let mut coordinator = Coordinator::start(&place(&directory));
        let soon = tokio::time::Instant::now() + std::time::Duration::from_millis(300);
        assert!(coordinator.event_until(soon).await.is_none());
        assert!(coordinator.troubles[0].contains("move it away"), "{:?}", coordinator.troubles);
        std::fs::remove_file(directory.join("journal")).unwrap();
        assert!(coordinator.gains().await.stored.is_none());
    });
}

/// A coordinator that has stored a decision for epoch 1 in `directory`, its term and the revision.
async fn stored_one(directory: &Path) -> (Coordinator, Term, Revision) {
    let mut leader = Coordinator::start(&place(directory));
    let term = leader.gains().await.term;
    let decision = leader.decides(term, Revision::EMPTY, 1);
    let stored = revision(leader.stores(&decision).await);
    (leader, term, stored)
}

/// The epoch that the next coordinator finds there.
async fn epoch_in(directory: &Path) -> Option<Epoch> {
    let mut next = Coordinator::start(&place(directory));
    let stored = next.gains().await.stored.map(|(state, _)| state.epoch);
    next.store.close().await;
    stored
}

#[test]
fn a_journal_that_is_removed_under_its_coordinator_is_written_again() {
    block_on(async {
        for file_alone in [true, false] {
            let scratch = Scratch::new();
            let directory = scratch.join("state");
            let (mut leader, term, stored) = stored_one(&directory).await;
            match file_alone {
                true => std::fs::remove_file(directory.join("journal")).unwrap(),
                false => std::fs::remove_dir_all(&directory).unwrap(),
            }
            let decision = leader.decides(term, stored, 2);
            revision(leader.stores(&decision).await);
            // It is locked for others as before.
            let mut second = Coordinator::start(&place(&directory));
            let soon = tokio::time::Instant::now() + std::time::Duration::from_millis(300);
            assert!(second.event_until(soon).await.is_none());
            second.store.close().await;
            leader.store.close().await;
            assert_eq!(epoch_in(&directory).await, Some(Epoch::new(2)), "file: {file_alone}");
        }
    });
}

#[test]
fn a_journal_that_another_one_takes_the_place_of_costs_decisions_and_no_state() {
    block_on(async {
        for (name, words) in [
            ("state/journal", "another file has its name"),
            ("state", "another directory has the name"),
        ] {
            let scratch = Scratch::new();
            let (directory, aside) = (scratch.join("state"), scratch.join("aside"));
            let (mut leader, term, stored) = stored_one(&directory).await;
            let moved = scratch.join(name);
            std::fs::rename(&moved, &aside).unwrap();
            match name {
                "state" => std::fs::create_dir(&moved).unwrap(),
                _ => std::fs::write(&moved, "a copy of last week").unwrap(),
            }
            let decision = leader.decides(term, stored, 2);
            assert_eq!(leader.stores(&decision).await, StoreOutcome::Failed);
            assert!(leader.troubles.iter().any(|text| text.contains(words)), "{words}");
            // Either remedy helps.
            std::fs::rename(&moved, scratch.join("wrong")).unwrap();
            if name == "state" {
                std::fs::rename(&aside, &moved).unwrap();
            }
            let decision = leader.decides(term, stored, 3);
            revision(leader.stores(&decision).await);
            leader.store.close().await;
            assert_eq!(epoch_in(&directory).await, Some(Epoch::new(3)), "{words}");
        }
    });
}

#[test]
fn a_full_disk_costs_decisions_and_no_state() {
    let name = "store::journal::a_full_disk_costs_decisions_and_no_state";
    on_small_disk(name, 64, |disk| block_on(fills_the_disk(disk)));
}

async fn fills_the_disk(directory: &Path) {
    let mut leader = Coordinator::start(&place(&directory.join("state")));
    let term = leader.gains().await.term;
    let decision = leader.decides(term, Revision::EMPTY, 1);
    let stored = revision(leader.stores(&decision).await);
    let ballast = directory.join("ballast");
    let full = std::fs::write(&ballast, vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let mut last = stored;
    let refused = loop {
        // The file's last page has some room left.
        let decision = leader.decides(term, last, 2);
        match leader.stores(&decision).await {
            StoreOutcome::Stored(next) => last = next,
            outcome => break outcome,
        }
    };
    assert_eq!(refused, StoreOutcome::Failed);
    assert!(leader.troubles.iter().any(|text| text.contains("make room")));
    std::fs::remove_file(&ballast).unwrap();
    let decision = leader.decides(term, last, 3);
    assert_eq!(leader.mended, 0);
    revision(leader.stores(&decision).await);
    assert_eq!(leader.mended, 1, "once");
    leader.store.close().await;
    let mut next = Coordinator::start(&place(&directory.join("state")));
    let stored = next.gains().await.stored.map(|(state, _)| state.epoch);
    assert_eq!(stored, Some(Epoch::new(3)));
}
