//! Messages between ranks, until nothing moves any more.
//!
//! A transfer takes place when both ends have begun it, as it is with remote direct memory access: a sender
//! knows that its data have arrived. What the fault touches never arrives.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use telltale_cluster::group::GroupId;
use telltale_cluster::observation::GroupProgress;
use telltale_cluster::rank::Rank;

use crate::faults::hangs::HEALTHY_S;
use crate::faults::hangs::program::{ActKind, Program, RankLayout, index};
use crate::random::Random;

/// Transfers that a rank has under way to one other, at most.
const UNDER_WAY: u64 = 2;
/// What a transfer takes at least, and how much more by chance; no unit.
const SHORTEST: u64 = 100;
const BY_CHANCE: u64 = 100;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangFault {
    /// What one node sends to another is lost.
    Link {
        /// The node that sends.
        from: u32,
        /// The node that receives.
        to: u32,
        /// Whether the way back is lost too.
        both_ways: bool,
    },
    /// All that a rank exchanges with other nodes is lost.
    Adapter(u32),
    /// All that a node exchanges with others is lost.
    Node(u32),
    /// What these nodes exchange with others is lost.
    Switch {
        /// The first node.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// This rank does nothing any more.
    Rank(u32),
}

impl HangFault {
    fn loses(self, from: u32, to: u32, layout: RankLayout) -> bool {
        let ends = (layout.node_of(from), layout.node_of(to));
        if ends.0 == ends.1 {
            return false;
        }
        match self {
            Self::Link { from, to, both_ways } => {
                ends == (from, to) || (both_ways && ends == (to, from))
            }
            Self::Adapter(rank) => from == rank || to == rank,
            Self::Node(node) => ends.0 == node || ends.1 == node,
            Self::Switch { first, count } => {
                let is_inside = |node| (first..first + count).contains(&node);
                is_inside(ends.0) != is_inside(ends.1)
            }
            Self::Rank(_) => false,
        }
    }
}

/// Transfers from one rank to another in a group: how many each end has begun, and how many have ended.
#[derive(Debug, Clone, Copy, Default)]
struct Channel {
    sent: u64,
    awaited: u64,
    ended: u64,
    is_under_way: bool,
}

type Ends = (GroupId, u32, u32);

/// How far a rank is in a group.
#[derive(Debug, Clone, Copy, Default)]
struct RankProgress {
    entered: u64,
    finished: u64,
    transferred: u64,
}

/// A job that runs.
#[derive(Debug)]
pub struct Run<'a> {
    program: &'a Program,
    layout: RankLayout,
    random: Random,
    fault: Option<HangFault>,
    /// The number of what each rank does next, and whether that has begun.
    next: Vec<(usize, bool)>,
    channels: BTreeMap<Ends, Channel>,
    counts: BTreeMap<(u32, GroupId), RankProgress>,
    /// Ends of transfers, soonest first.
    arrivals: BinaryHeap<Reverse<(u64, Ends)>>,
    now: u64,
}

impl<'a> Run<'a> {
    /// A job at its start.
    #[must_use]
    pub fn new(program: &'a Program, layout: RankLayout, random: Random) -> Self {
        Self {
            program,
            layout,
            random,
            fault: None,
            next: vec![(0, false); program.acts.len()],
            channels: BTreeMap::new(),
            counts: BTreeMap::new(),
            arrivals: BinaryHeap::new(),
            now: 0,
        }
    }

    /// Runs until nothing moves any more because of a fault that comes after so many transfers.
    pub fn until_it_stands_still(&mut self, fault: HangFault, after: u64) {
        (0..self.layout.ranks).for_each(|rank| self.go_on(rank));
        let mut ended = 0;
        while let Some(Reverse((at, ends))) = self.arrivals.pop() {
            if ended == after {
                self.fault = Some(fault);
            }
            let (_, from, to) = ends;
            if self.fault.is_some_and(|fault| fault.loses(from, to, self.layout)) {
                continue;
            }
            self.now = at;
            ended += 1;
            self.arrive(ends);
            self.go_on(to);
            self.go_on(from);
        }
    }

