//! What could be known at best: all smallest explanations of latencies without noise, by trying.
//!
//! Written from the definition alone, and shares no code with detection: a suspect accounts for what
//! all of its edges share; an explanation accounts for every slow edge to within what matters.

use std::collections::{BTreeMap, BTreeSet};

use crate::faults::machine::SimulatedFault;

/// The factor below which nothing is slow, as the detector's default has it.
const MEANINGFUL: f64 = 1.25;
/// Checks edges after which a question is too large to try everything.
const MAX_STEPS: usize = 30_000_000;

/// All smallest explanations of one part of a machine's slow edges.
pub type Smallest = BTreeSet<BTreeSet<SimulatedFault>>;

/// The smallest explanations of what `faults` do to the edges `pairs`, part by part: explanations of
/// different parts do not touch each other. `None` when there are too many to try.
#[must_use]
pub fn explanations(
    pairs: &BTreeSet<(u32, u32)>,
    faults: &[(SimulatedFault, f64)],
) -> Option<Vec<Smallest>> {
    let slowness: BTreeMap<(u32, u32), f64> = pairs
        .iter()
        .map(|pair| {
            let touching = faults.iter().filter(|(fault, _)| fault.touches(*pair));
            (*pair, touching.map(|(_, ratio)| ratio.ln()).sum())
        })
        .collect();
    let meaningful = MEANINGFUL.ln();
    let candidates = candidates(pairs, &slowness, meaningful);
    let slow: Vec<(u32, u32)> =
        slowness.iter().filter(|(_, much)| **much >= meaningful).map(|(pair, _)| *pair).collect();
    parts(&slow, &candidates)
        .iter()
        .map(|part| {
            let demands = part.iter().map(|pair| (*pair, (slowness[pair] - meaningful).max(1e-6)));
            smallest(&demands.collect::<Vec<_>>(), &candidates)
        })
        .collect()
}

/// Everything that is slow in all of its edges, with what they share.
fn candidates(
    pairs: &BTreeSet<(u32, u32)>,
    slowness: &BTreeMap<(u32, u32), f64>,
    meaningful: f64,
) -> BTreeMap<SimulatedFault, f64> {
    let nodes: BTreeSet<u32> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
    let links = pairs.iter().map(|(from, to)| (*from.min(to), *from.max(to)));
    let is_two_way = |(low, high): &(u32, u32)| pairs.contains(&(*high, *low));
    let sides = |node: &u32| {
        let sent = pairs.iter().filter(|pair| pair.0 == *node).count();
        let received = pairs.iter().filter(|pair| pair.1 == *node).count();
        let sender = (sent >= 2 && received > 0).then_some(SimulatedFault::Sender(*node));
        let receiver = (received >= 2 && sent > 0).then_some(SimulatedFault::Receiver(*node));
        [sender, receiver]
    };
    let all = nodes
        .iter()
        .map(|node| SimulatedFault::Node(*node))
        .chain(nodes.iter().flat_map(sides).flatten())
        .chain(pairs.iter().map(|(from, to)| SimulatedFault::OneWay(*from, *to)))
        .chain(
            links
                .filter(|link| pairs.contains(link) && is_two_way(link))
                .map(|(low, high)| SimulatedFault::BothWays(low, high)),
        );
    all.filter_map(|fault| {
        let touched = pairs.iter().filter(|pair| fault.touches(**pair));
        let shared = touched.map(|pair| slowness[pair]).fold(f64::INFINITY, f64::min);
        (shared >= meaningful).then_some((fault, shared))
    })
    .collect()
}

/// Slow edges that share a candidate, directly or by others.
fn parts(
    slow: &[(u32, u32)],
    candidates: &BTreeMap<SimulatedFault, f64>,
) -> Vec<BTreeSet<(u32, u32)>> {
    let mut parts: Vec<BTreeSet<(u32, u32)>> =
        slow.iter().map(|pair| BTreeSet::from([*pair])).collect();
    for fault in candidates.keys() {
        let (touched, mut apart): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.iter().any(|pair| fault.touches(*pair)));
        let joined: BTreeSet<(u32, u32)> = touched.into_iter().flatten().collect();
        if !joined.is_empty() {
            apart.push(joined);
        }
        parts = apart;
    }
    parts
}

