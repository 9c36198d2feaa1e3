//! From where steps lose their time to findings about nodes and links.

use std::collections::{BTreeMap, BTreeSet};

use super::analysis::{Analysis, LinkCost, RankCost};
use crate::detection::finding::Finding;
use crate::detection::members::Members;
use crate::detection::suspicion::Culprit;
use crate::rank::Rank;
use crate::verdict::{Evidence, SlowSteps, VerdictKind};

/// What costs a smaller part of the step is not reported as a fault.
const LEAST_COST: f64 = 0.05;

/// The nodes and links that are slow. A stage, the data or noise is nobody's fault.
pub(super) fn findings(found: &Analysis, members: &Members) -> Vec<Finding> {
    let step_ns = found.actual_ns;
    let mut findings = nodes(found, members);
    let is_costly = |one: &&LinkCost| one.cost_ns >= LEAST_COST * step_ns;
    let links: Vec<(Culprit, &LinkCost)> = found
        .links
        .iter()
        .filter(is_costly)
        .filter_map(|one| {
            let (from, to) = (members.of_rank(one.from)?, members.of_rank(one.to)?);
            // Between two ranks of one node there is no link that could be told of.
            (from != to).then_some((Culprit::OneWay(from, to), one))
        })
        .collect();
    let all: BTreeSet<(u32, u32)> =
        links.iter().filter_map(|(culprit, _)| ends(*culprit)).collect();
    for (culprit, one) in links {
        let culprit = match ends(culprit) {
            Some((from, to)) if all.contains(&(to, from)) => {
                Culprit::BothWays(from.min(to), from.max(to))
            }
            _ => culprit,
        };
        findings.push(Finding {
            kind: VerdictKind::SlowLink,
            culprits: vec![culprit],
            is_certain: true,
            confidence: confidence(one.slow_steps, one.steps),
            evidence: vec![evidence(
                (one.from, Some(one.to)),
                (one.ratio, one.cost_ns, step_ns),
                (one.slow_steps, one.steps),
                0.0,
            )],
            is_news: true,
        });
    }
    findings
}

/// Each node with a slow rank, once.
fn nodes(found: &Analysis, members: &Members) -> Vec<Finding> {
    let mut nodes: BTreeMap<u32, Vec<(&RankCost, f64)>> = BTreeMap::new();
    let mut step_ns = found.actual_ns;
    for one in &found.ranks {
        if let Some(node) = members.of_rank(one.rank).filter(|_| is_slow(one, found)) {
            nodes.entry(node).or_default().push((one, step_ns));
        }
        step_ns -= one.cost_ns;
    }
    let finding = |(node, ranks): (u32, Vec<(&RankCost, f64)>)| {
        let surest = ranks.iter().map(|(one, _)| confidence(one.slow_steps, one.steps));
        let evidence = ranks.iter().map(|(one, step_ns)| {
            let costs = (one.ratio, one.cost_ns, *step_ns);
            evidence((one.rank, None), costs, (one.slow_steps, one.steps), one.withheld)
        });
        let confidence = surest.fold(0.0, f64::max);
        Finding::of_node(VerdictKind::SlowNode, node, confidence, evidence.collect())
    };
    nodes.into_iter().map(finding).collect()
}

/// Whether it computes slowly, and would cost enough if no other rank did: one that is slower hides it, and both are
/// replaced together.
fn is_slow(one: &RankCost, found: &Analysis) -> bool {
    let with_it_alone_ns = (found.actual_ns - found.ranks_ns + one.alone_ns).min(found.actual_ns);
    !one.is_between && one.alone_ns >= LEAST_COST * with_it_alone_ns
}

const fn ends(culprit: Culprit) -> Option<(u32, u32)> {
    match culprit {
        Culprit::OneWay(from, to) => Some((from, to)),
        _ => None,
    }
}

/// Laplace's rule of succession: how probable it is that the next step is slow too.
fn confidence(slow: u32, steps: u32) -> f64 {
    (f64::from(slow) + 1.0) / (f64::from(steps) + 2.0)
}

fn evidence(
    (rank, peer): (Rank, Option<Rank>),
    (ratio, cost_ns, step_ns): (f64, f64, f64),
    (slow, observed): (u32, u32),
    withheld: f64,
) -> Evidence {
    Evidence::SlowSteps(SlowSteps {
        rank,
        peer,
        ratio,
        cost_ns: cost_ns.max(0.0) as u64,
        step_ns: step_ns.max(0.0) as u64,
        slow,
        observed,
        withheld,
    })
}
