//! How far each rank is in each process group, from records of operations that begin and end.
//!
//! Records may be lost. Where they have numbers, the last number says how far a rank is, whatever is
//! missing before it. Where they have none they are counted, and an end without a beginning counts as
//! both. The counters never go back.

use std::collections::{BTreeMap, VecDeque};

use crate::group::GroupId;
use crate::latency::record::CollectiveEvent;
use crate::latency::{Collective, Direction};
use crate::observation::{GroupProgress, MAX_AWAITED_RANKS, MAX_PROGRESS_PER_REPORT};
use crate::rank::Rank;

/// Numbers of transfers under way that are kept for each rank at the other end and direction.
const MAX_NUMBERS: usize = 8;
/// Channels carry several transfers at once, which end in any order. One whose end was not reported when so
/// many later ones have begun has ended all the same.
const LATE: u64 = 1024;

/// Collectives of each group and rank that are kept.
const LATEST: usize = 4;

/// A collective that a rank has begun lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatestCollective {
    /// In which group.
    pub group: GroupId,
    /// Which rank.
    pub rank: Rank,
    /// Its number among the rank's collectives of the group.
    pub number: u64,
    /// Which it is.
    pub collective: Collective,
    /// How large, in bytes or elements; 0 where that is not known.
    pub size: u64,
    /// Whether it has ended.
    pub has_ended: bool,
}

/// Counters by group and rank.
#[derive(Debug, Clone, Default)]
pub struct ProgressCounters {
    counters: BTreeMap<(GroupId, Rank), ProgressCounter>,
    no_place: u64,
}

#[derive(Debug, Clone, Default)]
struct ProgressCounter {
    entered: u64,
    finished: u64,
    transferred: u64,
    /// Transfers under way, by the rank at the other end.
    pending: BTreeMap<(Rank, Direction), Pending>,
    /// The latest collectives; the last one has begun last.
    latest: VecDeque<LatestCollective>,
}

/// Transfers under way with one rank in one direction.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// How many there are of those that have no numbers.
    unnumbered: u32,
    /// The others' numbers; at most [`MAX_NUMBERS`].
    numbers: Vec<u64>,
}

impl ProgressCounters {
    /// Counts one event, which has this number if its client gives numbers: of collectives, how many
    /// the rank has begun in the group; of transfers, one that grows.
    pub fn count(&mut self, event: &CollectiveEvent, number: Option<u64>) {
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
            CollectiveEvent::CollectiveBegan(_) => {
                let number = number.unwrap_or(counter.entered.saturating_add(1));
                counter.entered = counter.entered.max(number);
            }
            CollectiveEvent::CollectiveEnded(..) => {
                let number = number.unwrap_or(counter.finished.saturating_add(1));
                counter.finished = counter.finished.max(number);
                counter.entered = counter.entered.max(counter.finished);
            }
            CollectiveEvent::TransferBegan(key) => {
                let is_counted = counter.transfer_began((key.peer, key.direction), number);
                self.no_place += u64::from(!is_counted);
            }
            CollectiveEvent::TransferEnded(key, _) => {
                counter.transfer_ended((key.peer, key.direction), number);
            }
        }
    }

    /// Keeps what a collective is that was counted last, and how large.
    pub fn note(&mut self, event: &CollectiveEvent, size: u64) {
        let (key, has_ended) = match event {
            CollectiveEvent::CollectiveBegan(key) => (key, false),
            CollectiveEvent::CollectiveEnded(key, _) => (key, true),
            CollectiveEvent::TransferBegan(_) | CollectiveEvent::TransferEnded(..) => return,
        };
        let (group, rank, collective) = (key.group, key.rank, key.collective);
        let Some(counter) = self.counters.get_mut(&(group, rank)) else { return };
        let number = if has_ended { counter.finished } else { counter.entered };
        let mut known = counter.latest.iter_mut();
        if let Some(known) = known.find(|known| known.number == number) {
            known.has_ended |= has_ended;
            return;
        }
        if counter.latest.len() >= LATEST {
            counter.latest.pop_front();
        }
        counter.latest.push_back(LatestCollective {
            group,
            rank,
            number,
            collective,
            size,
            has_ended,
        });
    }

    /// The latest collectives of each rank in each group.
    pub fn latest(&self) -> impl Iterator<Item = LatestCollective> {
        self.counters.values().flat_map(|counter| counter.latest.iter().copied())
    }

    /// The counters.
    #[must_use]
    pub fn report(&self) -> Vec<GroupProgress> {
        let all = self.counters.iter();
        all.map(|((group, rank), counter)| GroupProgress {
            group: *group,
            rank: *rank,
            entered: counter.entered,
            finished: counter.finished,
            sends_to: counter.pending(Direction::Send),
            receives_from: counter.pending(Direction::Receive),
            transferred: counter.transferred,
        })
        .collect()
    }

    /// Events that were not counted, since the start: too many groups, or too many transfers begun.
    #[must_use]
    pub const fn no_place(&self) -> u64 {
        self.no_place
    }
}

