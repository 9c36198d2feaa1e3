//! What one process counts is what another reads: from one thread, from several, with devices
//! added on the way.

use crate::ledger::machine::{Place, device};
use telltale_ledger::{LedgerReader, POSTING_THRESHOLD_BYTES};
use telltale_schema::memory::{MemoryKind, MemoryUsage};

#[test]
fn a_reader_sees_what_one_thread_counts() {
    let place = Place::new();
    let ledger = place.ledger();
    let first = ledger.add_device(&device(0)).unwrap();
    let second = ledger.add_device(&device(1)).unwrap();
    let recorder = ledger.recorder();
    let mut reader = LedgerReader::open_at(&place.directory, ledger.file_name()).unwrap();
    assert!(reader.read().unwrap().usage.is_empty());

    recorder.allocated(first, MemoryKind::Dram, 4096);
    recorder.allocated(second, MemoryKind::L1, 100);
    recorder.allocated(first, MemoryKind::Dram, 1 << 40);
    recorder.freed(first, MemoryKind::Dram, 4096);
    recorder.failed(second, MemoryKind::L1);
    ledger.faults().double_free();

    let reading = reader.read().unwrap();
    assert_eq!(reading.owner, place.owner().identity);
    assert_eq!((reading.uid, reading.name.as_str()), (place.owner().uid, "workload"));
    assert_eq!(reading.runtime, "test 1");
    assert_eq!(reading.devices, [device(0), device(1)]);
    let dram = MemoryUsage {
        live_bytes: 1 << 40,
        live_buffers: 1,
        peak_bytes: (1 << 40) + 4096,
        allocations: 2,
        allocated_bytes: (1 << 40) + 4096,
        failed_allocations: 0,
    };
    let l1 = MemoryUsage {
        live_bytes: 100,
        live_buffers: 1,
        peak_bytes: 100,
        allocations: 1,
        allocated_bytes: 100,
        failed_allocations: 1,
    };
    let expected = [(first, MemoryKind::Dram, dram), (second, MemoryKind::L1, l1)];
    assert_eq!(reading.usage, expected);
    assert_eq!(reading.faults.double_frees, 1);
    assert!(!reading.torn && !reading.implausible);
    assert_eq!(reading.shards, 1);
    assert_eq!(*reading, ledger.usage());

    let mut handed_over =
        LedgerReader::from_descriptor(ledger.read_only_descriptor().unwrap()).unwrap();
    assert_eq!(handed_over.read().unwrap(), &ledger.usage());
}

#[test]
fn a_second_thread_takes_the_first_one_s_values_into_the_peak() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let first = ledger.recorder();
    first.allocated(slot, MemoryKind::Dram, 1 << 30);
    let second = ledger.recorder();
    second.allocated(slot, MemoryKind::Dram, 1 << 20);
    first.freed(slot, MemoryKind::Dram, 1 << 30);
    second.freed(slot, MemoryKind::Dram, 1 << 20);

    let (_, _, usage) = ledger.usage().usage[0];
    assert_eq!((usage.live_bytes, usage.live_buffers), (0, 0));
    assert_eq!(usage.peak_bytes, (1 << 30) + (1 << 20));
    assert_eq!(ledger.usage().shards, 2);
}

#[test]
fn what_is_released_is_gone_from_one_thread_s_values_and_from_several() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let mut recorders = Vec::new();
    for shards in 1..4 {
        recorders.push(ledger.recorder());
        for _ in 0..3 {
            for recorder in &recorders {
                recorder.allocated(slot, MemoryKind::Dram, 1 << 30);
            }
            ledger.release(slot, MemoryKind::Dram, shards, shards << 30);
            let (_, _, usage) = ledger.usage().usage[0];
            assert_eq!((usage.live_bytes, usage.live_buffers), (0, 0));
            assert_eq!(usage.peak_bytes, shards << 30);
        }
    }
    // A kind without records takes bytes without a buffer, and reads as none.
    ledger.release(slot, MemoryKind::L1, 0, 5);
    assert_eq!(ledger.usage().faults.unrecorded_events, 0);
}

#[test]
fn recorders_of_ended_threads_are_reused() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    for _ in 0..1000 {
        let recorder = ledger.recorder();
        recorder.allocated(slot, MemoryKind::L1, 7);
    }
    let reading = ledger.usage();
    assert_eq!(reading.shards, 1);
    assert_eq!(reading.usage[0].2.live_bytes, 7000);
    assert_eq!(reading.usage[0].2.peak_bytes, 7000, "one thread at a time is one thread");
}

#[test]
fn concurrent_threads_that_balance_end_in_exactly_zero() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let rounds = u64::from(telltale_harness::rounds(50_000, 5_000_000));
    let threads = 4;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let ledger = &ledger;
            scope.spawn(move || {
                let recorder = ledger.recorder();
                for round in 0..rounds {
                    let bytes = 1 + (round * 7919 + thread * 104_729) % (256 * 1024);
                    recorder.allocated(slot, MemoryKind::Dram, bytes);
                    recorder.freed(slot, MemoryKind::Dram, bytes);
                }
            });
        }
    });
    let reading = ledger.usage();
    let usage = reading.usage[0].2;
    assert_eq!((usage.live_bytes, usage.live_buffers), (0, 0));
    assert_eq!(usage.allocations, rounds * threads);
    assert!(usage.peak_bytes <= threads * (256 * 1024 + POSTING_THRESHOLD_BYTES));
    assert!(!reading.torn && !reading.implausible);
}

#[test]
fn threads_that_come_and_go_while_a_reader_looks_lose_nothing() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let rounds = u64::from(telltale_harness::rounds(2_000, 200_000));
    let threads = 4;
    let mut reader = place.reader(ledger.file_name());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let ledger = &ledger;
            scope.spawn(move || {
                for round in 0..rounds {
                    let bytes = 1 + round % 100_000;
                    // What one recorder allocates, another frees.
                    ledger.recorder().allocated(slot, MemoryKind::L1, bytes);
                    ledger.recorder().allocated(slot, MemoryKind::Dram, 1);
                    ledger.recorder().freed(slot, MemoryKind::L1, bytes);
                }
            });
        }
        let mut last = 0;
        while last < rounds * threads {
            let reading = reader.read().unwrap();
            let dram = reading.usage.iter().find(|(_, kind, _)| *kind == MemoryKind::Dram);
            let now = dram.map_or(0, |(_, _, usage)| usage.allocations);
            assert!(now >= last, "counters never go back");
            last = now;
        }
    });
    let reading = reader.read().unwrap();
    let values = |kind| reading.usage.iter().find(|(_, found, _)| *found == kind).unwrap().2;
    assert_eq!(values(MemoryKind::L1).live_bytes, 0);
    assert_eq!(values(MemoryKind::L1).allocations, rounds * threads);
    assert_eq!(values(MemoryKind::Dram).live_bytes, rounds * threads);
    assert!(reading.shards <= 4, "a dropped recorder's cells are used again");
}

#[test]
fn a_clean_end_removes_the_file_and_a_handed_over_descriptor_still_reads() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let recorder = ledger.recorder();
    recorder.allocated(slot, MemoryKind::Trace, 5);
    assert_eq!(place.directory.list().unwrap().ledgers.len(), 1);
    let mut reader = LedgerReader::from_descriptor(ledger.read_only_descriptor().unwrap()).unwrap();
    ledger.remove();
    assert!(place.directory.list().unwrap().ledgers.is_empty());
    recorder.freed(slot, MemoryKind::Trace, 5);
    drop((recorder, ledger));
    assert_eq!(reader.read().unwrap().usage[0].2.live_bytes, 0);
}
