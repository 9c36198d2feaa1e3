//! What each rank of a job sends and receives in one iteration, in order.

use std::collections::BTreeSet;

use telltale_cluster::group::GroupId;
use telltale_cluster::node::NodeName;

use crate::faults::hangs::transfers::HangFault;
use crate::faults::machine::name;

/// Pieces that a tree passes on, one behind the other.
const PIECES: u32 = 4;
/// Batches that a pipeline has under way.
const BATCHES: u32 = 4;
/// The group of the first pipeline.
const PIPELINES: u64 = 1 << 20;

/// One thing that a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Act {
    /// In which group.
    pub group: GroupId,
    /// What.
    pub kind: ActKind,
}

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActKind {
    /// It enters a collective.
    Enter,
    /// It leaves the collective, once all that it has sent has arrived.
    Leave,
    /// It begins to send to this rank, and goes on.
    Send(u32),
    /// It waits until it has received from this rank.
    Receive(u32),
}

/// Which ranks are on which node: as many on each, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankLayout {
    /// How many ranks there are.
    pub ranks: u32,
    /// How many a node has.
    pub per_node: u32,
}

impl RankLayout {
    /// Small jobs have a rank on each node, large ones eight.
    #[must_use]
    pub const fn of(ranks: u32) -> Self {
        let per_node = match ranks {
            ..=8 => 1,
            9..=64 => 4,
            _ => 8,
        };
        Self { ranks, per_node }
    }

    /// How many nodes there are.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        self.ranks / self.per_node
    }

    /// A rank's node.
    #[must_use]
    pub const fn node_of(self, rank: u32) -> u32 {
        rank / self.per_node
    }

    /// Whether a switch lies between these two nodes.
    pub(super) fn is_cut(self, fault: HangFault, from: &NodeName, to: &NodeName) -> bool {
        let HangFault::Switch { first, count } = fault else { return false };
        let inside: BTreeSet<NodeName> = (first..first + count).map(name).collect();
        inside.contains(from) != inside.contains(to)
    }
}

/// Who talks to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// All-reduce around a ring.
    Ring,
    /// All-reduce up and down a binary tree, in pieces.
    Tree,
    /// All-reduce by exchange between pairs that are ever farther apart.
    Pairs,
    /// Batches forward and backward through stages, then a ring within each stage.
    Pipeline,
    /// Rings along each dimension of a torus, one after the other.
    Torus,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Self; 5] = [Self::Ring, Self::Tree, Self::Pairs, Self::Pipeline, Self::Torus];

    /// What each of so many ranks, a power of two, does in one iteration.
    #[must_use]
    pub fn iteration(self, ranks: u32) -> Program {
        let mut program = Program { acts: vec![Vec::new(); index(ranks)] };
        let all: Vec<u32> = (0..ranks).collect();
        match self {
            Self::Ring => program.ring(GroupId::WORLD, &all),
            Self::Tree => program.tree(ranks),
            Self::Pairs => program.pairs(ranks),
            Self::Pipeline => program.pipelines(ranks),
            Self::Torus => program.torus(ranks),
        }
        program
    }
}

/// What each rank does in one iteration.
#[derive(Debug, Clone)]
pub struct Program {
    /// By rank.
    pub acts: Vec<Vec<Act>>,
}

