//! Who computes which part of the job: slots, the nodes in them, and the ranks that follow.
//!
//! A slot keeps its ranks for as long as the map is not compacted; nodes come and go in it. So a
//! replacement changes no other ranks.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use crate::group::fnv_1a;
use crate::node::NodeName;

/// Slots a job may have.
pub const MAX_SLOTS: u32 = 65_536;

/// The number of one worker among all of the job (PyTorch's `RANK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// A place for one node in the job (PyTorch's `GROUP_RANK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl fmt::Display for Rank {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How many workers a node runs, at least one and at most [`MAX_WORKERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkersPerNode(NonZeroU32);

/// Workers that one node may run.
pub const MAX_WORKERS: u32 = 1024;

impl WorkersPerNode {
    /// This many; `None` for zero and for more than [`MAX_WORKERS`].
    #[must_use]
    pub const fn new(workers: u32) -> Option<Self> {
        match NonZeroU32::new(workers) {
            Some(workers) if workers.get() <= MAX_WORKERS => Some(Self(workers)),
            _ => None,
        }
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// Which node is in which slot. No node is in two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankMap {
    workers: WorkersPerNode,
    holders: Vec<Option<NodeName>>,
    slots: BTreeMap<NodeName, Slot>,
    digest: u64,
}

impl RankMap {
    /// A map of `slots` vacant slots, at most [`MAX_SLOTS`].
    #[must_use]
    pub fn vacant(slots: u32, workers: WorkersPerNode) -> Self {
        let count = usize::try_from(slots.min(MAX_SLOTS)).expect("65,536 fits in a usize");
        Self { workers, holders: vec![None; count], slots: BTreeMap::new(), digest: 0 }
    }

    /// How many slots there are, vacant ones included.
    #[must_use]
    pub fn slot_count(&self) -> u32 {
        u32::try_from(self.holders.len()).expect("a map has at most MAX_SLOTS slots")
    }

    /// How many workers each slot has.
    #[must_use]
    pub const fn workers_per_node(&self) -> WorkersPerNode {
        self.workers
    }

    /// How many ranks there are (PyTorch's `WORLD_SIZE`).
    #[must_use]
    pub fn world_size(&self) -> u32 {
        self.slot_count() * self.workers.get()
    }

    /// Who is in `slot`.
    #[must_use]
    pub fn holder(&self, slot: Slot) -> Option<&NodeName> {
        self.holders.get(usize::try_from(slot.0).ok()?)?.as_ref()
    }

    /// The slot that `node` is in.
    #[must_use]
    pub fn slot_of(&self, node: &NodeName) -> Option<Slot> {
        self.slots.get(node).copied()
    }

    /// The first rank of `slot`; the others follow without a gap.
    #[must_use]
    pub const fn first_rank(&self, slot: Slot) -> Rank {
        Rank(slot.0 * self.workers.get())
    }

    /// The slot that `rank` belongs to, if the job has that rank.
    #[must_use]
    pub fn slot_of_rank(&self, rank: Rank) -> Option<Slot> {
        (rank.0 < self.world_size()).then(|| Slot(rank.0 / self.workers.get()))
    }

    /// The node that `rank` runs on; `None` for a rank that the job does not have or whose slot is
    /// vacant.
    #[must_use]
    pub fn node_of_rank(&self, rank: Rank) -> Option<&NodeName> {
        self.holder(self.slot_of_rank(rank)?)
    }

    /// The nodes that hold a slot, in the order of their slots.
    pub fn holders(&self) -> impl Iterator<Item = (Slot, &NodeName)> {
        (0..)
            .map(Slot)
            .zip(&self.holders)
            .filter_map(|(slot, holder)| Some((slot, holder.as_ref()?)))
    }

    /// The slots without a node, in order.
    pub fn vacancies(&self) -> impl Iterator<Item = Slot> {
        (0..).map(Slot).zip(&self.holders).filter(|(_, holder)| holder.is_none()).map(|one| one.0)
    }

    /// How many slots have a node.
    #[must_use]
    pub fn holder_count(&self) -> usize {
        self.slots.len()
    }

    /// Whether every slot has a node.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.slots.len() == self.holders.len()
    }

    /// Puts `node` into the vacant `slot`. Says whether it did: not when the slot is taken or does
    /// not exist, or the node already has one.
    #[must_use]
    pub fn fill(&mut self, slot: Slot, node: &NodeName) -> bool {
        let index = usize::try_from(slot.0).expect("a slot's number fits in a usize");
        let free = self.holders.get(index).is_some_and(Option::is_none);
        if !free || self.slots.contains_key(node) {
            return false;
        }
        self.holders[index] = Some(node.clone());
        self.slots.insert(node.clone(), slot);
        self.digest = self.digest.wrapping_add(entry_digest(slot, node));
        true
    }

