//! A process takes its own peaks: it learns how high its memory went between two moments, and readers never see a peak
//! fall.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::ledger::machine::{Place, device};
use telltale_ledger::{LedgerReader, OwnPeaks, POSTING_THRESHOLD_BYTES, SealedLedger};
use telltale_schema::memory::MemoryKind;

const DRAM: MemoryKind = MemoryKind::Dram;

#[test]
fn a_peak_is_that_since_the_last_one_was_taken() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let recorder = ledger.recorder();
    let peaks = OwnPeaks::open_at(&place.directory, ledger.file_name()).unwrap();
    let mut reader = LedgerReader::open_at(&place.directory, ledger.file_name()).unwrap();
    let mut peak = || reader.read().unwrap().usage[0].2.peak_bytes;
    assert_eq!(peaks.take(), []);

    recorder.allocated(slot, DRAM, 5000);
    recorder.freed(slot, DRAM, 5000);
    assert_eq!(peaks.take(), [(slot, DRAM, 5000)]);
    assert_eq!(peak(), 5000);
    assert_eq!(peaks.take(), [(slot, DRAM, 0)], "nothing was allocated since");

    recorder.allocated(slot, DRAM, 100);
    recorder.allocated(slot, DRAM, 200);
    recorder.freed(slot, DRAM, 200);
    assert_eq!(peaks.take(), [(slot, DRAM, 300)]);
    assert_eq!(peak(), 5000, "what others read does not fall");

    recorder.allocated(slot, DRAM, 9000);
    assert_eq!(peak(), 9100);
    assert_eq!(peaks.take(), [(slot, DRAM, 9100)]);
    assert_eq!(peak(), 9100);
}

#[test]
fn with_several_threads_it_is_within_what_they_keep_to_themselves() {
    const BIG: u64 = 64 << 20;
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let peaks = OwnPeaks::open_at(&place.directory, ledger.file_name()).unwrap();
    let mut reader = LedgerReader::open_at(&place.directory, ledger.file_name()).unwrap();
    let allocate_and_free = |bytes: u64| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let recorder = ledger.recorder();
                    recorder.allocated(slot, DRAM, bytes);
                    recorder.freed(slot, DRAM, bytes);
                });
            }
        });
    };
    allocate_and_free(4 * BIG);
    let taken = peaks.take();
    assert!(taken[0].2 >= 4 * BIG - POSTING_THRESHOLD_BYTES, "{taken:?}");
    allocate_and_free(BIG);
    let taken = peaks.take();
    let within = BIG - POSTING_THRESHOLD_BYTES..=4 * (BIG + POSTING_THRESHOLD_BYTES);
    assert!(within.contains(&taken[0].2), "{taken:?}");
    let seen = reader.read().unwrap().usage[0].2.peak_bytes;
    assert!(seen >= 4 * BIG - POSTING_THRESHOLD_BYTES, "{seen}");
}

#[test]
fn a_sealed_ledger_s_peaks_are_taken_too() {
    let place = Place::new();
    let ledger = SealedLedger::create(&place.directory, &place.owner()).unwrap();
    let slot = ledger.add_device(&device(0)).unwrap();
    let account = ledger.account(slot, DRAM).unwrap();
    let name = place.directory.list().unwrap().ledgers[0].name.clone();
    let peaks = OwnPeaks::open_at(&place.directory, &name).unwrap();
    account.allocated(5000);
    account.freed(5000);
    assert_eq!(peaks.take()[0].2, 5000);
    account.allocated(300);
    assert_eq!(peaks.take()[0].2, 300);
    let mut reader = LedgerReader::open_at(&place.directory, &name).unwrap();
    assert_eq!(reader.read().unwrap().usage[0].2.peak_bytes, 5000);
}

#[test]
fn a_ledger_of_another_process_is_refused() {
    let place = Place::new();
    let mut owner = place.owner();
    owner.identity.start_time_ticks += 1;
    let ledger = telltale_ledger::Ledger::create(&place.directory, owner).unwrap();
    let refused = OwnPeaks::open_at(&place.directory, ledger.file_name()).unwrap_err();
    assert!(refused.to_string().contains("another process"), "{refused}");
    std::fs::write(place.path("short"), "no ledger").unwrap();
    let refused = OwnPeaks::open_at(&place.directory, "short").unwrap_err();
    assert!(refused.to_string().contains("shorter than a ledger"), "{refused}");
    let ledger = place.ledger();
    let own = ledger.file_name();
    assert!(OwnPeaks::open_at(&place.directory, own).is_ok());
    for outside in [format!("./{own}"), String::from(".."), String::new()] {
        let refused = OwnPeaks::open_at(&place.directory, &outside).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput, "{outside:?}");
    }
}

/// One thread records ever larger blocks while another takes the peak all the time.
#[test]
fn a_peak_is_lost_neither_to_readers_nor_to_the_process_itself() {
    const ROUNDS: u64 = 200_000;
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let peaks = OwnPeaks::open_at(&place.directory, ledger.file_name()).unwrap();
    let done = AtomicBool::new(false);
    let mut most = thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = peaks.take().iter().map(|(_, _, peak)| *peak).fold(most, u64::max);
            }
            most
        });
        let recorder = ledger.recorder();
        for bytes in 1..=ROUNDS {
            recorder.allocated(slot, DRAM, bytes);
            recorder.freed(slot, DRAM, bytes);
            if bytes % 1000 == 0 {
                let seen = ledger.usage().usage[0].2.peak_bytes;
                assert!(seen <= bytes && seen + 1 >= bytes, "readers see {seen} of {bytes}");
            }
        }
        done.store(true, Ordering::Relaxed);
        taking.join().unwrap()
    });
    assert_eq!(ledger.usage().usage[0].2.peak_bytes, ROUNDS);
    most = peaks.take().iter().map(|(_, _, peak)| *peak).fold(most, u64::max);
    assert_eq!(most, ROUNDS);
}
