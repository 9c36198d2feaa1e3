//! Reading many ledgers in one go gives what reading each gives, and survives what is done to them.

use std::fs;

use crate::ledger::machine::{Place, device};
use telltale_ledger::{Ledger, LedgerSweep, ReadError};
use telltale_schema::memory::MemoryKind;

fn ledgers(place: &Place, count: u64) -> Vec<Ledger> {
    (0..count)
        .map(|number| {
            let mut owner = place.owner();
            owner.identity.start_time_ticks += number;
            Ledger::create(&place.directory, owner).unwrap()
        })
        .collect()
}

#[test]
fn a_sweep_follows_ledgers_that_grow() {
    let place = Place::new();
    let ledgers = ledgers(&place, 5);
    let mut sweep = LedgerSweep::new();
    let keys: Vec<_> =
        ledgers.iter().map(|ledger| sweep.insert(place.reader(ledger.file_name()))).collect();
    let recorders: Vec<_> = ledgers.iter().map(Ledger::recorder).collect();
    // 256 devices of 9 kinds exceed what goes through the map, too.
    for number in 0..256 {
        for (ledger, recorder) in ledgers.iter().zip(&recorders).take(1 + number % 5) {
            let slot = ledger.add_device(&device(u32::try_from(number).unwrap())).unwrap();
            for kind in MemoryKind::ALL {
                recorder.allocated(slot, kind, 1 << 12);
            }
        }
        sweep.read_all();
        for (ledger, key) in ledgers.iter().zip(&keys) {
            assert_eq!(sweep.get(*key).unwrap().unwrap(), &ledger.usage());
        }
    }
    assert_eq!(ledgers[0].usage().usage.len(), 256 * 9);
}

#[test]
fn a_cut_ledger_is_its_own_error_and_no_other_s() {
    let place = Place::new();
    let ledgers = ledgers(&place, 8);
    for ledger in &ledgers {
        let slot = ledger.add_device(&device(0)).unwrap();
        ledger.recorder().allocated(slot, MemoryKind::Dram, 77);
    }
    // Copies, because the map of a writer whose file is cut cannot be used any more.
    let mut sweep = LedgerSweep::new();
    let keys: Vec<_> = ledgers
        .iter()
        .enumerate()
        .map(|(number, ledger)| {
            let copy = format!("ledger_{}_1.tt", number + 1);
            fs::copy(place.path(ledger.file_name()), place.path(&copy)).unwrap();
            sweep.insert(place.reader(&copy))
        })
        .collect();
    for (bad, length) in [(0, 0), (3, 0), (4, 100), (7, 0)] {
        let path = place.path(&format!("ledger_{}_1.tt", bad + 1));
        fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
    }
    for _ in 0..2 {
        sweep.read_all();
        for (number, key) in keys.iter().enumerate() {
            let reading = sweep.get(*key).unwrap();
            if [0, 3, 4, 7].contains(&number) {
                let error = reading.unwrap_err();
                assert!(matches!(error, ReadError::Truncated | ReadError::Changed), "{error}");
            } else {
                assert_eq!(reading.unwrap().usage[0].2.live_bytes, 77);
            }
        }
    }
}

#[test]
fn a_ledger_cut_and_regrown_all_the_time_never_stops_the_sweep() {
    let place = Place::new();
    let ledgers = ledgers(&place, 3);
    for ledger in &ledgers {
        let slot = ledger.add_device(&device(0)).unwrap();
        ledger.recorder().allocated(slot, MemoryKind::Dram, 77);
    }
    let copy = "ledger_1_1.tt";
    let content = fs::read(place.path(ledgers[1].file_name())).unwrap();
    fs::write(place.path(copy), &content).unwrap();
    let mut sweep = LedgerSweep::new();
    let first = sweep.insert(place.reader(ledgers[0].file_name()));
    let unstable = sweep.insert(place.reader(copy));
    let last = sweep.insert(place.reader(ledgers[2].file_name()));
    let file = fs::File::options().write(true).open(place.path(copy)).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::unix::fs::FileExt;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.set_len(0).unwrap();
                file.write_all_at(&content[..4096], 0).unwrap();
            }
        });
        let mut failures = 0;
        let rounds = telltale_harness::rounds(5_000, 500_000);
        for _ in 0..rounds {
            sweep.read_all();
            failures += u32::from(sweep.get(unstable).unwrap().is_err());
            for stable in [first, last] {
                assert_eq!(sweep.get(stable).unwrap().unwrap().usage[0].2.live_bytes, 77);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(failures > 0, "the file was never seen cut in {rounds} sweeps");
    });
}

#[test]
fn ledgers_come_and_go() {
    let place = Place::new();
    let ledgers = ledgers(&place, 3);
    let mut sweep = LedgerSweep::new();
    assert!(sweep.is_empty());
    sweep.read_all();
    let keys: Vec<_> =
        ledgers.iter().map(|ledger| sweep.insert(place.reader(ledger.file_name()))).collect();
    assert!(sweep.remove(keys[1]).is_some());
    assert!(sweep.remove(keys[1]).is_none() && sweep.get(keys[1]).is_none());
    sweep.read_all();
    assert_eq!((sweep.len(), sweep.iter().count()), (2, 2));
    let again = sweep.insert(place.reader(ledgers[1].file_name()));
    sweep.read_all();
    let owner = sweep.get(again).unwrap().unwrap().owner;
    assert_eq!(owner, ledgers[1].owner().identity);
}
