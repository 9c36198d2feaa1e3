//! A synthetic machine: who talks to whom, how long it takes, what is wrong, and the noise on top.
//!
//! Latencies multiply: link, sender, receiver, jitter and spikes are factors. That is the model of
//! the suite, and nothing here claims that real machines are no different.

use std::collections::BTreeSet;

use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket, Window};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::Observation;
use telltale_cluster::rank::{Rank, RankMap, Slot, WorkersPerNode};
use telltale_cluster::verdict::{Side, Suspect};

use crate::random::Random;

/// The usual latency, in nanoseconds.
const BASE_NS: f64 = 200_000.0;
/// How different healthy links are: the deviation of the logarithm of their usual latency.
const LINK_SPREAD: f64 = 0.3;
/// Draws that the table of jitter holds; a draw is one of them.
const JITTER_TABLE: usize = 1 << 16;

/// Who talks to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topology {
    /// Everybody with everybody.
    Mesh,
    /// Everybody with the next and the one before.
    Ring,
    /// Everybody to the next.
    OneWayRing,
}

impl Topology {
    /// The edges among nodes `first` to `first + count`.
    #[must_use]
    pub fn edges(self, first: u32, count: u32) -> Vec<(u32, u32)> {
        let all = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let next = |from: u32| (from + 1) % count;
        let is_edge = |(from, to): &(u32, u32)| match self {
            Self::Mesh => true,
            Self::Ring => *to == next(*from) || *from == next(*to),
            Self::OneWayRing => *to == next(*from),
        };
        let others = all.filter(|(from, to)| from != to).filter(is_edge);
        others.map(|(from, to)| (first + from, first + to)).collect()
    }
}

/// What may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimulatedFault {
    /// A node is slow in all it sends and receives.
    Node(u32),
    /// A node is slow in all it sends.
    Sender(u32),
    /// A node is slow in all it receives.
    Receiver(u32),
    /// A link is slow both ways; the smaller node first.
    BothWays(u32, u32),
    /// A link is slow one way.
    OneWay(u32, u32),
}

impl SimulatedFault {
    /// Whether it slows what passes from one node to another.
    #[must_use]
    pub const fn touches(self, (from, to): (u32, u32)) -> bool {
        match self {
            Self::Node(node) => node == from || node == to,
            Self::Sender(node) => node == from,
            Self::Receiver(node) => node == to,
            Self::BothWays(one, other) => {
                (one == from && other == to) || (one == to && other == from)
            }
            Self::OneWay(one, other) => one == from && other == to,
        }
    }

    /// The same fault with other numbers; none where one of its nodes has none.
    pub fn renumbered(self, number: impl Fn(u32) -> Option<u32>) -> Option<Self> {
        Some(match self {
            Self::Node(node) => Self::Node(number(node)?),
            Self::Sender(node) => Self::Sender(number(node)?),
            Self::Receiver(node) => Self::Receiver(number(node)?),
            Self::BothWays(one, other) => Self::BothWays(number(one)?, number(other)?),
            Self::OneWay(from, to) => Self::OneWay(number(from)?, number(to)?),
        })
    }

    /// What a verdict calls it.
    #[must_use]
    pub fn suspect(self) -> Suspect {
        match self {
            Self::Node(node) => Suspect::Node(name(node)),
            Self::Sender(node) => Suspect::Side { node: name(node), side: Side::Sender },
            Self::Receiver(node) => Suspect::Side { node: name(node), side: Side::Receiver },
            Self::BothWays(from, to) => {
                Suspect::Link { from: name(from), to: name(to), both_ways: true }
            }
            Self::OneWay(from, to) => {
                Suspect::Link { from: name(from), to: name(to), both_ways: false }
            }
        }
    }
}

/// What each window's latency is multiplied with by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The deviation of the logarithm.
    pub jitter: f64,
    /// How probable a spike of one edge is in one window.
    pub spikes: f64,
    /// The factor of a spike.
    pub spike_ratio: f64,
    /// How probable it is that all edges have a spike in the same window: a checkpoint, say.
    pub common_spikes: f64,
}

impl Noise {
    /// Jitter of 5 % and nothing else.
    pub const CALM: Self = Self { jitter: 0.05, spikes: 0.0, spike_ratio: 3.0, common_spikes: 0.0 };
    /// Jitter of 10 %, spikes of 3 times: an edge's in 5 of 1,000 windows, everybody's in 1 of 100.
    pub const ROUGH: Self =
        Self { jitter: 0.10, spikes: 0.005, spike_ratio: 3.0, common_spikes: 0.01 };
}

/// The name of a node of a synthetic machine; names sort as numbers do.
///
/// # Panics
/// Never: the text is a name.
#[must_use]
pub fn name(node: u32) -> NodeName {
    NodeName::new(&format!("n{node:06}")).expect("letters and digits are a name")
}

/// A synthetic machine.
#[derive(Debug, Clone)]
pub struct SyntheticMachine {
    edges: Vec<Edge>,
    reports: Vec<Observation>,
    noise: Noise,
    jitter: Vec<f32>,
    random: Random,
}

#[derive(Debug, Clone)]
struct Edge {
    key: EdgeKey,
    ends: (u32, u32),
    usual_ns: f32,
    load: f32,
    ratio: f32,
    /// Where its window is.
    reported: WindowPosition,
    /// Where the sender's is, if it reports too.
    reported_by_sender: Option<WindowPosition>,
}

