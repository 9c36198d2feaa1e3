//! The agent's side of latencies: takes records, maps their ranks, and gives a report its part.
//!
//! It keeps no record. What it refuses or drops it counts.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::group::GroupId;
use crate::latency::record::{
    CollectiveEvent, CollectiveRecord, Everybody, OperationType, RecordError, Waited,
};
use crate::latency::{EdgeKey, EdgeWindow, WaitKey, WaitWindow};
use crate::observation::Observation;
use crate::rank::Rank;
use crate::tracking::progress::{LatestCollective, ProgressCounters};
use crate::tracking::windows::{NotTaken, WindowLength, Windows};

/// Process groups whose members an agent keeps.
pub const MAX_GROUPS: usize = 4096;
/// Ranks that all groups of an agent may have together.
pub const MAX_MEMBERS: usize = 1 << 20;

/// What was not taken, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackerCounts {
    /// Records that were taken.
    pub taken: u64,
    /// Records of groups whose members are unnamed.
    pub unknown_group: u64,
    /// Records with a rank outside their context, or without a duration.
    pub implausible: u64,
    /// Records of ranks that are not this node's.
    pub elsewhere: u64,
    /// Groups that were not kept: there were too many, or their members were.
    pub groups_refused: u64,
    /// Latencies of transfers that were not taken.
    pub edges: NotTaken,
    /// Times in collectives that were not taken.
    pub waits: NotTaken,
    /// Events that had no place in the progress counters.
    pub progress: u64,
}

impl TrackerCounts {
    /// Both together.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            taken: self.taken.saturating_add(other.taken),
            unknown_group: self.unknown_group.saturating_add(other.unknown_group),
            implausible: self.implausible.saturating_add(other.implausible),
            elsewhere: self.elsewhere.saturating_add(other.elsewhere),
            groups_refused: self.groups_refused.saturating_add(other.groups_refused),
            edges: self.edges.plus(&other.edges),
            waits: self.waits.plus(&other.waits),
            progress: self.progress.saturating_add(other.progress),
        }
    }
}

/// Latencies, times in collectives and progress of a node's workers in one epoch.
#[derive(Debug, Clone)]
pub struct Tracker {
    world: Everybody,
    local: Range<u32>,
    groups: BTreeMap<GroupId, Vec<Rank>>,
    members: usize,
    edges: Windows<EdgeKey>,
    waits: Windows<WaitKey>,
    progress: ProgressCounters,
    excused: bool,
    counts: TrackerCounts,
}

impl Tracker {
    /// A tracker for an epoch with `world_size` ranks, all of which may tell it something.
    #[must_use]
    pub fn new(world_size: u32) -> Self {
        Self::of_ranks(0..world_size, world_size, WindowLength::default())
    }

    /// A tracker for an epoch with `world_size` ranks that listens to the ranks `local` only, and keeps
    /// the latest `window` latencies of each key.
    #[must_use]
    pub fn of_ranks(local: Range<u32>, world_size: u32, window: WindowLength) -> Self {
        Self {
            world: Everybody { world_size },
            local,
            groups: BTreeMap::new(),
            members: 0,
            edges: Windows::of(window),
            waits: Windows::of(window),
            progress: ProgressCounters::default(),
            excused: false,
            counts: TrackerCounts::default(),
        }
    }

