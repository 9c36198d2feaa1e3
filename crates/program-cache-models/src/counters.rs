//! Stand-in for what the cache's `counters` tells of threads: here a model numbers them.

/// A thread, as the cache tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber(pub(crate) usize);

impl ThreadNumber {
    pub(crate) const fn get(self) -> usize {
        self.0
    }
}
