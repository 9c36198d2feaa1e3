//! Who transfers to whom, in the ways that jobs are built: stages, rings, pairs, trees, tori, uneven groups.
//!
//! A shape is a number of nodes and the directed edges of each process group. What passes on an edge is
//! made up elsewhere.

use std::collections::BTreeSet;
use std::fmt;

use crate::faults::machine::Topology;

/// How the nodes of a job are connected; a number is one of nodes, if nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobShape {
    /// Each stage transfers to the next.
    Pipeline(u32),
    /// The same with a process group for each pair of neighbours.
    SplitPipeline(u32),
    /// Each to the next and the one before.
    Ring(u32),
    /// Each to the next.
    OneWayRing(u32),
    /// Neighbours by twos, in one group.
    Pairs(u32),
    /// The same with a group for each pair.
    SplitPairs(u32),
    /// A binary tree.
    Tree(u32),
    /// One node and all others, as a parameter server and its clients.
    Star(u32),
    /// A torus with so many rows and columns.
    Torus(u32, u32),
    /// Everybody with everybody.
    Mesh(u32),
    /// Meshes of 2, 3, 5 and 8 nodes, and a ring of all 18.
    Uneven,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keys {
    /// One size, measured by the receiver; where there is an order of nodes, one way.
    One,
    /// Two sizes, both ways, measured at both ends.
    Many,
}

impl JobShape {
    /// All shapes of the suite.
    pub const ALL: [Self; 27] = [
        Self::Pipeline(4),
        Self::Pipeline(8),
        Self::Pipeline(16),
        Self::Pipeline(32),
        Self::Pipeline(64),
        Self::SplitPipeline(4),
        Self::SplitPipeline(16),
        Self::Ring(4),
        Self::Ring(8),
        Self::Ring(16),
        Self::Ring(64),
        Self::OneWayRing(8),
        Self::OneWayRing(32),
        Self::Pairs(2),
        Self::Pairs(6),
        Self::Pairs(16),
        Self::SplitPairs(8),
        Self::Tree(7),
        Self::Tree(15),
        Self::Tree(63),
        Self::Star(9),
        Self::Torus(3, 3),
        Self::Torus(4, 4),
        Self::Torus(4, 8),
        Self::Mesh(4),
        Self::Mesh(8),
        Self::Uneven,
    ];

    /// How many nodes it has.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        match self {
            Self::Torus(rows, columns) => rows * columns,
            Self::Uneven => 18,
            Self::Pipeline(nodes)
            | Self::SplitPipeline(nodes)
            | Self::Ring(nodes)
            | Self::OneWayRing(nodes)
            | Self::Pairs(nodes)
            | Self::SplitPairs(nodes)
            | Self::Tree(nodes)
            | Self::Star(nodes)
            | Self::Mesh(nodes) => nodes,
        }
    }

    /// The directed edges of each process group.
    #[must_use]
    pub fn groups(self, keys: Keys) -> Vec<Vec<(u32, u32)>> {
        let all = |nodes| 0..nodes;
        let down: Vec<Vec<(u32, u32)>> = match self {
            Self::Pipeline(nodes) => vec![all(nodes - 1).map(|one| (one, one + 1)).collect()],
            Self::SplitPipeline(nodes) => all(nodes - 1).map(|one| vec![(one, one + 1)]).collect(),
            Self::Tree(nodes) => vec![(1..nodes).map(|one| ((one - 1) / 2, one)).collect()],
            Self::Star(nodes) => vec![(1..nodes).map(|one| (0, one)).collect()],
            Self::OneWayRing(nodes) => return vec![Topology::OneWayRing.edges(0, nodes)],
            Self::Ring(nodes) => return vec![Topology::Ring.edges(0, nodes)],
            Self::Mesh(nodes) => return vec![Topology::Mesh.edges(0, nodes)],
            Self::Pairs(nodes) => {
                return vec![both_ways(all(nodes / 2).map(|one| (2 * one, 2 * one + 1)))];
            }
            Self::SplitPairs(nodes) => {
                let pairs = all(nodes / 2).map(|one| (2 * one, 2 * one + 1));
                return pairs.map(|pair| both_ways([pair])).collect();
            }
            Self::Torus(rows, columns) => return vec![both_ways(torus(rows, columns))],
            Self::Uneven => {
                let meshes = [(0, 2), (2, 3), (5, 5), (10, 8)];
                let meshes = meshes.map(|(first, nodes)| Topology::Mesh.edges(first, nodes));
                return meshes.into_iter().chain([Topology::Ring.edges(0, 18)]).collect();
            }
        };
        match keys {
            Keys::One => down,
            Keys::Many => down.into_iter().map(both_ways).collect(),
        }
    }

    /// Who transfers to whom, each pair once.
    #[must_use]
    pub fn pairs(self, keys: Keys) -> BTreeSet<(u32, u32)> {
        self.groups(keys).into_iter().flatten().collect()
    }
}