/// The place of a window: in the report of which node, and where in it.
#[derive(Debug, Clone, Copy)]
struct WindowPosition {
    report: usize,
    place: usize,
}

impl SyntheticMachine {
    /// A machine of `nodes` nodes whose process groups have the given edges. The receiver reports.
    ///
    /// # Panics
    /// When an edge leads out of the machine.
    #[must_use]
    pub fn new(nodes: u32, groups: &[Vec<(u32, u32)>], noise: Noise, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut reports = vec![Observation::default(); index(nodes)];
        let mut edges = Vec::new();
        for (group, ends) in (1..).zip(groups) {
            for (from, to) in ends {
                let key = EdgeKey {
                    group: GroupId::new(group),
                    rank: Rank(*to),
                    peer: Rank(*from),
                    direction: Direction::Receive,
                    bucket: SizeBucket::of(1 << 20),
                };
                let report = index(*to);
                let windows = &mut reports[report].edges;
                let usual_ns = (BASE_NS * (LINK_SPREAD * random.normal()).exp()) as f32;
                let reported = WindowPosition { report, place: windows.len() };
                let (ends, reported_by_sender) = ((*from, *to), None);
                edges.push(Edge {
                    key,
                    ends,
                    usual_ns,
                    load: 1.0,
                    ratio: 1.0,
                    reported,
                    reported_by_sender,
                });
                windows.push(EdgeWindow { key, window: window(0) });
            }
        }
        let jitter =
            (0..JITTER_TABLE).map(|_| (noise.jitter * random.normal()).exp() as f32).collect();
        Self { edges, reports, noise, jitter, random }
    }

    /// From now on the senders of one process group report too; the first group has number 1.
    #[must_use]
    pub fn with_senders(mut self, group: GroupId) -> Self {
        for edge in self.edges.iter_mut().filter(|edge| edge.key.group == group) {
            let (rank, peer) = (edge.key.peer, edge.key.rank);
            let key = EdgeKey { rank, peer, direction: Direction::Send, ..edge.key };
            let report = index(rank.0);
            let windows = &mut self.reports[report].edges;
            edge.reported_by_sender = Some(WindowPosition { report, place: windows.len() });
            windows.push(EdgeWindow { key, window: window(0) });
        }
        self
    }

    /// From now on every latency is longer by this factor of its two ends, until it is said again: a
    /// busy hour, a warm rack.
    pub fn load(&mut self, load: impl Fn((u32, u32)) -> f32) {
        self.edges.iter_mut().for_each(|edge| edge.load = load(edge.ends));
    }

    /// From now on these faults slow it, each by its factor; on an edge with several, their product.
    pub fn break_down(&mut self, faults: &[(SimulatedFault, f64)]) {
        for edge in &mut self.edges {
            let touching = faults.iter().filter(|(fault, _)| fault.touches(edge.ends));
            edge.ratio = touching.map(|(_, ratio)| *ratio as f32).product();
        }
    }

    /// The reports of the next window, by node.
    pub fn window(&mut self) -> &[Observation] {
        let noise = self.noise;
        let is_common = self.random.happens(noise.common_spikes);
        let common = if is_common { noise.spike_ratio as f32 } else { 1.0 };
        // One draw serves for the jitter (16 bits) and for the spike (32 bits).
        let spike_below = (noise.spikes * f64::from(u32::MAX)) as u32;
        let spike_ratio = noise.spike_ratio as f32;
        for edge in &mut self.edges {
            let bits = self.random.bits();
            let jitter = self.jitter[usize::from(bits as u16)];
            let spike = if ((bits >> 32) as u32) < spike_below { spike_ratio } else { 1.0 };
            let latency_ns = edge.usual_ns * edge.load * edge.ratio * jitter * spike * common;
            for WindowPosition { report, place } in
                [Some(edge.reported), edge.reported_by_sender].into_iter().flatten()
            {
                self.reports[report].edges[place].window.median_ns = latency_ns as u64;
            }
        }
        &self.reports
    }

    /// The reports of the latest window again.
    #[must_use]
    pub fn reports(&self) -> &[Observation] {
        &self.reports
    }

    /// Who talks to whom, each pair once.
    #[must_use]
    pub fn pairs(&self) -> BTreeSet<(u32, u32)> {
        self.edges.iter().map(|edge| edge.ends).collect()
    }
}

fn window(median_ns: u64) -> Window {
    Window {
        count: 100,
        mean_ns: median_ns,
        median_ns,
        deviation_ns: 0,
        high_ns: median_ns,
        last_sequence: 0,
        late: 0,
        overlapped: 0,
    }
}

fn index(node: u32) -> usize {
    usize::try_from(node).expect("a u32 fits in a usize")
}

/// The map of ranks of a machine: one worker a node, in order.
///
/// # Panics
/// When there are more nodes than slots may be.
#[must_use]
pub fn ranks(nodes: u32) -> RankMap {
    let workers = WorkersPerNode::new(1).expect("one is allowed");
    let mut map = RankMap::vacant(nodes, workers);
    for node in 0..nodes {
        assert!(map.fill(Slot(node), &name(node)), "a machine has at most MAX_SLOTS nodes");
    }
    map
}
