//! Stand-in for the cache's index: a list behind a lock of loom's.

use std::sync::Arc;

use crate::entry::{Entry, WantedKey};
use crate::sync::{Mutex, MutexGuard};

/// The entries of a table.
pub(crate) struct Index<P, S> {
    entries: Mutex<Vec<Arc<Entry<P, S>>>>,
}

impl<P, S> Index<P, S> {
    pub(crate) fn new() -> Self {
        Self { entries: Mutex::new(Vec::new()) }
    }

    pub(crate) fn get(&self, wanted: &WantedKey<'_>) -> Option<Arc<Entry<P, S>>> {
        self.lock().iter().find(|entry| wanted.is(&entry.key)).map(Arc::clone)
    }

    pub(crate) fn insert(&self, entry: &Arc<Entry<P, S>>) {
        let mut entries = self.lock();
        entries.retain(|one| one.key != entry.key);
        entries.push(Arc::clone(entry));
    }

    pub(crate) fn remove(&self, entry: &Entry<P, S>) {
        self.lock().retain(|one| one.key != entry.key);
    }

    pub(crate) fn clear(&self) {
        // Entries are dropped after the lock is released, as papaya drops them later.
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Entry<P, S>>>> {
        self.entries.lock().unwrap()
    }
}
