//! Links that are slow against others with like transfers.

use std::collections::BTreeMap;

use super::{SlowLink, SlowRank};
use crate::kind::Kind;
use crate::operation::Partners;
use crate::roles::{Role, Roles};
use crate::step::{Placed, Step};

/// Links of one kind differ by nature; less than this many times the middle one is not slow.
const MEANINGFUL: f64 = 1.5;
/// The same where the links' ends have different roles: some may be within a host and others between hosts.
const MEANINGFUL_OF_OTHERS: f64 = 3.0;
/// So many links with ends of the same roles can be compared among themselves.
const ENOUGH_LINKS: usize = 3;
/// In this part of the steps it must be so.
const MOST_STEPS: f64 = 0.75;

/// Sender and receiver of a transfer.
pub(super) const fn ends(one: &Placed) -> Option<(u32, u32)> {
    match one.partners {
        Partners::To { rank, .. } => Some((one.rank, rank)),
        Partners::From { rank, .. } => Some((rank, one.rank)),
        Partners::None | Partners::All { .. } => None,
    }
}

type Link = (u32, u32);

/// The slow links, costliest first. Those of a slow rank are that rank's. `cost` says what a step takes longer by one.
pub(super) fn slow(
    steps: &[Step],
    roles: &Roles,
    ranks: &[SlowRank],
    cost: impl Fn(u32, u32) -> f64,
) -> Vec<SlowLink> {
    // How long the received transfers of each kind take on each link, in each step: the receiver sees the last byte.
    let mut times: BTreeMap<Kind, BTreeMap<Link, Vec<f64>>> = BTreeMap::new();
    for step in steps {
        let mut sums: BTreeMap<(Kind, Link), (f64, f64)> = BTreeMap::new();
        let received =
            step.operations().iter().filter(|one| matches!(one.partners, Partners::From { .. }));
        for one in received {
            let Some(link) = ends(one) else { continue };
            let (sum, count) = sums.entry((one.kind, link)).or_default();
            *sum += one.work_ns as f64;
            *count += 1.0;
        }
        for ((kind, link), (sum, count)) in sums {
            times.entry(kind).or_default().entry(link).or_default().push(sum / count);
        }
    }
    let mut slow: BTreeMap<Link, SlowLink> = BTreeMap::new();
    for of_kind in times.values() {
        for (link, of_link) in of_kind {
            let is_ranks = ranks.iter().any(|slow| slow.rank == link.0 || slow.rank == link.1);
            let Some((usual, limit)) = usual(of_kind, *link, roles).filter(|_| !is_ranks) else {
                continue;
            };
            let slow_steps = of_link.iter().filter(|one| **one > limit * usual).count();
            if (slow_steps as f64) < MOST_STEPS * of_link.len() as f64 {
                continue;
            }
            let ratio = of_link.iter().sum::<f64>() / of_link.len() as f64 / usual;
            let new = SlowLink {
                from: link.0,
                to: link.1,
                ratio,
                cost_ns: 0.0,
                slow_steps: u32::try_from(slow_steps).unwrap_or(u32::MAX),
                steps: u32::try_from(of_link.len()).unwrap_or(u32::MAX),
            };
            let known = slow.entry(*link).or_insert(new);
            if new.ratio > known.ratio {
                *known = new;
            }
        }
    }
    let mut slow: Vec<SlowLink> = slow.into_values().collect();
    slow.iter_mut().for_each(|one| one.cost_ns = cost(one.from, one.to));
    slow.sort_by(|one, other| other.cost_ns.total_cmp(&one.cost_ns));
    slow
}

/// How long like transfers take on other links, and from how many times that on one is slow; `None` of a link that
/// there is nothing to compare with.
fn usual(of_kind: &BTreeMap<Link, Vec<f64>>, link: Link, roles: &Roles) -> Option<(f64, f64)> {
    let roles_of =
        |(from, to): Link| -> (Option<Role>, Option<Role>) { (roles.role(from), roles.role(to)) };
    let middle = |links: Vec<&Vec<f64>>| {
        let mut values: Vec<f64> = links.into_iter().flatten().copied().collect();
        let place = values.len().checked_sub(1)? / 2;
        Some(*values.select_nth_unstable_by(place, f64::total_cmp).1)
    };
    let others = || of_kind.iter().filter(|(other, _)| **other != link);
    let alike: Vec<&Vec<f64>> = others()
        .filter(|(other, _)| roles_of(**other) == roles_of(link))
        .map(|one| one.1)
        .collect();
    let (links, limit) = match alike.len() + 1 >= ENOUGH_LINKS {
        true => (alike, MEANINGFUL),
        false => (others().map(|one| one.1).collect(), MEANINGFUL_OF_OTHERS),
    };
    let is_enough = links.len() + 1 >= ENOUGH_LINKS;
    middle(links).filter(|usual| is_enough && *usual > 0.0).map(|usual| (usual, limit))
}
