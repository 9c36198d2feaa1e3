//! The original's rule: a node is slow if the average of its latencies is more than two standard
//! deviations above the mean of all nodes' averages.
//!
//! It is here to be compared with. It cannot name anybody among five nodes or fewer, and among many
//! it names healthy ones (docs/cluster-detection.md has the numbers).

use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::matrix::Matrix;
use crate::detection::members::Members;
use crate::detection::slowness::nanoseconds;
use crate::verdict::{Evidence, VerdictKind};

/// The rule's factor.
const DEVIATIONS: f64 = 2.0;

/// The nodes that the rule names now: none whose average is below `threshold`.
pub(super) fn findings(
    matrix: &Matrix,
    members: &Members,
    threshold: Duration,
) -> Vec<DetectorFinding> {
    let averages: Vec<(u32, f64)> =
        members.holders().filter_map(|node| Some((node, average_ns(matrix, node)?))).collect();
    if averages.is_empty() {
        return Vec::new();
    }
    let count = averages.len() as f64;
    let mean = averages.iter().map(|one| one.1).sum::<f64>() / count;
    let variance = averages.iter().map(|one| (one.1 - mean).powi(2)).sum::<f64>() / count;
    let bound = (mean + DEVIATIONS * variance.sqrt()).max(threshold.as_nanos() as f64);
    let outliers = averages.into_iter().filter(|one| one.1 > bound);
    outliers
        .map(|(node, average)| {
            let metrics = Evidence::Outlier { average_ns: average as u64, bound_ns: bound as u64 };
            DetectorFinding::of_node(VerdictKind::SlowNode, node, 1.0, vec![metrics])
        })
        .collect()
}

/// The average over a node's row and column.
fn average_ns(matrix: &Matrix, node: u32) -> Option<f64> {
    let latencies = matrix.cells_of(node).filter_map(|cell| Some(cell.usual + cell.change.last()?));
    let (sum, count) = latencies
        .fold((0.0, 0_u32), |(sum, count), one| (sum + nanoseconds(one) as f64, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
