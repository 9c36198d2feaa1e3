//! Hangs of the network in jobs of many shapes: whether detection names what holds the data.
//!
//! [`program`] says what each rank sends and receives, [`transfers`] passes it on, message by message, until
//! nothing moves any more, and what each rank has begun by then is given to the shipped detector.

pub mod program;
pub mod transfers;

use std::collections::BTreeSet;
use std::time::Duration;

use telltale_cluster::detection::{DetectionSettings, Detector};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::{GroupProgress, Observation};
use telltale_cluster::rank::{RankMap, Slot, WorkersPerNode};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Verdict};

use crate::faults::hangs::program::{Pattern, RankLayout};
use crate::faults::hangs::transfers::{HangFault, Run};
use crate::faults::machine::name;
use crate::random::Random;

/// Collectives that each group has ended before the fault, one a second.
const HEALTHY_S: u64 = 10;
/// For how long a verdict is awaited.
const LONGEST_S: u64 = 300;

/// What becomes of one fault.
#[derive(Debug, Clone)]
pub struct HangOutcome {
    /// What was at fault.
    pub fault: HangFault,
    /// What was said first.
    pub verdicts: Vec<Verdict>,
    /// Whether what was at fault is among what was named.
    pub is_named: bool,
    /// Whether less than the whole job was named.
    pub is_narrow: bool,
    /// How many suspects there are.
    pub suspects: usize,
}

/// The outcome of a fault that this seed draws, in a job of so many ranks.
///
/// `tells_within_nodes` says whether ranks report transfers that stay on their node.
#[must_use]
pub fn outcome(
    pattern: Pattern,
    ranks: u32,
    kind: HangFaultKind,
    tells_within_nodes: bool,
    seed: u64,
) -> HangOutcome {
    let mut random = Random::new(seed);
    let layout = RankLayout::of(ranks);
    let program = pattern.iteration(ranks);
    let links = program.links(layout);
    let fault = kind.draw(&links, layout, &mut random);
    let mut run = Run::new(&program, layout, random.split());
    let after = random.below(2 * program.transfers());
    run.until_it_stands_still(fault, after);
    let reports = run.progress(tells_within_nodes);
    let verdicts = first_verdicts(layout, &reports);
    judged(fault, verdicts, &links, layout)
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HangFaultKind {
    /// What passes from one node to another is lost.
    OneWay,
    /// What passes between two nodes is lost, both ways.
    Link,
    /// One rank's adapter is dead.
    Adapter,
    /// A node's network is dead.
    Node,
    /// Several nodes are cut off from the others, and not from each other.
    Switch,
    /// A rank does nothing any more, and its network works.
    Rank,
}

impl HangFaultKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::OneWay, Self::Link, Self::Adapter, Self::Node, Self::Switch, Self::Rank];

    /// A fault of this kind in a job that sends over these links, by ranks.
    fn draw(self, links: &[(u32, u32)], layout: RankLayout, random: &mut Random) -> HangFault {
        let (from, to) = random.index(links.len()).map_or((0, 0), |index| links[index]);
        let node = layout.node_of(from);
        match self {
            Self::OneWay => {
                HangFault::Link { from: node, to: layout.node_of(to), both_ways: false }
            }
            Self::Link => HangFault::Link { from: node, to: layout.node_of(to), both_ways: true },
            Self::Adapter => HangFault::Adapter(from),
            Self::Node => HangFault::Node(node),
            Self::Switch => {
                let nodes = layout.nodes();
                let count = 1 + u32::try_from(random.below(u64::from(nodes / 2))).unwrap_or(0);
                HangFault::Switch { first: node.min(nodes - count), count }
            }
            Self::Rank => HangFault::Rank(from),
        }
    }
}

