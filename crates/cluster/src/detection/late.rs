//! Whose transfers begin late, since another rank had held theirs up: what the other end of the same
//! transfers measures holds that wait.
//!
//! Kept by what both ends know of a transfer. Two nodes have many ranks, groups and sizes, and some of
//! their transfers are measured alone while others begin late.

use std::collections::BTreeSet;

use crate::detection::matrix::MAX_KEYS;
use crate::group::GroupId;
use crate::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket, Window};
use crate::rank::Rank;

/// The ends of transfers that begin late.
#[derive(Debug, Clone, Default)]
pub(super) struct LateEnds(BTreeSet<(Transfers, Direction)>);

/// Transfers as both of their ends know them: of one group, from one rank to another, of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Transfers {
    group: GroupId,
    sender: Rank,
    receiver: Rank,
    bucket: SizeBucket,
}

impl LateEnds {
    /// Whether most of a window's latencies hold a wait for others: the rank's own within the transfer, or
    /// the peer's before it. Notes whether the rank itself begins late.
    pub(super) fn is_held_up(&mut self, edge: &EdgeWindow) -> bool {
        let EdgeWindow { key, window: Window { count, late, overlapped, .. } } = edge;
        let is_most = |part: u32| part > count / 2;
        // What most clients report: nothing of this.
        if *late == 0 && self.0.is_empty() {
            return is_most(*overlapped);
        }
        let transfers = Transfers::of(*key);
        let end = (transfers, key.direction);
        if !is_most(*late) {
            self.0.remove(&end);
        } else if self.0.len() < MAX_KEYS {
            self.0.insert(end);
        }
        is_most(*overlapped) || self.0.contains(&(transfers, key.direction.reversed()))
    }

    /// Forgets all, for a new epoch.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Transfers {
    const fn of(key: EdgeKey) -> Self {
        let EdgeKey { group, rank, peer, direction, bucket } = key;
        let (sender, receiver) = match direction {
            Direction::Send => (rank, peer),
            Direction::Receive => (peer, rank),
        };
        Self { group, sender, receiver, bucket }
    }
}
