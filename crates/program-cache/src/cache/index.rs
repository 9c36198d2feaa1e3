//! Which entry has a key: a lock-free map, papaya's. Finding takes no lock and writes to no memory
//! that threads share. Changing it is for [`Table`](super::table::ProgramTable) alone, under its lock.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use papaya::{Equivalent, Guard, HashMap, LocalGuard};

use super::entry::{Entry, StoredKey, WantedKey};

/// The entries of a table by their keys.
pub(crate) struct Index<P, S> {
    by_key: HashMap<StoredKey, Arc<Entry<P, S>>, BuildHasherDefault<KeyHasher>>,
}

/// Passes a key's own hash on.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys write one `u64`; anything else still has to give equal hashes for equal input.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Equivalent<StoredKey> for WantedKey<'_> {
    #[inline]
    fn equivalent(&self, stored: &StoredKey) -> bool {
        self.is(stored)
    }
}

impl<P, S> Index<P, S> {
    pub(crate) fn new() -> Self {
        Self { by_key: HashMap::default() }
    }

    /// Keeps what [`Index::find`] gives from being freed.
    #[inline]
    pub(crate) fn pin(&self) -> LocalGuard<'_> {
        self.by_key.guard()
    }

    /// The entry with exactly this key, for as long as the pin is held.
    #[inline]
    pub(crate) fn find<'g>(
        &self,
        wanted: &WantedKey<'_>,
        pin: &'g impl Guard,
    ) -> Option<&'g Arc<Entry<P, S>>> {
        self.by_key.get(wanted, pin)
    }

    /// The entry with exactly this key, to keep.
    pub(crate) fn get(&self, wanted: &WantedKey<'_>) -> Option<Arc<Entry<P, S>>> {
        self.by_key.pin().get(wanted).map(Arc::clone)
    }

    pub(crate) fn insert(&self, entry: &Arc<Entry<P, S>>) {
        self.by_key.pin().insert(entry.key.clone(), Arc::clone(entry));
    }

    pub(crate) fn remove(&self, entry: &Entry<P, S>) {
        self.by_key.pin().remove(&entry.key.wanted());
    }

    pub(crate) fn clear(&self) {
        self.by_key.pin().clear();
    }
}
