//! A process killed at any moment leaves a readable ledger, within one record of the truth.
//!
//! The child follows a sequence that is known beforehand, so that the state after each number of
//! records is known too, and keeps a log beside the ledger of how far it has come.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ledger::machine::{Place, device};
use telltale_harness::{ChildGuard, rounds, wait_until};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{Ledger, LedgerOwner, LedgerReader, LedgerReading, OpenError};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;

const DIRECTORY: &str = "TELLTALE_TEST_CHURN_IN";
const THREADS: usize = 2;
const LIVE: u64 = 8;
/// Records between two entries in the log.
const STRIDE: u64 = 512;

/// Bytes of the buffer with this number.
fn size(number: u64) -> u64 {
    4096 * (1 + number * 7 % 16)
}

/// Bytes of the first `count` buffers.
fn sizes(count: u64) -> u64 {
    let cycle: u64 = (0..16).map(size).sum();
    count / 16 * cycle + (0..count % 16).map(size).sum::<u64>()
}

/// Allocations and frees among the first `records` of the sequence: eight allocations, then a
/// free of the oldest buffer and an allocation in turn.
fn counts(records: u64) -> (u64, u64) {
    let later = records.saturating_sub(LIVE);
    (records.min(LIVE) + later / 2, later.div_ceil(2))
}

/// The four counters after `records`.
fn state(records: u64) -> [u64; 4] {
    let (allocations, frees) = counts(records);
    [allocations, sizes(allocations), frees, sizes(frees)]
}

/// Not a test of its own: what the child of a test below does, until it is killed.
#[test]
fn create_until_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let log = fs::File::options().write(true).open(directory.join("log")).unwrap();
    let place = RuntimeDirectory::open(&directory, Purpose::Writing).unwrap();
    let owner = LedgerOwner::of_this_process("create", Timestamp(0)).unwrap();
    for count in 1u64.. {
        let ledger = Ledger::create(&place, owner.clone()).unwrap();
        let slot = ledger.add_device(&device(0)).unwrap();
        ledger.recorder().allocated(slot, MemoryKind::Dram, 1);
        log.write_all_at(&count.to_le_bytes(), 0).unwrap();
    }
}

#[test]
fn a_process_killed_while_it_starts_or_stops_leaves_no_unreadable_file() {
    let mut noise = 7u64;
    for _ in 0..rounds(12, 500) {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let looks = (noise >> 33) % 200;
        let place = Place::new();
        let log = place.path("log");
        fs::write(&log, [0; 8]).unwrap();
        let mut child = child("ledger::killed::create_until_killed", &place);
        wait_until("the first ledger", Duration::from_secs(60), || fs::read(&log).unwrap()[0] > 0);
        for _ in 0..looks {
            read_all(&place);
        }
        child.kill();
        read_all(&place);
        assert!(place.directory.list().unwrap().ledgers.len() <= 1);
    }
}

/// Each ledger that is there can be read, unless it is gone by then.
fn read_all(place: &Place) {
    for entry in place.directory.list().unwrap().ledgers {
        match LedgerReader::open_at(&place.directory, &entry.name) {
            Ok(mut reader) => assert!(reader.read().unwrap().devices.len() <= 1),
            Err(OpenError::Open { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn child(test: &str, place: &Place) -> ChildGuard {
    ChildGuard::spawn(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(DIRECTORY, place.directory.path())
            .stdout(Stdio::null()),
    )
}

/// Not a test of its own: what the child of the last test does, until it is killed.
#[test]
fn churn_until_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let log = fs::File::options().write(true).open(directory.join("log")).unwrap();
    let place = RuntimeDirectory::open(&directory, Purpose::Writing).unwrap();
    let owner = LedgerOwner::of_this_process("churn", Timestamp(0)).unwrap();
    let ledger = Ledger::create(&place, owner).unwrap();
    let slot = ledger.add_device(&device(0)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (ledger, log) = (&ledger, &log);
            scope.spawn(move || {
                let recorder = ledger.recorder();
                let kind = MemoryKind::ALL[thread];
                for records in 0.. {
                    let (allocations, frees) = counts(records);
                    if counts(records + 1).0 > allocations {
                        recorder.allocated(slot, kind, size(allocations));
                    } else {
                        recorder.freed(slot, kind, size(frees));
                    }
                    if records % STRIDE == 0 {
                        let done = u64::to_le_bytes(records + 1);
                        log.write_all_at(&done, 8 * thread as u64).unwrap();
                    }
                }
            });
        }
    });
}

fn logged(path: &Path) -> [u64; THREADS] {
    let bytes = fs::read(path).unwrap();
    std::array::from_fn(|thread| {
        u64::from_le_bytes(bytes[8 * thread..8 * thread + 8].try_into().unwrap())
    })
}

/// Checks one thread's values in a reading and gives how many records they show.
fn check(reading: &LedgerReading, thread: usize) -> u64 {
    let usage = reading.usage.iter().find(|(_, kind, _)| *kind == MemoryKind::ALL[thread]);
    let Some((_, _, usage)) = usage else { return 0 };
    assert!(!reading.implausible, "{reading:?}");
    let frees = usage.allocations - usage.live_buffers;
    let freed_bytes = usage.allocated_bytes - usage.live_bytes;
    let found = [usage.allocations, usage.allocated_bytes, frees, freed_bytes];
    let records = usage.allocations + frees;
    let between = |first: u64| {
        let (before, after) = (state(first), state(first + 1));
        (0..4).all(|word| found[word] == before[word] || found[word] == after[word])
    };
    if reading.torn {
        assert!(between(records) || records > 0 && between(records - 1), "{found:?}");
    } else {
        assert_eq!(found, state(records), "after {records} records");
    }
    records
}

#[test]
fn a_killed_process_leaves_a_ledger_within_one_record_of_the_truth() {
    let mut noise = 0x9E37_79B9_7F4A_7C15u64;
    for _ in 0..rounds(12, 500) {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        one_round(1 + (noise >> 33) % 300);
    }
}

fn one_round(looks: u64) {
    let place = Place::new();
    let log = place.path("log");
    fs::write(&log, [0; 8 * THREADS]).unwrap();
    let mut child = child("ledger::killed::churn_until_killed", &place);
    wait_until("both threads to record", Duration::from_secs(60), || {
        logged(&log).iter().all(|records| *records > STRIDE)
    });
    let listing = place.directory.list().unwrap();
    assert_eq!(listing.ledgers.len(), 1);
    let mut reader = LedgerReader::open_at(&place.directory, &listing.ledgers[0].name).unwrap();
    assert_eq!(reader.owner().pid, child.id());
    let mut last = [0; THREADS];
    for _ in 0..looks {
        let reading = reader.read().unwrap();
        for (thread, last) in last.iter_mut().enumerate() {
            let records = check(reading, thread);
            assert!(records >= *last, "counters never go back");
            *last = records;
        }
    }
    child.kill();
    let reading = reader.read().unwrap().clone();
    for (thread, done) in logged(&log).into_iter().enumerate() {
        let records = check(&reading, thread);
        // The log may be one stride behind, never ahead.
        assert!((done..=done + STRIDE).contains(&records), "{records} recorded, {done} logged");
    }
    let mut later = place.reader(&listing.ledgers[0].name);
    assert_eq!(later.read().unwrap(), &reading, "and it stays so");
}
