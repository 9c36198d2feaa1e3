//! From where steps lose their time to findings about nodes and links.

use std::collections::BTreeMap;

use telltale_steps::attribution::Slowness;

use super::analysis::{Analysis, LinkCost, RankCost};
use crate::detection::finding::DetectorFinding;
use crate::detection::members::Members;
use crate::detection::suspicion::Culprit;
use crate::rank::Rank;
use crate::verdict::{Evidence, SlowSteps, VerdictKind};

/// What costs a smaller part of the step is not reported as a fault.
const LEAST_COST: f64 = 0.05;

/// The nodes and links that are slow. A stage, the data or noise is no node's fault.
pub(super) fn findings(found: &Analysis, members: &Members) -> Vec<DetectorFinding> {
    let mut findings = nodes(found, members);
    findings.extend(links(found, members));
    findings
}

/// Each link between two nodes with slow transfers, once, whichever ranks have them and whether one way or both.
fn links(found: &Analysis, members: &Members) -> Vec<DetectorFinding> {
    let is_costly = |one: &&LinkCost| one.slowness.alone_ns >= LEAST_COST * found.actual_ns;
    let mut pairs: BTreeMap<(u32, u32), Vec<(Culprit, &LinkCost)>> = BTreeMap::new();
    for one in found.links.iter().filter(is_costly) {
        let [from, to] = [one.from, one.to].map(|rank| members.of_rank(rank));
        // Between two ranks of one node there is no link that could be named.
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            let ways = pairs.entry((from.min(to), from.max(to))).or_default();
            ways.push((Culprit::OneWay(from, to), one));
        }
    }
    let finding = |((one, other), ways): ((u32, u32), Vec<(Culprit, &LinkCost)>)| {
        let (way, _) = ways[0];
        let is_one_way = ways.iter().all(|(other, _)| *other == way);
        let cost_ns = ways.iter().map(|(_, one)| one.slowness.cost_ns).sum();
        let evidence = ways.iter().map(|(_, one)| {
            let slowness = Slowness { cost_ns, ..one.slowness };
            evidence((one.from, Some(one.to)), &slowness, found.actual_ns, 0.0)
        });
        let confidences = ways.iter().map(|(_, one)| confidence(&one.slowness));
        DetectorFinding {
            kind: VerdictKind::SlowLink,
            culprits: vec![if is_one_way { way } else { Culprit::BothWays(one, other) }],
            is_certain: true,
            confidence: confidences.fold(0.0, f64::max),
            evidence: evidence.collect(),
            is_news: true,
        }
    };
    pairs.into_iter().map(finding).collect()
}

/// Each node with a slow rank, once.
fn nodes(found: &Analysis, members: &Members) -> Vec<DetectorFinding> {
    let mut nodes: BTreeMap<u32, Vec<(&RankCost, f64)>> = BTreeMap::new();
    let mut step_ns = found.actual_ns;
    for one in &found.ranks {
        if let Some(node) = members.of_rank(one.rank).filter(|_| is_slow(one, found)) {
            nodes.entry(node).or_default().push((one, step_ns));
        }
        step_ns -= one.slowness.cost_ns;
    }
    let finding = |(node, ranks): (u32, Vec<(&RankCost, f64)>)| {
        let surest = ranks.iter().map(|(one, _)| confidence(&one.slowness));
        let evidence = ranks.iter().map(|(one, step_ns)| {
            evidence((one.rank, None), &one.slowness, *step_ns, one.withheld)
        });
        let confidence = surest.fold(0.0, f64::max);
        DetectorFinding::of_node(VerdictKind::SlowNode, node, confidence, evidence.collect())
    };
    nodes.into_iter().map(finding).collect()
}

/// Whether it computes slowly, and would cost enough if no other rank did: one that is slower hides it, and both are
/// replaced together.
fn is_slow(one: &RankCost, found: &Analysis) -> bool {
    let alone_ns = one.slowness.alone_ns;
    let with_it_alone_ns = (found.actual_ns - found.ranks_ns + alone_ns).min(found.actual_ns);
    !one.is_between && alone_ns >= LEAST_COST * with_it_alone_ns
}

/// Laplace's rule of succession: how probable it is that the next step is slow too.
fn confidence(slowness: &Slowness) -> f64 {
    (f64::from(slowness.slow_steps) + 1.0) / (f64::from(slowness.steps) + 2.0)
}

fn evidence(
    (rank, peer): (Rank, Option<Rank>),
    slowness: &Slowness,
    step_ns: f64,
    withheld: f64,
) -> Evidence {
    Evidence::SlowSteps(SlowSteps {
        rank,
        peer,
        ratio: slowness.ratio,
        cost_ns: slowness.cost_ns.max(0.0) as u64,
        step_ns: step_ns.max(0.0) as u64,
        slow: slowness.slow_steps,
        observed: slowness.steps,
        withheld,
    })
}
