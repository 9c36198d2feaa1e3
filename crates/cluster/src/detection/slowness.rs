//! Slow nodes and links by their own history: from the matrix to findings with values.

use crate::detection::finding::DetectorFinding;
use crate::detection::matrix::{Matrix, MatrixCell, SlowFrom};
use crate::detection::members::Members;
use crate::detection::suspicion::{Culprit, Suspicion, suspicions};
use crate::verdict::{Evidence, VerdictKind};

/// Edges whose values go into one finding.
const SHOWN_EDGES: usize = 6;

/// What is slow now and who is suspected of it.
pub(super) fn findings(
    matrix: &Matrix,
    members: &Members,
    limit: SlowFrom,
) -> Vec<DetectorFinding> {
    let suspicions = suspicions(matrix, limit).into_iter();
    suspicions.map(|one| finding(one, matrix, members, limit)).collect()
}

fn finding(
    suspicion: Suspicion,
    matrix: &Matrix,
    members: &Members,
    limit: SlowFrom,
) -> DetectorFinding {
    let Suspicion { culprits, explanations, cut_short } = suspicion;
    let mut edges = edges_of(&culprits, matrix);
    let level = |cell: &MatrixCell| cell.change.level().unwrap_or(0.0);
    edges.sort_by(|one, other| level(other).total_cmp(&level(one)));
    let is_slow = |cell: &&&MatrixCell| limit.is_slow(cell, level(cell));
    let slow = edges.iter().filter(is_slow).count();
    let observed = edges.len();
    let is_certain = culprits.len() == 1 && !cut_short;
    let mut evidence = vec![Evidence::Agreement { slow: count(slow), observed: count(observed) }];
    if !is_certain {
        evidence.push(Evidence::Explanations { count: count(explanations), cut_short });
    }
    evidence.extend(edges.iter().filter(is_slow).take(SHOWN_EDGES).map(|cell| Evidence::Slower {
        from: members.name(cell.from).clone(),
        to: members.name(cell.to).clone(),
        usual_ns: nanoseconds(cell.usual),
        now_ns: nanoseconds(cell.usual + level(cell)),
    }));
    let is_news = edges.iter().any(|cell| matrix.is_news(cell));
    let has_node = culprits.iter().any(|one| matches!(one, Culprit::Node(_)));
    DetectorFinding {
        kind: if has_node { VerdictKind::SlowNode } else { VerdictKind::SlowLink },
        culprits,
        is_certain,
        confidence: slow as f64 / observed.max(1) as f64 / explanations.max(1) as f64,
        evidence,
        is_news,
    }
}

/// The present cells that one of the culprits touches, each once.
fn edges_of<'a>(culprits: &[Culprit], matrix: &'a Matrix) -> Vec<&'a MatrixCell> {
    let mut edges: Vec<&MatrixCell> = Vec::new();
    for culprit in culprits {
        let node = match *culprit {
            Culprit::Node(node) | Culprit::Sender(node) | Culprit::Receiver(node) => node,
            Culprit::BothWays(node, _) | Culprit::OneWay(node, _) => node,
        };
        edges.extend(matrix.cells_of(node).filter(|cell| culprit.touches(cell.from, cell.to)));
    }
    edges.sort_unstable_by_key(|cell| (cell.from, cell.to));
    edges.dedup_by_key(|cell| (cell.from, cell.to));
    edges
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The latency whose natural logarithm this is. It came from one, so it is in range; a cast of what
/// is not saturates.
pub(super) fn nanoseconds(logarithm: f32) -> u64 {
    f64::from(logarithm).exp().round() as u64
}
