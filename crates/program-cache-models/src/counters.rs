//! Stand-in for what the cache's `counters` reports about threads: here a model numbers them.

/// A thread, as the cache distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber(pub(crate) usize);

impl ThreadNumber {
    pub(crate) const fn get(self) -> usize {
        self.0
    }
}