/// What is said first, while each rank reports where it has come to stand.
fn first_verdicts(layout: RankLayout, reports: &[Vec<GroupProgress>]) -> Vec<Verdict> {
    let workers = WorkersPerNode::new(layout.per_node).expect("a node has at most eight here");
    let mut map = RankMap::vacant(layout.nodes(), workers);
    let names: Vec<_> = (0..layout.nodes()).map(name).collect();
    for (slot, name) in (0..).map(Slot).zip(&names) {
        assert!(map.fill(slot, name), "a job has at most MAX_SLOTS nodes");
    }
    let mut detector = Detector::new(DetectionSettings::default());
    detector.set_ranks(Moment::default(), &map);
    let per_node = usize::try_from(layout.per_node).expect("a small number");
    for second in 1..=LONGEST_S {
        let now = Moment::default().after(Duration::from_secs(second));
        for (name, ranks) in names.iter().zip(reports.chunks(per_node)) {
            let progress = ranks.iter().flatten().map(|one| at_second(one, second)).collect();
            let observation = Observation { progress, ..Observation::default() };
            assert!(detector.observe(now, name, &observation), "it is of the job");
        }
        let verdicts = detector.evaluate(now);
        if !verdicts.is_empty() {
            return verdicts;
        }
    }
    Vec::new()
}

/// What a rank reports in a second: progress before the hang, and then always the same.
fn at_second(last: &GroupProgress, second: u64) -> GroupProgress {
    if second <= HEALTHY_S {
        let (sends_to, receives_from) = (Vec::new(), Vec::new());
        let counts = last.entered > 0;
        let (entered, transferred) = (if counts { second } else { 0 }, second);
        return GroupProgress {
            entered,
            finished: entered,
            sends_to,
            receives_from,
            transferred,
            ..*last
        };
    }
    last.clone()
}

/// Whether what is named holds what was at fault, and is less than all.
fn judged(
    fault: HangFault,
    verdicts: Vec<Verdict>,
    links: &[(u32, u32)],
    layout: RankLayout,
) -> HangOutcome {
    let suspects: Vec<&Suspect> =
        verdicts.iter().flat_map(|verdict| verdict.suspects.all()).collect();
    let is_node = |node: u32| suspects.contains(&&Suspect::Node(name(node)));
    let is_link = |from: u32, to: u32, both: bool| {
        let (from, to) = (&name(from), &name(to));
        suspects.iter().any(|suspect| match suspect {
            Suspect::Link { from: one, to: other, both_ways } => {
                let is_back = one == to && other == from;
                (one == from && other == to) || ((both || *both_ways) && is_back)
            }
            _ => false,
        })
    };
    let nodes = links.iter().map(|(from, to)| (layout.node_of(*from), layout.node_of(*to)));
    let node_links: BTreeSet<(NodeName, NodeName)> =
        nodes.map(|(from, to)| (name(from), name(to))).collect();
    let is_named = match fault {
        HangFault::Link { from, to, both_ways } => is_link(from, to, both_ways),
        HangFault::Adapter(rank) | HangFault::Rank(rank) => is_node(layout.node_of(rank)),
        HangFault::Node(node) => is_node(node),
        // A switch has no name: all that is named needs it.
        HangFault::Switch { .. } => {
            let cut = |from: &NodeName, to: &NodeName| layout.is_cut(fault, from, to);
            let needs_it = |suspect: &&Suspect| match suspect {
                Suspect::Link { from, to, .. } => cut(from, to),
                Suspect::Node(node) | Suspect::Side { node, .. } => node_links
                    .iter()
                    .any(|(from, to)| (from == node || to == node) && cut(from, to)),
            };
            !suspects.is_empty() && suspects.iter().all(needs_it)
        }
    };
    let is_link = |suspect: &&&Suspect| matches!(suspect, Suspect::Link { .. });
    let named_links = suspects.iter().filter(is_link).count();
    let all_nodes = usize::try_from(layout.nodes()).expect("32 bits fit");
    let is_narrow = named_links < node_links.len() && suspects.len() - named_links < all_nodes;
    let suspects = suspects.len();
    HangOutcome { fault, verdicts, is_named, is_narrow, suspects }
}
