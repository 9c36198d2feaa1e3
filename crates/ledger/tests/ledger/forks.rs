//! A forked child leaves its parent's ledger alone.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::ledger::machine::{Place, device};
use telltale_ledger::Ledger;
use telltale_schema::memory::MemoryKind;

/// Forks, and in the child abandons the ledger, does `work` and ends.
fn in_child(ledger: &Ledger, work: impl FnOnce()) {
    // SAFETY: the child calls nothing but what this crate promises to be fit for a forked child
    // of a process with many threads, and ends with _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let abandoned = ledger.abandon().is_ok();
        work();
        // SAFETY: ends this process at once, without running anything of the test's.
        unsafe { libc::_exit(if abandoned { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above; the status is written to a live variable.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child ends well");
}

#[test]
fn a_child_that_abandons_its_parent_s_ledger_changes_nothing_in_it() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let recorder = ledger.recorder();
    recorder.allocated(slot, MemoryKind::Dram, 4096);
    let mut other = Some((ledger.recorder(), ledger.clone()));
    let before = ledger.usage();

    in_child(&ledger, || {
        for _ in 0..1000 {
            recorder.allocated(slot, MemoryKind::Dram, 1 << 20);
            recorder.freed(slot, MemoryKind::Dram, 1);
        }
        ledger.faults().double_free();
        ledger.remove();
        // The parent has its own copies of these still.
        drop(other.take());
    });

    assert_eq!(ledger.usage(), before);
    recorder.freed(slot, MemoryKind::Dram, 4096);
    let mut reader = place.reader(ledger.file_name());
    assert_eq!(reader.read().unwrap().usage[0].2.live_bytes, 0);
}

#[test]
fn forks_in_the_middle_of_recording_lose_nothing() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let stop = AtomicBool::new(false);
    let recorder = ledger.recorder();
    recorder.allocated(slot, MemoryKind::Dram, 0);
    let recorded: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let recorder = ledger.recorder();
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        recorder.allocated(slot, MemoryKind::Dram, 3);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for _ in 0..telltale_harness::rounds(20, 2_000) {
            in_child(&ledger, || recorder.allocated(slot, MemoryKind::Dram, 1 << 50));
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let usage = ledger.usage().usage[0].2;
    assert_eq!((usage.live_bytes, usage.live_buffers), (3 * recorded, recorded + 1));
}
