//! Nodes by small numbers, and the node that each rank runs on in the present epoch.
//!
//! A node keeps its number over epochs, so its history stays its own when ranks move.

use std::collections::BTreeMap;

use crate::node::NodeName;
use crate::rank::{Rank, RankMap};

/// Nodes that are kept apart; far more than a job has, since the replaced are kept too.
pub(super) const MAX_NODES: usize = 1 << 17;

#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    names: Vec<NodeName>,
    numbers: BTreeMap<NodeName, u32>,
    /// By rank; `None` where the rank's slot is vacant.
    of_rank: Vec<Option<u32>>,
    /// Whether each node holds a slot.
    holds_slot: Vec<bool>,
}

impl Members {
    /// Takes over the map of a new epoch. Nodes beyond [`MAX_NODES`] are left out.
    pub(super) fn set_ranks(&mut self, map: &RankMap) {
        let holders: Vec<NodeName> = map.holders().map(|(_, node)| node.clone()).collect();
        holders.iter().for_each(|node| self.learn(node));
        self.holds_slot = self.names.iter().map(|node| map.slot_of(node).is_some()).collect();
        let node_of = |rank| self.number(map.node_of_rank(Rank(rank))?);
        self.of_rank = (0..map.world_size()).map(node_of).collect();
    }

    fn learn(&mut self, node: &NodeName) {
        if self.numbers.contains_key(node) || self.names.len() >= MAX_NODES {
            return;
        }
        let number = u32::try_from(self.names.len()).expect("MAX_NODES fits in a u32");
        self.names.push(node.clone());
        self.numbers.insert(node.clone(), number);
    }

    /// The node's number, if it ever held a slot.
    pub(super) fn number(&self, node: &NodeName) -> Option<u32> {
        self.numbers.get(node).copied()
    }

    /// The node with this number.
    pub(super) fn name(&self, number: u32) -> &NodeName {
        &self.names[place(number)]
    }

    /// The node that the rank runs on.
    pub(super) fn of_rank(&self, rank: Rank) -> Option<u32> {
        *self.of_rank.get(usize::try_from(rank.0).ok()?)?
    }

    /// All ranks that have a node.
    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> {
        let ranks = (0..).map(Rank).zip(&self.of_rank);
        ranks.filter_map(|(rank, node)| node.map(|_| rank))
    }

    /// The nodes that hold a slot.
    pub(super) fn holders(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.holds_slot).filter_map(|(number, holds)| holds.then_some(number))
    }

    /// Whether the node holds a slot.
    pub(super) fn holds_slot(&self, number: u32) -> bool {
        self.holds_slot.get(place(number)).copied().unwrap_or(false)
    }

    /// How many nodes there are, present and past.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }
}

/// Where the node with this number is in a list of all.
pub(super) fn place(number: u32) -> usize {
    usize::try_from(number).expect("a u32 fits in a usize")
}
