//! A part of the matrix of latencies as a person may check it.

use std::collections::BTreeMap;

use super::matrix::{Matrix, MatrixCell, SlowFrom};
use super::members::Members;
use super::steps::Path;
use crate::node::NodeName;

/// Nodes of one extract: what fits on a screen.
pub const MAX_EXTRACT_NODES: usize = telltale_wire::limits::cluster::MAX_MATRIX_NODES;

/// Latencies between some nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyMatrix {
    /// The nodes.
    pub nodes: Vec<NodeName>,
    /// What is known of pairs of them.
    pub cells: Vec<LatencyCell>,
    /// Nodes that there was no place for.
    pub left_out: usize,
}

/// Latencies of what one node sends to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyCell {
    /// The place of the node that sends.
    pub from: usize,
    /// The place of the node that receives.
    pub to: usize,
    /// What is usual, in nanoseconds.
    pub usual_ns: u64,
    /// How it is now, in nanoseconds.
    pub now_ns: u64,
    /// Whether it is slower than usual beyond doubt.
    pub is_slow: bool,
}

/// The cells among the `wanted` nodes, then their neighbours, then who has slow cells, then others, as
/// far as there is room.
pub(super) fn extract(
    matrix: &Matrix,
    members: &Members,
    wanted: &[NodeName],
    limit: SlowFrom,
) -> LatencyMatrix {
    // Of an edge that is known in both ways, what is not held up tells more.
    let is_best = |cell: &&MatrixCell| {
        let other = cell.is_held_up.then(|| matrix.cell(cell.from, cell.to)).flatten();
        matrix.is_present(cell) && !other.is_some_and(|other| matrix.is_present(other))
    };
    let present = || matrix.cells().iter().filter(is_best);
    let mut chosen = Chosen::default();
    let wanted = wanted.iter().filter_map(|node| members.number(node));
    wanted.for_each(|node| chosen.add(node));
    let first: Vec<u32> = chosen.places.keys().copied().collect();
    for node in first {
        matrix.all_cells_of(node).for_each(|cell| chosen.add_both(cell));
    }
    present().filter(|cell| cell.change.is_alarmed()).for_each(|cell| chosen.add_both(cell));
    present().for_each(|cell| chosen.add_both(cell));
    let cells = present().filter_map(|cell| {
        let (from, to) = (*chosen.places.get(&cell.from)?, *chosen.places.get(&cell.to)?);
        let above = cell.change.level().or_else(|| cell.change.last())?;
        let is_slow = cell.change.is_alarmed() && limit.is_long(cell, above);
        Some(LatencyCell {
            from,
            to,
            usual_ns: nanoseconds(cell.usual),
            now_ns: nanoseconds(cell.usual + above),
            is_slow,
        })
    });
    let cells = cells.collect();
    let nodes = chosen.nodes.iter().map(|node| members.name(*node).clone()).collect();
    LatencyMatrix { nodes, cells, left_out: chosen.left_out.len() }
}

/// The same of what transfers in training steps take, against like ones elsewhere.
pub(super) fn of_paths(paths: &[Path], members: &Members, wanted: &[NodeName]) -> LatencyMatrix {
    let mut chosen = Chosen::default();
    let wanted = wanted.iter().filter_map(|node| members.number(node));
    wanted.for_each(|node| chosen.add(node));
    let first: Vec<u32> = chosen.places.keys().copied().collect();
    let is_near = |path: &&Path| first.contains(&path.from) || first.contains(&path.to);
    let is_slow = |path: &&Path| path.is_slow;
    let all = paths.iter();
    for path in all.clone().filter(is_near).chain(all.clone().filter(is_slow)).chain(all.clone()) {
        chosen.add(path.from);
        chosen.add(path.to);
    }
    let cells = all.filter_map(|path| {
        let (from, to) = (*chosen.places.get(&path.from)?, *chosen.places.get(&path.to)?);
        let [usual_ns, now_ns] = [path.usual_ns, path.ns].map(|ns| ns.round() as u64);
        Some(LatencyCell { from, to, usual_ns, now_ns, is_slow: path.is_slow })
    });
    let cells = cells.collect();
    let nodes = chosen.nodes.iter().map(|node| members.name(*node).clone()).collect();
    LatencyMatrix { nodes, cells, left_out: chosen.left_out.len() }
}

#[derive(Default)]
struct Chosen {
    nodes: Vec<u32>,
    places: BTreeMap<u32, usize>,
    left_out: std::collections::BTreeSet<u32>,
}

impl Chosen {
    fn add(&mut self, node: u32) {
        if self.places.contains_key(&node) {
            return;
        }
        if self.nodes.len() >= MAX_EXTRACT_NODES {
            self.left_out.insert(node);
            return;
        }
        self.places.insert(node, self.nodes.len());
        self.nodes.push(node);
    }

    fn add_both(&mut self, cell: &MatrixCell) {
        self.add(cell.from);
        self.add(cell.to);
    }
}

/// The latency of a logarithm.
fn nanoseconds(logarithm: f32) -> u64 {
    // The conversion keeps within the range, which no latency that was believed leaves.
    f64::from(logarithm).exp().round() as u64
}
