//! Counters of what is dropped or refused, one for each queue or limit of the service.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::metrics::QueueDrops;

/// Queues and limits that may have a tally.
pub const MAX_TALLIES: usize = 64;

/// Counts what one queue or limit drops. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<AtomicU64>);

/// All tallies by name.
#[derive(Debug, Default)]
pub(crate) struct Tallies(Mutex<BTreeMap<&'static str, Tally>>);

impl Tally {
    /// Counts so many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tallies {
    /// The tally of the queue of this name, made at the first call.
    pub(crate) fn of(&self, queue: &'static str) -> Tally {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = all.len() < MAX_TALLIES;
        assert!(room || all.contains_key(queue), "names are literals, of which there are few");
        all.entry(queue).or_default().clone()
    }

    /// All of them now.
    pub(crate) fn all(&self) -> Vec<QueueDrops> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(queue, tally)| QueueDrops { queue, total: tally.total() }).collect()
    }
}