    /// Takes `node` out of its slot, which it returns.
    pub fn vacate(&mut self, node: &NodeName) -> Option<Slot> {
        let slot = self.slots.remove(node)?;
        let index = usize::try_from(slot.0).expect("a slot's number fits in a usize");
        self.holders[index] = None;
        self.digest = self.digest.wrapping_sub(entry_digest(slot, node));
        Some(slot)
    }

    /// Leaves out the vacant slots, so that nodes behind one move up and the job is smaller.
    #[must_use]
    pub fn compacted(&self) -> Self {
        let nodes: Vec<&NodeName> = self.holders.iter().flatten().collect();
        let count = u32::try_from(nodes.len()).expect("a map has at most MAX_SLOTS slots");
        let mut smaller = Self::vacant(count, self.workers);
        for (slot, node) in (0..).map(Slot).zip(nodes) {
            let filled = smaller.fill(slot, node);
            assert!(filled, "a node is in one slot, and the new slot is vacant");
        }
        smaller
    }

    /// Adds vacant slots behind the last until there are `slots`, at most [`MAX_SLOTS`].
    pub fn grow_to(&mut self, slots: u32) {
        let count = usize::try_from(slots.min(MAX_SLOTS)).expect("65,536 fits in a usize");
        if count > self.holders.len() {
            self.holders.resize(count, None);
        }
    }

    /// A number that distinguishes two maps: the sum, modulo 2^64, of a mixed FNV-1a of each held slot
    /// and its node, so that a change of one slot changes it in one step. For mistakes, not for
    /// malice.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }
}

fn entry_digest(slot: Slot, node: &NodeName) -> u64 {
    // FNV-1a, then the finalizer of SplitMix64, since a plain sum of FNV values would keep their weak low
    // bits.
    let bytes = slot.0.to_le_bytes().into_iter().chain(node.as_str().bytes());
    let fnv = fnv_1a(bytes);
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NodeName {
        NodeName::new(text).unwrap()
    }

    fn map(nodes: &[&str], workers: u32) -> RankMap {
        let count = u32::try_from(nodes.len()).unwrap();
        let mut map = RankMap::vacant(count, WorkersPerNode::new(workers).unwrap());
        for (slot, node) in (0..).map(Slot).zip(nodes) {
            assert!(map.fill(slot, &name(node)));
        }
        map
    }

    fn shown(map: &RankMap) -> Vec<(u32, &str)> {
        map.holders().map(|(slot, node)| (slot.0, node.as_str())).collect()
    }

    #[test]
    fn a_spare_takes_the_hole_and_nobody_moves() {
        let mut map = map(&["a", "b", "c"], 2);
        assert_eq!(map.vacate(&name("b")), Some(Slot(1)));
        assert!(!map.is_complete());
        assert!(map.fill(Slot(1), &name("spare")));
        assert_eq!(shown(&map), [(0, "a"), (1, "spare"), (2, "c")]);
        assert_eq!(map.node_of_rank(Rank(3)), Some(&name("spare")));
        assert_eq!(map.node_of_rank(Rank(6)), None);
        assert_eq!(map.first_rank(Slot(2)), Rank(4));
    }

    #[test]
    fn a_node_is_in_one_slot_and_a_slot_has_one_node() {
        let mut map = map(&["a", "b"], 1);
        map.grow_to(3);
        assert!(!map.fill(Slot(2), &name("a")));
        assert!(!map.fill(Slot(0), &name("c")));
        assert!(!map.fill(Slot(9), &name("c")));
        assert_eq!(map.vacancies().collect::<Vec<_>>(), [Slot(2)]);
    }

    #[test]
    fn a_compacted_map_has_no_holes() {
        let mut map = map(&["a", "b", "c"], 4);
        map.vacate(&name("a"));
        let smaller = map.compacted();
        assert_eq!(shown(&smaller), [(0, "b"), (1, "c")]);
        assert_eq!(smaller.world_size(), 8);
    }

    #[test]
    fn the_digest_reports_maps_apart_and_forgets_nothing() {
        let mut first = map(&["a", "b"], 1);
        let same = map(&["a", "b"], 1);
        assert_ne!(first.digest(), map(&["b", "a"], 1).digest());
        first.vacate(&name("a"));
        assert_ne!(first.digest(), same.digest());
        assert!(first.fill(Slot(0), &name("a")));
        assert_eq!(first.digest(), same.digest());
    }
}