    fn arrive(&mut self, ends: Ends) {
        let (group, from, to) = ends;
        let channel = self.channels.entry(ends).or_default();
        channel.ended += 1;
        channel.is_under_way = false;
        for rank in [from, to] {
            self.counts.entry((rank, group)).or_default().transferred += 1;
        }
        self.begin(ends);
    }

    /// A transfer begins when both ends have begun it.
    fn begin(&mut self, ends: Ends) {
        let channel = self.channels.entry(ends).or_default();
        if !channel.is_under_way && channel.ended < channel.sent.min(channel.awaited) {
            channel.is_under_way = true;
            let lasts = SHORTEST + self.random.below(BY_CHANCE);
            self.arrivals.push(Reverse((self.now + lasts, ends)));
        }
    }

    /// A rank does what it can do without waiting.
    fn go_on(&mut self, rank: u32) {
        while self.fault != Some(HangFault::Rank(rank)) && self.has_done_next(rank) {
            let acts = self.program.acts[index(rank)].len();
            let next = &mut self.next[index(rank)];
            *next = ((next.0 + 1) % acts, false);
        }
    }

    /// Whether a rank need not wait in what it does next.
    fn has_done_next(&mut self, rank: u32) -> bool {
        let (number, has_begun) = self.next[index(rank)];
        let act = self.program.acts[index(rank)][number];
        let group = act.group;
        match act.kind {
            ActKind::Enter => {
                self.counts.entry((rank, group)).or_default().entered += 1;
                true
            }
            ActKind::Leave => {
                let mut sent = self.channels.range((group, rank, 0)..=(group, rank, u32::MAX));
                let all_arrived = sent.all(|(_, channel)| channel.ended == channel.sent);
                if all_arrived {
                    self.counts.entry((rank, group)).or_default().finished += 1;
                }
                all_arrived
            }
            ActKind::Send(to) => {
                let ends = (group, rank, to);
                let channel = self.channels.entry(ends).or_default();
                let has_place = channel.sent - channel.ended < UNDER_WAY;
                if has_place {
                    channel.sent += 1;
                    self.begin(ends);
                }
                has_place
            }
            ActKind::Receive(from) => {
                let ends = (group, from, rank);
                let channel = self.channels.entry(ends).or_default();
                if !has_begun {
                    channel.awaited += 1;
                    self.next[index(rank)].1 = true;
                    self.begin(ends);
                }
                let channel = self.channels[&ends];
                channel.ended == channel.awaited
            }
        }
    }

    /// Where each rank stands in each of its groups, after the collectives of its healthy time.
    #[must_use]
    pub fn progress(&self, tells_within_nodes: bool) -> Vec<Vec<GroupProgress>> {
        let mut all: BTreeMap<(u32, GroupId), GroupProgress> = BTreeMap::new();
        let empty = |rank: u32, group: GroupId| {
            let counts = self.counts.get(&(rank, group)).copied().unwrap_or_default();
            let before = if self.has_collectives(rank, group) { HEALTHY_S } else { 0 };
            GroupProgress {
                group,
                rank: Rank(rank),
                entered: before + counts.entered,
                finished: before + counts.finished,
                sends_to: Vec::new(),
                receives_from: Vec::new(),
                transferred: HEALTHY_S + counts.transferred,
            }
        };
        for ((group, from, to), channel) in &self.channels {
            let is_within = self.layout.node_of(*from) == self.layout.node_of(*to);
            let is_told = tells_within_nodes || !is_within;
            let sender = all.entry((*from, *group)).or_insert_with(|| empty(*from, *group));
            if is_told && channel.sent > channel.ended {
                sender.sends_to.push(Rank(*to));
            }
            let receiver = all.entry((*to, *group)).or_insert_with(|| empty(*to, *group));
            if is_told && channel.awaited > channel.ended {
                receiver.receives_from.push(Rank(*from));
            }
        }
        let mut by_rank = vec![Vec::new(); self.program.acts.len()];
        for ((rank, _), progress) in all {
            by_rank[index(rank)].push(progress);
        }
        by_rank
    }

    fn has_collectives(&self, rank: u32, group: GroupId) -> bool {
        let acts = &self.program.acts[index(rank)];
        acts.iter().any(|act| act.group == group && act.kind == ActKind::Enter)
    }
}
