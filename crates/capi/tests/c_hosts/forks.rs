//! Forked children: each records on its own, exactly, and the parent loses nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::c_hosts::installed::{Linked, install, program};
use telltale_harness::{ChildGuard, Scratch, rounds};
use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::RecordingFaults;

const TIMEOUT: Duration = Duration::from_secs(60);
const CHILDREN: u64 = 8;

/// DRAM and faults of each process that has a ledger in `directory`.
fn recorded(directory: &RuntimeDirectory) -> BTreeMap<u32, (MemoryUsage, RecordingFaults)> {
    let listing = directory.list().expect("a sound ledger");
    assert_eq!(listing.ledgers.len(), listing.endpoints.len());
    let read = |name: &str| {
        let mut reader = LedgerReader::open_at(directory, name).expect("a sound ledger");
        let reading = reader.read().expect("a sound ledger");
        let dram = reading
            .usage
            .iter()
            .find(|(_, kind, _)| *kind == MemoryKind::Dram)
            .expect("a sound ledger")
            .2;
        (reading.owner.pid, (dram, reading.faults))
    };
    listing.ledgers.iter().map(|entry| read(&entry.name)).collect()
}

#[test]
fn children_record_exactly_and_leave_nothing() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let host = program("tests/c/forks.c", &prefix, Linked::Shared);
    for round in 0..rounds(5, 100) {
        let path = scratch.join(format!("run-{round}"));
        std::fs::create_dir(&path).unwrap();
        let mut command = Command::new(&host);
        command.arg(&path).arg(CHILDREN.to_string()).env_remove("TELLTALE_DISABLED");
        let mut parent = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(parent.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready");

        let directory = RuntimeDirectory::open(&path, Purpose::Reading).unwrap();
        let mut found = recorded(&directory);
        let (own, faults) = found.remove(&parent.id()).unwrap();
        assert_eq!((own.live_bytes, faults), (1000, RecordingFaults::default()));
        let mut held: Vec<u64> = found.values().map(|(usage, _)| usage.live_bytes).collect();
        held.sort_unstable();
        let expected: Vec<u64> = (0..CHILDREN).map(|number| 100 * number + 7).collect();
        assert_eq!(held, expected);
        for (usage, faults) in found.values() {
            assert_eq!((usage.allocations, *faults), (1, RecordingFaults::default()));
        }

        drop(parent.child().stdin.take());
        assert!(parent.wait_within("the parent and its children to end", TIMEOUT).success());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }
}
