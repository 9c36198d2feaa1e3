//! From slow edges to who is suspected: nodes, one side of a node, or links.
//!
//! Builds the question for the search of smallest explanations, and sorts its answer into what is
//! certain (in all of them) and what the data cannot tell (in some). It keeps nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::detection::explanation::{Slow, smallest};
use crate::detection::matrix::{Matrix, MatrixCell, SlowFrom};
use crate::detection::members::place;

/// Of a suspect's edges, one in so many may look healthy by chance.
const CHANCE_PART: usize = 10;
/// What one suspect leaves of an edge is another's only beyond what noise does to the largest of as
/// many edges, and so many standard errors more.
const ERRORS: f32 = 1.5;
/// The part of what counts as slow that an edge must have had on average since its change began.
const LASTING_PART: f32 = 0.75;
/// The least that an explanation must give to a slow edge.
const LEAST_DEMAND: f32 = 1e-3;

/// Who or what may be at fault, by numbers of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Culprit {
    Node(u32),
    Sender(u32),
    Receiver(u32),
    BothWays(u32, u32),
    OneWay(u32, u32),
}

impl Culprit {
    /// Whether it is a node, or one side of it.
    pub(super) const fn is_of(self, of: u32) -> bool {
        match self {
            Self::Node(node) | Self::Sender(node) | Self::Receiver(node) => node == of,
            Self::BothWays(..) | Self::OneWay(..) => false,
        }
    }

    /// Whether it has a hand in what passes from one node to another.
    pub(super) const fn touches(self, from: u32, to: u32) -> bool {
        match self {
            Self::Node(node) => node == from || node == to,
            Self::Sender(node) => node == from,
            Self::Receiver(node) => node == to,
            Self::BothWays(low, high) => (low == from && high == to) || (low == to && high == from),
            Self::OneWay(one, other) => one == from && other == to,
        }
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suspicion {
    /// One, or several among whom the data cannot tell; sorted.
    pub(super) culprits: Vec<Culprit>,
    /// How many explanations were equally small.
    pub(super) explanations: usize,
    /// Whether the search was cut short, so that even one culprit is not certain.
    pub(super) cut_short: bool,
}

/// One slow edge.
struct Hot {
    from: u32,
    to: u32,
    level: f32,
    error: f32,
    is_alarmed: bool,
    suspects: Vec<u32>,
}

/// Who is suspected of what is slow now, from `limit` on.
pub(super) fn suspicions(matrix: &Matrix, limit: SlowFrom) -> Vec<Suspicion> {
    if !matrix.cells().iter().any(|cell| !cell.is_held_up && cell.change.is_alarmed()) {
        return Vec::new();
    }
    let mut hot: Vec<Hot> =
        matrix.cells().iter().filter_map(|cell| hot_edge(matrix, cell, limit)).collect();
    let mut candidates = Candidates { matrix, limit, numbers: BTreeMap::new(), list: vec![] };
    for edge in &mut hot {
        edge.suspects = candidates.of(edge);
    }
    let beginning = candidates.not_yet_warm(&hot);
    let Candidates { list, .. } = candidates;
    let mut found: Vec<Suspicion> = Vec::new();
    for component in components(&hot, list.len()) {
        if component.iter().any(|edge| hot[*edge].is_alarmed) {
            found.extend(explain(&component, &hot, &beginning, &list, limit.meaningful));
        }
    }
    found
}

fn hot_edge(matrix: &Matrix, cell: &MatrixCell, limit: SlowFrom) -> Option<Hot> {
    if cell.is_held_up || !matrix.is_present(cell) {
        return None;
    }
    let level = cell.change.level()?;
    // One whose level was learned a little too low rises for ever, and is slow now and then.
    let lasts = cell.change.mean_since() >= LASTING_PART * limit.least(cell);
    let is_hot = cell.change.is_warm() && limit.is_slow(cell, level) && lasts;
    is_hot.then(|| Hot {
        from: cell.from,
        to: cell.to,
        level,
        error: cell.change.level_error(),
        is_alarmed: cell.change.is_alarmed(),
        suspects: Vec::new(),
    })
}

/// Who could be at fault, with what each can account for.
struct Candidates<'a> {
    matrix: &'a Matrix,
    limit: SlowFrom,
    /// `None` for who was checked and is not slow throughout.
    numbers: BTreeMap<Culprit, Option<u32>>,
    list: Vec<(Culprit, f32)>,
}

impl Candidates<'_> {
    /// The candidates that touch an edge.
    fn of(&mut self, edge: &Hot) -> Vec<u32> {
        let (low, high) = (edge.from.min(edge.to), edge.from.max(edge.to));
        let all = [
            Culprit::Node(edge.from),
            Culprit::Node(edge.to),
            Culprit::Sender(edge.from),
            Culprit::Receiver(edge.to),
            Culprit::BothWays(low, high),
            Culprit::OneWay(edge.from, edge.to),
        ];
        all.into_iter().filter_map(|culprit| self.number(culprit, edge)).collect()
    }

