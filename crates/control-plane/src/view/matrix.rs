//! Latencies between nodes, now against what is usual.

use serde::Serialize;
use telltale_wire::cluster::message::LatencyMatrix;

/// Latencies between nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixView {
    /// The nodes, in the order of rows and columns.
    pub nodes: Vec<String>,
    /// What is known of pairs of them.
    pub cells: Vec<CellView>,
    /// Nodes that had no place.
    pub left_out: u32,
    /// When this was so.
    pub at_unix_ms: u64,
}

/// Latencies of what one node sends to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellView {
    /// The node that sends: its place in [`MatrixView::nodes`].
    pub from: usize,
    /// The node that receives, likewise.
    pub to: usize,
    /// What is usual.
    pub usual_ns: u64,
    /// How it is now.
    pub now_ns: u64,
    /// How many times as long as usual it takes; not where nothing is usual yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// Whether it is slower than usual beyond doubt.
    pub is_slow: bool,
}

impl From<&LatencyMatrix> for MatrixView {
    fn from(matrix: &LatencyMatrix) -> Self {
        let within = |place: u32| usize::try_from(place).ok().filter(|at| *at < matrix.nodes.len());
        let cells = matrix.cells.iter().filter_map(|cell| {
            let (from, to) = (within(cell.from)?, within(cell.to)?);
            let times = (cell.usual_ns > 0).then(|| cell.now_ns as f64 / cell.usual_ns as f64);
            let (usual_ns, now_ns, is_slow) = (cell.usual_ns, cell.now_ns, cell.is_slow);
            Some(CellView { from, to, usual_ns, now_ns, times, is_slow })
        });
        Self {
            nodes: matrix.nodes.clone(),
            cells: cells.collect(),
            left_out: matrix.left_out,
            at_unix_ms: matrix.at_unix_ms,
        }
    }
}

impl MatrixView {
    /// The cell of what `from` sends to `to`, if it is known.
    #[must_use]
    pub fn cell(&self, from: usize, to: usize) -> Option<&CellView> {
        self.cells.iter().find(|cell| (cell.from, cell.to) == (from, to))
    }
}
