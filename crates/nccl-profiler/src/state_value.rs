//! A number that threads share.
//!
//! What a thread wrote before it added to one is seen by a reader of the sum first: counters of
//! beginnings and ends are read before the times that belong to them.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number.
#[derive(Debug, Default)]
pub(crate) struct FormattedNumber(AtomicU64);

impl FormattedNumber {
    pub(crate) fn get(&self) -> u64 {
        // SYNC: counted.
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, value: u64) {
        // SYNC: counted.
        self.0.fetch_add(value, Ordering::Release);
    }

    /// Lowers it to `value` if it is more.
    pub(crate) fn lower_to(&self, value: u64) {
        self.0.fetch_min(value, Ordering::Relaxed);
    }

    /// Raises it to `value` if it is less.
    pub(crate) fn raise_to(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}