impl Program {
    /// How many transfers an iteration has.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        let sends = |acts: &Vec<Act>| acts.iter().filter(|act| act.is_send()).count();
        self.acts.iter().map(|acts| u64::try_from(sends(acts)).expect("it fits")).sum()
    }

    /// Ranks that send to a rank of another node, and to which.
    #[must_use]
    pub fn links(&self, layout: RankLayout) -> Vec<(u32, u32)> {
        let mut links = BTreeSet::new();
        for (rank, acts) in (0..).zip(&self.acts) {
            for act in acts {
                if let ActKind::Send(to) = act.kind
                    && layout.node_of(rank) != layout.node_of(to)
                {
                    links.insert((rank, to));
                }
            }
        }
        links.into_iter().collect()
    }

    fn add(&mut self, rank: u32, group: GroupId, kind: ActKind) {
        self.acts[index(rank)].push(Act { group, kind });
    }

    fn ring(&mut self, group: GroupId, members: &[u32]) {
        let count = members.len();
        for (place, rank) in members.iter().enumerate() {
            let next = members[(place + 1) % count];
            let previous = members[(place + count - 1) % count];
            self.add(*rank, group, ActKind::Enter);
            for _ in 0..2 * (count - 1) {
                self.add(*rank, group, ActKind::Send(next));
                self.add(*rank, group, ActKind::Receive(previous));
            }
            self.add(*rank, group, ActKind::Leave);
        }
    }

    fn tree(&mut self, ranks: u32) {
        let group = GroupId::WORLD;
        for rank in 0..ranks {
            let parent = rank.checked_sub(1).map(|below| below / 2);
            let children = [2 * rank + 1, 2 * rank + 2].into_iter().filter(|child| *child < ranks);
            self.add(rank, group, ActKind::Enter);
            for _ in 0..PIECES {
                children.clone().for_each(|child| self.add(rank, group, ActKind::Receive(child)));
                parent.into_iter().for_each(|to| self.add(rank, group, ActKind::Send(to)));
            }
            for _ in 0..PIECES {
                parent.into_iter().for_each(|from| self.add(rank, group, ActKind::Receive(from)));
                children.clone().for_each(|child| self.add(rank, group, ActKind::Send(child)));
            }
            self.add(rank, group, ActKind::Leave);
        }
    }

    fn pairs(&mut self, ranks: u32) {
        let group = GroupId::WORLD;
        for rank in 0..ranks {
            self.add(rank, group, ActKind::Enter);
            for bit in 0..ranks.ilog2() {
                let peer = rank ^ (1 << bit);
                self.add(rank, group, ActKind::Send(peer));
                self.add(rank, group, ActKind::Receive(peer));
            }
            self.add(rank, group, ActKind::Leave);
        }
    }

    /// A stage's ranks lie together, as they do where stages are what a job is divided into first.
    fn pipelines(&mut self, ranks: u32) {
        let stages = if ranks < 32 { 4.min(ranks) } else { 8 };
        let width = ranks / stages;
        for lane in 0..width {
            let group = GroupId::new(PIPELINES + u64::from(lane));
            for stage in 0..stages {
                let rank = stage * width + lane;
                let earlier = (stage > 0).then(|| rank - width);
                let later = (stage + 1 < stages).then(|| rank + width);
                for (from, to) in [(earlier, later), (later, earlier)] {
                    for _ in 0..BATCHES {
                        from.into_iter()
                            .for_each(|one| self.add(rank, group, ActKind::Receive(one)));
                        to.into_iter().for_each(|one| self.add(rank, group, ActKind::Send(one)));
                    }
                }
            }
        }
        if width > 1 {
            for stage in 0..stages {
                let members: Vec<u32> = (stage * width..(stage + 1) * width).collect();
                self.ring(GroupId::new(1 + u64::from(stage)), &members);
            }
        }
    }

    fn torus(&mut self, ranks: u32) {
        let bits = ranks.ilog2();
        let dimensions = if bits < 6 { 2 } else { 3 };
        let mut low = 0;
        for dimension in 0..dimensions {
            let high = bits * (dimension + 1) / dimensions;
            let (stride, length) = (1 << low, 1 << (high - low));
            for first in (0..ranks).filter(|rank| rank / stride % length == 0) {
                let members: Vec<u32> = (0..length).map(|place| first + place * stride).collect();
                self.ring(GroupId::new(u64::from(dimension * ranks + first + 1)), &members);
            }
            low = high;
        }
    }
}

impl Act {
    const fn is_send(&self) -> bool {
        matches!(self.kind, ActKind::Send(_))
    }
}

/// A rank as an index.
pub(super) fn index(rank: u32) -> usize {
    usize::try_from(rank).expect("32 bits fit")
}