    /// The edges of those candidates that are slow too or begin to be, and are not warm yet. They
    /// need no explanation, but of equally small ones those are better that reach them.
    fn not_yet_warm(&self, hot: &[Hot]) -> BTreeSet<(u32, u32)> {
        let known: BTreeSet<(u32, u32)> = hot.iter().map(|edge| (edge.from, edge.to)).collect();
        let nodes: BTreeSet<u32> = known.iter().flat_map(|ends| [ends.0, ends.1]).collect();
        let cells = nodes.iter().flat_map(|node| self.matrix.cells_of(*node));
        let slow = cells.filter(|cell| self.is_slow(cell)).map(|cell| (cell.from, cell.to));
        slow.filter(|ends| !known.contains(ends)).collect()
    }

    fn number(&mut self, culprit: Culprit, edge: &Hot) -> Option<u32> {
        if let Some(known) = self.numbers.get(&culprit) {
            return *known;
        }
        let supply = match culprit {
            Culprit::Node(node) => self.shared_by(node, |_| true),
            Culprit::Sender(node) => self.side(node, |cell| cell.from == node),
            Culprit::Receiver(node) => self.side(node, |cell| cell.to == node),
            Culprit::BothWays(low, high) => self.both_ways(low, high),
            // It is slow as far as it is slow.
            Culprit::OneWay(..) => Some(edge.level),
        };
        let number = supply.map(|supply| {
            self.list.push((culprit, supply));
            u32::try_from(self.list.len() - 1).expect("no more candidates than six an edge")
        });
        self.numbers.insert(culprit, number);
        number
    }

    /// One side of a node is a suspect of its own only if it has several edges, and the node has
    /// others: else it is no other thing than the link or the node.
    fn side(&self, node: u32, is_of_side: impl Fn(&MatrixCell) -> bool) -> Option<f32> {
        let of_side = self.matrix.cells_of(node).filter(|cell| is_of_side(cell)).count();
        let all = self.matrix.cells_of(node).count();
        if of_side < 2 || of_side == all {
            return None;
        }
        self.shared_by(node, is_of_side)
    }

    /// The slowness that a node's edges share, if they all are slow or begin to be.
    fn shared_by(&self, node: u32, is_of_side: impl Fn(&MatrixCell) -> bool) -> Option<f32> {
        let cells = self.matrix.cells_of(node).filter(|cell| is_of_side(cell));
        let known: Vec<&MatrixCell> = cells.filter(|cell| cell.change.level().is_some()).collect();
        let healthy = known.iter().filter(|cell| !self.is_slow(cell)).count();
        if healthy > known.len() / CHANCE_PART {
            return None;
        }
        let mut levels: Vec<f32> = known.iter().filter_map(|cell| cell.change.level()).collect();
        levels.sort_unstable_by(f32::total_cmp);
        let least = levels.get(levels.len() / CHANCE_PART)?.max(self.limit.meaningful);
        let errors: f32 = known.iter().map(|cell| cell.change.level_error()).sum();
        // The least of several is below what they share by about an error.
        Some(least + errors / known.len() as f32)
    }

    /// Whether an edge is slow or begins to be: noise lets one be seen before the other.
    fn is_slow(&self, cell: &MatrixCell) -> bool {
        let level = cell.change.level().unwrap_or(0.0);
        let least = self.limit.least(cell);
        let begins = cell.change.is_rising() && level >= least / 2.0;
        (level >= least || begins) && self.limit.is_long(cell, level)
    }

    /// The slowness that both ways of a link share, if both are slow or begin to be.
    fn both_ways(&self, low: u32, high: u32) -> Option<f32> {
        let cell = |from, to| self.matrix.cell(from, to).filter(|one| self.matrix.is_present(one));
        let (there, back) = (cell(low, high)?, cell(high, low)?);
        let error = there.change.level_error().max(back.change.level_error());
        let least = there.change.level()?.min(back.change.level()?).max(self.limit.meaningful);
        (self.is_slow(there) && self.is_slow(back)).then_some(least + error)
    }
}