    /// Learns the members of a group, in the order of its ranks. Says whether it did: not when there
    /// are [`MAX_GROUPS`] or would be more than [`MAX_MEMBERS`] ranks in them.
    pub fn learn_group(&mut self, group: GroupId, members: Vec<Rank>) -> bool {
        let replaced = self.groups.get(&group).map_or(0, Vec::len);
        let crowded = self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&group);
        let total = self.members - replaced + members.len();
        if crowded || total > MAX_MEMBERS {
            self.counts.groups_refused += 1;
            return false;
        }
        self.members = total;
        self.groups.insert(group, members);
        true
    }

    /// Counts a group that could not be learnt because its members are no ranks of the job.
    pub const fn refuse_group(&mut self) {
        self.counts.groups_refused += 1;
    }

    /// Counts a record that is none of an operation and cannot be taken, since its rank is another node's or its duration
    /// none.
    pub const fn refuse(&mut self, is_own: bool) {
        if is_own {
            self.counts.implausible += 1;
        } else {
            self.counts.elsewhere += 1;
        }
    }

    /// Takes one record, and says what it means. One of an unknown group is of all ranks if its context has as many.
    ///
    /// # Errors
    /// When its group is unknown, a rank outside its context, its own rank another node's, or its
    /// duration none.
    pub fn take(&mut self, record: &CollectiveRecord) -> Result<CollectiveEvent, RecordError> {
        let event = match self.event(record) {
            Ok(event) => event,
            Err(error) => {
                match error {
                    RecordError::UnknownGroup => self.counts.unknown_group += 1,
                    RecordError::Elsewhere { .. } => self.counts.elsewhere += 1,
                    _ => self.counts.implausible += 1,
                }
                return Err(error);
            }
        };
        self.counts.taken += 1;
        self.progress.count(&event, record.sequence);
        if let OperationType::Collective { size, .. } = record.operation {
            self.progress.note(&event, size);
        }
        match event {
            CollectiveEvent::TransferEnded(key, Some(latency_ns)) => {
                self.edges.record(key, latency_ns, record.waited);
            }
            CollectiveEvent::CollectiveEnded(key, Some(latency_ns)) => {
                self.waits.record(key, latency_ns, Waited::default());
            }
            CollectiveEvent::TransferBegan(_)
            | CollectiveEvent::CollectiveBegan(_)
            | CollectiveEvent::TransferEnded(_, None)
            | CollectiveEvent::CollectiveEnded(_, None) => {}
        }
        Ok(event)
    }

    fn event(&self, record: &CollectiveRecord) -> Result<CollectiveEvent, RecordError> {
        let group = record.group.unwrap_or(GroupId::WORLD);
        let event = match self.groups.get(&group) {
            Some(members) => record.event(group, members),
            None if self.is_of_everybody(record) => record.event(group, &self.world),
            None => record.event_of_stranger(group),
        }?;
        let rank = event.rank();
        if self.local.contains(&rank.0) { Ok(event) } else { Err(RecordError::Elsewhere { rank }) }
    }

    /// Whether a record of a group without named members is of one of all ranks, in their order.
    fn is_of_everybody(&self, record: &CollectiveRecord) -> bool {
        let in_order = record.global_rank.is_none_or(|rank| rank.0 == record.context_rank);
        record.context_size == self.world.world_size && in_order
    }

    /// Says whether what comes now is slow on purpose, a checkpoint say.
    pub const fn excuse(&mut self, excused: bool) {
        self.excused = excused;
        self.edges.excuse(excused);
        self.waits.excuse(excused);
    }

    /// The latest collectives of each rank in each group.
    pub fn latest_collectives(&self) -> impl Iterator<Item = LatestCollective> {
        self.progress.latest()
    }

    /// Puts what came since the last report into `observation`.
    pub fn report(&mut self, observation: &mut Observation) {
        let edges = self.edges.report().into_iter();
        observation.edges = edges.map(|(key, window)| EdgeWindow { key, window }).collect();
        let waits = self.waits.report().into_iter();
        observation.waits = waits.map(|(key, window)| WaitWindow { key, window }).collect();
        observation.progress = self.progress.report();
        observation.excused = self.excused;
    }

    /// What was taken and what was not.
    #[must_use]
    pub fn counts(&self) -> TrackerCounts {
        TrackerCounts {
            edges: self.edges.not_taken(),
            waits: self.waits.not_taken(),
            progress: self.progress.no_place(),
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::record::{OperationType, Stage};
    use crate::latency::{Collective, Direction};
    use crate::tracking::windows::WARM_UP_SAMPLES;

    fn record(operation: OperationType, size: u32, finished: bool) -> CollectiveRecord {
        let stage = if finished { Stage::Ended { start_us: 10, end_us: 40 } } else { Stage::Began };
        let (context_rank, context_size, group) = (0, size, None);
        CollectiveRecord {
            operation,
            group,
            context_rank,
            global_rank: None,
            context_size,
            stage,
            sequence: None,
            step: None,
            waited: Waited::default(),
        }
    }

    const SEND: OperationType =
        OperationType::Transfer { direction: Direction::Send, remote_rank: 1, bytes: 64 };
    const REDUCE: OperationType =
        OperationType::Collective { collective: Collective::AllReduce, size: 64 };

    #[test]
    fn only_finished_transfers_are_measured_and_both_ends_count_as_progress() {
        let mut tracker = Tracker::new(4);
        for _ in 0..WARM_UP_SAMPLES + 5 {
            for finished in [false, true] {
                tracker.take(&record(SEND, 4, finished)).unwrap();
                tracker.take(&record(REDUCE, 4, finished)).unwrap();
            }
        }
        tracker.take(&record(REDUCE, 4, false)).unwrap();
        let mut observation = Observation::default();
        tracker.report(&mut observation);
        let metrics = |window: crate::latency::Window| (window.count, window.median_ns);
        assert_eq!(metrics(observation.edges[0].window), (5, 30_000));
        assert_eq!(metrics(observation.waits[0].window), (5, 30_000));
        assert_eq!(observation.progress[0].entered, 26);
        assert_eq!(observation.progress[0].finished, 25);
        assert_eq!(tracker.counts().taken, 101);
    }

    #[test]
    fn ranks_of_other_nodes_are_not_listened_to() {
        let mut tracker = Tracker::of_ranks(2..4, 8, WindowLength::default());
        assert_eq!(
            tracker.take(&record(REDUCE, 8, true)),
            Err(RecordError::Elsewhere { rank: Rank(0) })
        );
        let own = CollectiveRecord { context_rank: 3, ..record(REDUCE, 8, true) };
        assert!(tracker.take(&own).is_ok());
        let stranger = GroupId::of_name("an unnamed group");
        let own = CollectiveRecord { group: Some(stranger), global_rank: Some(Rank(2)), ..own };
        assert!(tracker.take(&own).is_ok());
        let other = CollectiveRecord { global_rank: Some(Rank(4)), ..own };
        assert_eq!(tracker.take(&other), Err(RecordError::Elsewhere { rank: Rank(4) }));
        assert_eq!((tracker.counts().taken, tracker.counts().elsewhere), (2, 2));
    }

    #[test]
    fn a_group_must_be_known_and_groups_are_bounded() {
        let mut tracker = Tracker::new(4);
        let smaller = record(SEND, 2, true);
        assert_eq!(tracker.take(&smaller), Err(RecordError::UnknownGroup));
        assert!(tracker.learn_group(GroupId::WORLD, vec![Rank(2), Rank(3)]));
        assert!(tracker.take(&smaller).is_ok());
        assert!(!tracker.learn_group(GroupId::new(1), vec![Rank(0); MAX_MEMBERS]));
        let counts = tracker.counts();
        assert_eq!((counts.unknown_group, counts.groups_refused), (1, 1));
    }
}
