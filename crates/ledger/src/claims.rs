//! Who gets which cell: the bookkeeping of claimed cells and their publication.
//!
//! Claims happen under the registry's lock, on the first allocation of a thread for a device and
//! kind; nothing here is on the path of an update. A cell that may later have to become a pair's
//! shared cell is never given away, so that a pair that was once recorded stays recordable. Only
//! `crate::sync` may be used here, because the loom models compile this file too.

use crate::cell::{Cell, Tag};
use crate::sync::{AtomicU64, Ordering};

/// How many cells there are, are taken, and are owed.
#[derive(Debug)]
pub(crate) struct Claims {
    used: usize,
    reserved: usize,
    owed_shared: usize,
}

/// What is claimed so far for one device and kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairClaims {
    /// At least one thread cell exists.
    pub(crate) has_thread_cell: bool,
    /// The index of the shared cell.
    pub(crate) shared: Option<usize>,
}

impl PairClaims {
    fn is_owed_shared(self) -> bool {
        self.has_thread_cell && self.shared.is_none()
    }
}

impl Claims {
    /// No cell taken of `reserved` ones whose memory exists.
    pub(crate) fn new(reserved: usize) -> Self {
        Self { used: 0, reserved, owed_shared: 0 }
    }

    /// How many cells have memory.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved
    }

    /// Tells that more cells have memory now.
    pub(crate) fn grow_to(&mut self, reserved: usize) {
        assert!(reserved >= self.reserved, "reserved memory never shrinks");
        self.reserved = reserved;
    }

    /// Takes a thread cell for `pair`; none when there is no room for it and all owed ones.
    pub(crate) fn thread_cell(&mut self, pair: &mut PairClaims) -> Option<usize> {
        let newly_owed = usize::from(!pair.has_thread_cell && pair.shared.is_none());
        let index = self.take(self.owed_shared + newly_owed)?;
        self.owed_shared += newly_owed;
        pair.has_thread_cell = true;
        Some(index)
    }

    /// Takes the shared cell of `pair`, which has none; never fails for a pair with a thread cell.
    pub(crate) fn shared_cell(&mut self, pair: &mut PairClaims) -> Option<usize> {
        assert!(pair.shared.is_none(), "a pair has one shared cell");
        let owed_to_others = self.owed_shared - usize::from(pair.is_owed_shared());
        let index = self.take(owed_to_others)?;
        self.owed_shared = owed_to_others;
        pair.shared = Some(index);
        Some(index)
    }

    fn take(&mut self, keep: usize) -> Option<usize> {
        let index = self.used;
        let enough = index.checked_add(1)?.checked_add(keep)? <= self.reserved;
        self.used += usize::from(enough);
        enough.then_some(index)
    }
}

/// Makes a claimed cell known to readers: its tag first, then the count. `used` is the file's
/// count of cells; the caller holds the registry's lock.
pub(crate) fn publish(used: &AtomicU64, cell: &Cell, index: usize, tag: Tag) {
    cell.publish(tag);
    let count = u64::try_from(index).expect("an index fits in 64 bits") + 1;
    if count > used.load(Ordering::Relaxed) {
        // SYNC: cell count
        used.store(count, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::{Claims, PairClaims};

    #[test]
    fn a_recorded_pair_always_gets_its_shared_cell() {
        let mut claims = Claims::new(5);
        let mut pairs = [PairClaims::default(); 3];
        assert_eq!(claims.thread_cell(&mut pairs[0]), Some(0));
        assert_eq!(claims.thread_cell(&mut pairs[1]), Some(1));
        assert_eq!(claims.thread_cell(&mut pairs[2]), None, "it and three shared ones: too many");
        assert_eq!(claims.shared_cell(&mut pairs[2]), Some(2), "one and the two owed ones: 5");
        assert_eq!(claims.thread_cell(&mut pairs[0]), None);
        assert_eq!(claims.shared_cell(&mut pairs[0]), Some(3));
        assert_eq!(claims.shared_cell(&mut pairs[1]), Some(4));
        assert_eq!(claims.thread_cell(&mut pairs[1]), None);
        claims.grow_to(6);
        assert_eq!(claims.thread_cell(&mut pairs[1]), Some(5));
    }
}
