//! A forked child leaves its parent's ledger alone.

use crate::machine::{Place, device};
use telltale_schema::memory::MemoryKind;

#[test]
fn a_child_that_abandons_its_parent_s_ledger_changes_nothing_in_it() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let recorder = ledger.recorder();
    recorder.allocated(slot, MemoryKind::Dram, 4096);
    let before = ledger.usage();

    // SAFETY: the child calls nothing but what this crate promises to be fit for a forked child
    // of a process with many threads, and ends with _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let abandoned = ledger.abandon().is_ok();
        for _ in 0..1000 {
            recorder.allocated(slot, MemoryKind::Dram, 1 << 20);
            recorder.freed(slot, MemoryKind::Dram, 1);
        }
        ledger.faults().double_free();
        ledger.remove();
        drop((recorder, ledger));
        // SAFETY: ends this process at once, without running anything of the test's.
        unsafe { libc::_exit(if abandoned { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above; the status is written to a live variable.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child ends well");

    assert_eq!(ledger.usage(), before);
    recorder.freed(slot, MemoryKind::Dram, 4096);
    let mut reader = place.reader(ledger.file_name());
    assert_eq!(reader.read().unwrap().usage[0].2.live_bytes, 0);
}
