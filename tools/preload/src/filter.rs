//! Which parts of the address space have the beginning of a recorded block, so that the free of any
//! other block costs one check of a byte.
//!
//! A byte counts the recorded blocks that begin in a MiB of addresses. Neighbouring blocks share
//! it, so that it is in the processor's nearest cache; addresses 64 GiB apart may share it, too.
//! What it says is "none" or "perhaps": then the table of addresses is asked. In a forked child it
//! says "perhaps" too often.

use std::sync::atomic::{AtomicU8, Ordering};

/// One MiB has one byte.
const GRANULE_BITS: u32 = 20;
const BYTES: usize = 1 << 16;
/// A byte that has reached this stays so.
const MANY: u8 = u8::MAX;

static COUNTS: [AtomicU8; BYTES] = [const { AtomicU8::new(0) }; BYTES];

#[inline(always)]
fn count(address: usize) -> &'static AtomicU8 {
    // The second term keeps the heap and the maps, far apart, from always meeting.
    let index = (address >> GRANULE_BITS) ^ (address >> (GRANULE_BITS + 16));
    &COUNTS[index % BYTES]
}

/// Whether a recorded block may begin at `address`.
#[inline(always)]
pub(crate) fn is_marked(address: usize) -> bool {
    count(address).load(Ordering::Relaxed) != 0
}

/// Notes that a recorded block begins at `address`. To be called before the program can free it.
pub(crate) fn mark(address: usize) {
    let count = count(address);
    // Two threads that both see one less than the most must not make it none.
    let more = |value: u8| value.checked_add(1);
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
}

/// Takes a [`mark`] back.
pub(crate) fn unmark(address: usize) {
    let less = |value: u8| (value != MANY).then(|| value.saturating_sub(1));
    let _ = count(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// Notes a block that is never given back.
pub(crate) fn mark_for_ever(address: usize) {
    count(address).store(MANY, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::{is_marked, mark, mark_for_ever, unmark};

    #[test]
    fn a_mark_lasts_until_all_blocks_of_its_part_are_gone() {
        let address = 0x7f12_3450_0010;
        assert!(!is_marked(address));
        mark(address);
        mark(address + 4096);
        unmark(address);
        assert!(is_marked(address));
        assert!(!is_marked(address + (1 << 20)), "the next MiB has its own byte");
        unmark(address + 4096);
        assert!(!is_marked(address));
    }

    #[test]
    fn a_byte_that_cannot_count_further_stays_marked() {
        let address = 0x7f00_0000_0000;
        for _ in 0..300 {
            mark(address);
        }
        for _ in 0..300 {
            unmark(address);
        }
        assert!(is_marked(address));
        let early = 0x5555_0000_0000;
        mark_for_ever(early);
        unmark(early);
        assert!(is_marked(early));
    }
}