fn smallest(
    demands: &[((u32, u32), f64)],
    candidates: &BTreeMap<SimulatedFault, f64>,
) -> Option<Smallest> {
    let mut steps = 0;
    (1..=demands.len())
        .find_map(|size| {
            let mut found = Smallest::new();
            try_all(demands, candidates, size, &mut BTreeSet::new(), &mut found, &mut steps);
            (steps > MAX_STEPS || !found.is_empty()).then_some(found)
        })
        .filter(|_| steps <= MAX_STEPS)
}

/// Tries every set of `left` more candidates: the first edge that is not accounted for needs one of
/// those that touch it.
fn try_all(
    demands: &[((u32, u32), f64)],
    candidates: &BTreeMap<SimulatedFault, f64>,
    left: usize,
    chosen: &mut BTreeSet<SimulatedFault>,
    found: &mut Smallest,
    steps: &mut usize,
) {
    *steps += demands.len();
    let given = |pair: &(u32, u32)| {
        let touching = chosen.iter().filter(|fault| fault.touches(*pair));
        touching.map(|fault| candidates[fault]).sum::<f64>()
    };
    let Some((pair, _)) = demands.iter().find(|(pair, demand)| given(pair) + 1e-9 < *demand) else {
        found.insert(chosen.clone());
        return;
    };
    if left == 0 || *steps > MAX_STEPS {
        return;
    }
    let touching: Vec<SimulatedFault> = touching(*pair)
        .into_iter()
        .filter(|fault| candidates.contains_key(fault) && !chosen.contains(fault))
        .collect();
    for fault in touching {
        chosen.insert(fault);
        try_all(demands, candidates, left - 1, chosen, found, steps);
        chosen.remove(&fault);
    }
}

const fn touching((from, to): (u32, u32)) -> [SimulatedFault; 6] {
    let (low, high) = if from < to { (from, to) } else { (to, from) };
    [
        SimulatedFault::Node(from),
        SimulatedFault::Node(to),
        SimulatedFault::Sender(from),
        SimulatedFault::Receiver(to),
        SimulatedFault::BothWays(low, high),
        SimulatedFault::OneWay(from, to),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::machine::Topology;

    fn check(
        topology: Topology,
        nodes: u32,
        faults: &[SimulatedFault],
        expected: &[&[&[SimulatedFault]]],
    ) {
        let pairs = topology.edges(0, nodes).into_iter().collect();
        let faults: Vec<(SimulatedFault, f64)> = faults.iter().map(|fault| (*fault, 1.5)).collect();
        let found = explanations(&pairs, &faults).unwrap();
        let found: Vec<Vec<Vec<SimulatedFault>>> = found
            .into_iter()
            .map(|part| part.into_iter().map(|set| set.into_iter().collect()).collect())
            .collect();
        assert_eq!(found, expected, "{topology:?} of {nodes}: {faults:?}");
    }

    #[test]
    fn what_can_be_distinguished_and_what_cannot() {
        use SimulatedFault::{BothWays, Node, OneWay, Sender};
        check(Topology::Mesh, 2, &[Node(0)], &[&[&[Node(0)], &[Node(1)], &[BothWays(0, 1)]]]);
        check(Topology::Mesh, 3, &[Node(0)], &[&[&[Node(0)]]]);
        check(Topology::Mesh, 4, &[Sender(1)], &[&[&[Sender(1)]]]);
        check(Topology::Mesh, 4, &[OneWay(1, 2)], &[&[&[OneWay(1, 2)]]]);
        // Two slow nodes on either side of a healthy one.
        check(Topology::Ring, 8, &[Node(1), Node(3)], &[&[&[Node(1), Node(3)]]]);
        // Three in a row, equally slow: the middle one's edges share twice as much, so it is certain,
        // and each of the outer ones could be the link behind it.
        check(
            Topology::Ring,
            8,
            &[Node(1), Node(2), Node(3)],
            &[&[
                &[Node(1), Node(2), Node(3)],
                &[Node(1), Node(2), BothWays(3, 4)],
                &[Node(2), Node(3), BothWays(0, 1)],
                &[Node(2), BothWays(0, 1), BothWays(3, 4)],
            ]],
        );
        // A slow link beside the slow links of a node: three links in a row, equally slow.
        let (left, right) = ([Node(1), BothWays(2, 3)], [Node(2), BothWays(0, 1)]);
        check(Topology::Ring, 8, &left, &[&[&[Node(1), Node(2)], &left, &right]]);
    }
}