impl ProgressCounter {
    /// Says whether it was counted.
    fn transfer_began(&mut self, with: (Rank, Direction), number: Option<u64>) -> bool {
        if self.pending.len() >= MAX_AWAITED_RANKS && !self.pending.contains_key(&with) {
            return false;
        }
        let pending = self.pending.entry(with).or_default();
        match number {
            None => pending.unnumbered = pending.unnumbered.saturating_add(1),
            Some(number) if pending.numbers.contains(&number) => {}
            Some(_) if pending.numbers.len() >= MAX_NUMBERS => return false,
            Some(number) => pending.numbers.push(number),
        }
        true
    }

    fn transfer_ended(&mut self, with: (Rank, Direction), number: Option<u64>) {
        self.transferred = self.transferred.saturating_add(1);
        if let Some(pending) = self.pending.get_mut(&with) {
            match number {
                None => pending.unnumbered = pending.unnumbered.saturating_sub(1),
                Some(ended) => {
                    let is_late = |begun: u64| begun.saturating_add(LATE) <= ended;
                    pending.numbers.retain(|begun| *begun != ended && !is_late(*begun));
                }
            }
            if pending.unnumbered == 0 && pending.numbers.is_empty() {
                self.pending.remove(&with);
            }
        }
    }

    fn pending(&self, direction: Direction) -> Vec<Rank> {
        let those = self.pending.keys().filter(|(_, way)| *way == direction);
        those.map(|(rank, _)| *rank).collect()
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
    fn the_latest_collectives_are_kept_with_their_sizes() {
        let mut progress = ProgressCounters::default();
        let mut count = |event: CollectiveEvent, size| {
            progress.count(&event, None);
            progress.note(&event, size);
        };
        for size in 1..=6 {
            count(CollectiveEvent::CollectiveBegan(wait()), size * 10);
            if size < 6 {
                count(CollectiveEvent::CollectiveEnded(wait(), Some(1)), size * 10);
            }
        }
        count(CollectiveEvent::TransferBegan(edge(1)), 7);
        let kept: Vec<_> =
            progress.latest().map(|one| (one.number, one.size, one.has_ended)).collect();
        assert_eq!(kept, [(3, 30, true), (4, 40, true), (5, 50, true), (6, 60, false)]);
    }

    #[test]
    fn beginnings_and_ends_are_counted_and_lost_beginnings_made_good() {
        let mut progress = ProgressCounters::default();
        let events = [
            CollectiveEvent::CollectiveBegan(wait()),
            CollectiveEvent::CollectiveEnded(wait(), Some(1)),
            CollectiveEvent::CollectiveEnded(wait(), Some(1)),
            CollectiveEvent::CollectiveBegan(wait()),
            CollectiveEvent::TransferBegan(edge(4)),
            CollectiveEvent::TransferBegan(edge(5)),
            CollectiveEvent::TransferEnded(edge(4), Some(1)),
            CollectiveEvent::TransferEnded(edge(6), Some(1)),
        ];
        events.iter().for_each(|event| progress.count(event, None));
        let expected = GroupProgress {
            group: GroupId::WORLD,
            rank: Rank(0),
            entered: 3,
            finished: 2,
            sends_to: vec![Rank(5)],
            receives_from: Vec::new(),
            transferred: 2,
        };
        assert_eq!(progress.report(), [expected]);
    }

    #[test]
    fn records_that_are_lost_make_nobody_look_behind_or_waiting() {
        let events = [
            (CollectiveEvent::CollectiveBegan(wait()), 1),
            (CollectiveEvent::CollectiveEnded(wait(), Some(1)), 1),
            (CollectiveEvent::CollectiveBegan(wait()), 2),
            (CollectiveEvent::CollectiveEnded(wait(), Some(1)), 2),
            (CollectiveEvent::TransferBegan(edge(4)), 1),
            (CollectiveEvent::TransferEnded(edge(4), Some(1)), 1),
            (CollectiveEvent::TransferBegan(edge(4)), 2),
            (CollectiveEvent::TransferEnded(edge(4), Some(1)), 2),
            (CollectiveEvent::CollectiveBegan(wait()), 3),
            (CollectiveEvent::CollectiveEnded(wait(), Some(1)), 3),
        ];
        let last = events.len() - 2;
        for lost in 0_u32..1 << last {
            let mut progress = ProgressCounters::default();
            let is_reported = |place: &usize| *place >= last || lost >> place & 1 == 0;
            // Ends of transfers come: clients send again what they owe.
            for place in
                (0..events.len()).filter(|place| is_reported(place) || [5, 7].contains(place))
            {
                progress.count(&events[place].0, Some(events[place].1));
            }
            let found = progress.report().remove(0);
            assert_eq!((found.entered, found.finished, found.sends_to), (3, 3, vec![]), "{lost:b}");
        }
    }

    #[test]
    fn a_transfer_whose_end_is_lost_is_not_awaited_for_ever() {
        let mut progress = ProgressCounters::default();
        let began = |number| (CollectiveEvent::TransferBegan(edge(4)), number);
        let ended = |number| (CollectiveEvent::TransferEnded(edge(4), Some(1)), number);
        let awaits = |progress: &mut ProgressCounters, (event, number)| {
            progress.count(&event, Some(number));
            progress.report().remove(0).sends_to
        };
        assert_eq!(awaits(&mut progress, began(1)), [Rank(4)]);
        assert_eq!(awaits(&mut progress, began(2)), [Rank(4)]);
        assert_eq!(awaits(&mut progress, ended(2)), [Rank(4)], "channels overtake each other");
        assert_eq!(awaits(&mut progress, ended(1 + LATE)), []);
    }

    #[test]
    fn what_is_reported_twice_or_late_changes_nothing() {
        let mut progress = ProgressCounters::default();
        let events = [
            (CollectiveEvent::CollectiveBegan(wait()), 9),
            (CollectiveEvent::CollectiveBegan(wait()), 9),
            (CollectiveEvent::CollectiveEnded(wait(), Some(1)), 7),
            (CollectiveEvent::CollectiveEnded(wait(), Some(1)), 8),
            (CollectiveEvent::CollectiveEnded(wait(), Some(1)), 7),
            (CollectiveEvent::TransferBegan(edge(4)), 3),
            (CollectiveEvent::TransferBegan(edge(4)), 3),
            (CollectiveEvent::TransferEnded(edge(4), Some(1)), 2),
        ];
        events.iter().for_each(|(event, number)| progress.count(event, Some(*number)));
        let found = progress.report().remove(0);
        assert_eq!((found.entered, found.finished, found.sends_to), (9, 8, vec![Rank(4)]));
    }

    #[test]
    fn groups_and_pending_transfers_are_bounded() {
        let mut progress = ProgressCounters::default();
        let groups = u64::try_from(MAX_PROGRESS_PER_REPORT).unwrap();
        for number in 0..groups + 2 {
            let key = WaitKey { group: GroupId::new(number), ..wait() };
            progress.count(&CollectiveEvent::CollectiveBegan(key), None);
        }
        assert_eq!((progress.report().len(), progress.no_place()), (MAX_PROGRESS_PER_REPORT, 2));
        let ranks = u32::try_from(MAX_AWAITED_RANKS).unwrap();
        let began = |peer| CollectiveEvent::TransferBegan(edge(peer));
        (0..=ranks).for_each(|peer| progress.count(&began(peer), None));
        assert_eq!(progress.no_place(), 3);
    }
}