fn both_ways(edges: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    edges.into_iter().flat_map(|(from, to)| [(from, to), (to, from)]).collect()
}

/// Each node with the next of its row and of its column, each pair once.
fn torus(rows: u32, columns: u32) -> BTreeSet<(u32, u32)> {
    let nodes = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let number = |row: u32, column: u32| row % rows * columns + column % columns;
    nodes
        .flat_map(|(row, column)| {
            let own = number(row, column);
            [(own, number(row, column + 1)), (own, number(row + 1, column))]
        })
        .map(|(one, other)| (one.min(other), one.max(other)))
        .collect()
}

impl fmt::Display for JobShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipeline(nodes) => write!(formatter, "pipeline {nodes}"),
            Self::SplitPipeline(nodes) => write!(formatter, "pipeline {nodes}, a group a pair"),
            Self::Ring(nodes) => write!(formatter, "ring {nodes}"),
            Self::OneWayRing(nodes) => write!(formatter, "one-way ring {nodes}"),
            Self::Pairs(nodes) => write!(formatter, "pairs of {nodes}"),
            Self::SplitPairs(nodes) => write!(formatter, "pairs of {nodes}, a group a pair"),
            Self::Tree(nodes) => write!(formatter, "tree {nodes}"),
            Self::Star(nodes) => write!(formatter, "star {nodes}"),
            Self::Torus(rows, columns) => write!(formatter, "torus {rows} x {columns}"),
            Self::Mesh(nodes) => write!(formatter, "mesh {nodes}"),
            Self::Uneven => formatter.write_str("meshes of 2, 3, 5, 8"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_the_edges_that_they_should() {
        let cases = [
            (JobShape::Pipeline(4), 3, 6),
            (JobShape::SplitPipeline(4), 3, 6),
            (JobShape::Ring(8), 16, 16),
            (JobShape::OneWayRing(8), 8, 8),
            (JobShape::Pairs(6), 6, 6),
            (JobShape::SplitPairs(8), 8, 8),
            (JobShape::Tree(7), 6, 12),
            (JobShape::Star(9), 8, 16),
            (JobShape::Torus(4, 4), 64, 64),
            (JobShape::Torus(3, 3), 36, 36),
            // The ring has an edge of the mesh of two, and others of meshes too.
            (JobShape::Uneven, 2 + 6 + 20 + 56 + 36, 2 + 6 + 20 + 56 + 36),
        ];
        for (shape, one, many) in cases {
            let count = |keys| shape.groups(keys).iter().map(Vec::len).sum::<usize>();
            assert_eq!((count(Keys::One), count(Keys::Many)), (one, many), "{shape}");
            let ends = shape.pairs(Keys::Many).into_iter().flat_map(|(from, to)| [from, to]);
            assert!(ends.collect::<BTreeSet<_>>().into_iter().eq(0..shape.nodes()), "{shape}");
        }
    }
}