/// Edges that share a candidate, directly or by others, as lists of their numbers.
fn components(hot: &[Hot], candidates: usize) -> Vec<Vec<usize>> {
    let mut leader: Vec<usize> = (0..candidates).collect();
    for edge in hot {
        for suspect in &edge.suspects {
            let (one, other) = (root(&mut leader, edge.suspects[0]), root(&mut leader, *suspect));
            leader[one.max(other)] = one.min(other);
        }
    }
    let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, edge) in hot.iter().enumerate() {
        by_root.entry(root(&mut leader, edge.suspects[0])).or_default().push(number);
    }
    by_root.into_values().collect()
}

fn root(leader: &mut [usize], candidate: u32) -> usize {
    let mut at = place(candidate);
    while leader[at] != at {
        leader[at] = leader[leader[at]];
        at = leader[at];
    }
    at
}

fn explain(
    component: &[usize],
    hot: &[Hot],
    beginning: &BTreeSet<(u32, u32)>,
    list: &[(Culprit, f32)],
    meaningful: f32,
) -> Vec<Suspicion> {
    let edges: Vec<&Hot> = component.iter().map(|edge| &hot[*edge]).collect();
    // Numbers within the component, so that the search is as small as its question.
    let involved: BTreeSet<u32> =
        edges.iter().flat_map(|edge| edge.suspects.iter().copied()).collect();
    let involved: Vec<u32> = involved.into_iter().collect();
    let local = |suspect: &u32| {
        let at = involved.binary_search(suspect).expect("all suspects are involved");
        u32::try_from(at).expect("a u32 numbered it")
    };
    let supplies: Vec<f32> = involved.iter().map(|one| list[place(*one)].1).collect();
    let errors = ERRORS + largest_of(edges.len());
    let slow: Vec<Slow> = edges
        .iter()
        .map(|edge| Slow {
            demand: (edge.level - meaningful.max(errors * edge.error)).max(LEAST_DEMAND),
            suspects: edge.suspects.iter().map(local).collect(),
        })
        .collect();
    let mut found = smallest(&slow, &supplies);
    let culprit = |number: u32| list[place(involved[place(number)])].0;
    let reach = |set: &Vec<u32>| {
        let touched =
            |(from, to): &&(u32, u32)| set.iter().any(|one| culprit(*one).touches(*from, *to));
        beginning.iter().filter(touched).count()
    };
    let farthest = found.smallest.iter().map(reach).max().unwrap_or(0);
    found.smallest.retain(|set| found.cut_short || reach(set) == farthest);
    let all: BTreeSet<u32> = found.smallest.iter().flatten().copied().collect();
    let is_certain =
        |one: &u32| !found.cut_short && found.smallest.iter().all(|set| set.contains(one));
    let (certain, unsure): (Vec<u32>, Vec<u32>) = all.iter().partition(|one| is_certain(one));
    let mut suspicions: Vec<Suspicion> = certain
        .into_iter()
        .map(|one| Suspicion { culprits: vec![culprit(one)], explanations: 1, cut_short: false })
        .collect();
    for part in parts(&unsure, &slow) {
        let mut culprits: Vec<Culprit> = part.iter().map(|one| culprit(*one)).collect();
        culprits.sort_unstable();
        let choices: BTreeSet<Vec<u32>> = found
            .smallest
            .iter()
            .map(|set| set.iter().copied().filter(|one| part.contains(one)).collect())
            .collect();
        let (explanations, cut_short) = (choices.len(), found.cut_short);
        suspicions.push(Suspicion { culprits, explanations, cut_short });
    }
    suspicions
}

/// What the largest of `count` draws of normal noise is about, in deviations.
fn largest_of(count: usize) -> f32 {
    (2.0 * (2.0 * count as f32).ln()).sqrt()
}

/// Splits suspects into parts that share no slow edge.
fn parts(unsure: &[u32], slow: &[Slow]) -> Vec<BTreeSet<u32>> {
    let mut parts: Vec<BTreeSet<u32>> = Vec::new();
    for edge in slow {
        let mut joined: BTreeSet<u32> =
            edge.suspects.iter().copied().filter(|one| unsure.contains(one)).collect();
        if joined.is_empty() {
            continue;
        }
        parts.retain(|part| {
            let is_apart = part.is_disjoint(&joined);
            if !is_apart {
                joined.extend(part);
            }
            is_apart
        });
        parts.push(joined);
    }
    parts
}
