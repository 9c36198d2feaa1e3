//! How far each rank is in each process group, counted from records of operations that begin and end.
//!
//! Records may be lost, so the counters never go back and an end without a beginning counts as both.

use std::collections::BTreeMap;

use crate::group::GroupId;
use crate::latency::record::CollectiveEvent;
use crate::observation::{MAX_AWAITED_RANKS, MAX_PROGRESS_PER_REPORT, Progress};
use crate::rank::Rank;

/// Counters by group and rank.
#[derive(Debug, Clone, Default)]
pub struct ProgressCounters {
    counters: BTreeMap<(GroupId, Rank), Counter>,
    no_place: u64,
}

#[derive(Debug, Clone, Default)]
struct Counter {
    entered: u64,
    finished: u64,
    /// Unfinished transfers by the rank at the other end.
    pending: BTreeMap<Rank, u32>,
}

impl ProgressCounters {
    /// Counts one event.
    pub fn count(&mut self, event: &CollectiveEvent) {
        let place = match event {
            CollectiveEvent::TransferBegan(key) | CollectiveEvent::TransferEnded(key, _) => {
                (key.group, key.rank)
            }
            CollectiveEvent::CollectiveBegan(key) | CollectiveEvent::CollectiveEnded(key, _) => {
                (key.group, key.rank)
            }
        };
        let full = self.counters.len() >= MAX_PROGRESS_PER_REPORT;
        if full && !self.counters.contains_key(&place) {
            self.no_place += 1;
            return;
        }
        let counter = self.counters.entry(place).or_default();
        match event {
            CollectiveEvent::CollectiveBegan(_) => counter.entered += 1,
            CollectiveEvent::CollectiveEnded(..) => {
                counter.finished += 1;
                counter.entered = counter.entered.max(counter.finished);
            }
            CollectiveEvent::TransferBegan(key) => {
                if counter.pending.len() < MAX_AWAITED_RANKS {
                    *counter.pending.entry(key.peer).or_default() += 1;
                } else {
                    self.no_place += 1;
                }
            }
            CollectiveEvent::TransferEnded(key, _) => counter.transfer_ended(key.peer),
        }
    }

    /// The counters.
    #[must_use]
    pub fn report(&self) -> Vec<Progress> {
        let all = self.counters.iter();
        all.map(|((group, rank), counter)| Progress {
            group: *group,
            rank: *rank,
            entered: counter.entered,
            finished: counter.finished,
            awaits: counter.pending.keys().copied().collect(),
        })
        .collect()
    }

    /// Events that were not counted, since the start: too many groups, or too many transfers begun.
    #[must_use]
    pub const fn no_place(&self) -> u64 {
        self.no_place
    }
}

impl Counter {
    fn transfer_ended(&mut self, peer: Rank) {
        if let Some(pending) = self.pending.get_mut(&peer) {
            *pending -= 1;
            if *pending == 0 {
                self.pending.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::{Collective, Direction, EdgeKey, SizeBucket, WaitKey};

    fn wait() -> WaitKey {
        WaitKey {
            group: GroupId::WORLD,
            rank: Rank(0),
            collective: Collective::AllReduce,
            bucket: SizeBucket::of(1),
        }
    }

    fn edge(peer: u32) -> EdgeKey {
        EdgeKey {
            group: GroupId::WORLD,
            rank: Rank(0),
            peer: Rank(peer),
            direction: Direction::Send,
            bucket: SizeBucket::of(1),
        }
    }

    #[test]
    fn beginnings_and_ends_are_counted_and_lost_beginnings_made_good() {
        let mut progress = ProgressCounters::default();
        let events = [
            CollectiveEvent::CollectiveBegan(wait()),
            CollectiveEvent::CollectiveEnded(wait(), 1),
            CollectiveEvent::CollectiveEnded(wait(), 1),
            CollectiveEvent::CollectiveBegan(wait()),
            CollectiveEvent::TransferBegan(edge(4)),
            CollectiveEvent::TransferBegan(edge(5)),
            CollectiveEvent::TransferEnded(edge(4), 1),
            CollectiveEvent::TransferEnded(edge(6), 1),
        ];
        events.iter().for_each(|event| progress.count(event));
        let expected = Progress {
            group: GroupId::WORLD,
            rank: Rank(0),
            entered: 3,
            finished: 2,
            awaits: vec![Rank(5)],
        };
        assert_eq!(progress.report(), [expected]);
    }

    #[test]
    fn groups_and_pending_transfers_are_bounded() {
        let mut progress = ProgressCounters::default();
        let groups = u64::try_from(MAX_PROGRESS_PER_REPORT).unwrap();
        for number in 0..groups + 2 {
            let key = WaitKey { group: GroupId::new(number), ..wait() };
            progress.count(&CollectiveEvent::CollectiveBegan(key));
        }
        assert_eq!((progress.report().len(), progress.no_place()), (MAX_PROGRESS_PER_REPORT, 2));
        let ranks = u32::try_from(MAX_AWAITED_RANKS).unwrap();
        (0..ranks + 1).for_each(|peer| progress.count(&CollectiveEvent::TransferBegan(edge(peer))));
        assert_eq!(progress.no_place(), 3);
    }
}
