//! Links that are slow against others with like transfers.

use std::collections::{BTreeMap, BTreeSet};

use super::{LinkTime, SlowLink, SlowRank, Slowness, starved};
use crate::kind::Kind;
use crate::operation::Partners;
use crate::processors::Processors;
use crate::roles::{Role, Roles};
use crate::spread::{average, middle, spread};
use crate::step::{Placed, Step};

/// Links of one kind differ by nature; less than this many times the middle one is not slow.
const MEANINGFUL: f64 = 1.5;
/// The same where the links' ends have different roles: some may be within a host and others between hosts.
const MEANINGFUL_OF_OTHERS: f64 = 3.0;
/// So many links with ends of the same roles can be compared among themselves.
const ENOUGH_LINKS: usize = 3;
/// In this part of the steps it must be so.
const MOST_STEPS: f64 = 0.75;
/// What is slower by so many times more than its rank is so by itself.
const MUCH_SLOWER: f64 = 2.0;
/// A rank from which less of the processor is withheld has transfers that are as fast as its links.
const LEAST_WITHHELD: f64 = 0.02;
/// How many times the usual difference between like links a slow one must differ by.
const DEVIATIONS: f64 = 4.0;
/// The same of their times, not of logarithms: where short transfers take a tenth or ten times of each other by chance,
/// no factor is unusual, but many times the usual difference is.
const DEVIATIONS_OF_TIMES: f64 = 10.0;

/// Sender and receiver of a transfer.
pub(super) const fn ends(one: &Placed) -> Option<(u32, u32)> {
    match one.partners {
        Partners::To { rank, .. } => Some((one.rank, rank)),
        Partners::From { rank, .. } => Some((rank, one.rank)),
        Partners::None | Partners::All { .. } => None,
    }
}

type Link = (u32, u32);
type RolesOf = (Option<Role>, Option<Role>);

/// How long the received transfers of one kind take on each link, in each step: the receiver sees the last byte.
type Times = BTreeMap<Link, Vec<f64>>;

/// What like transfers take, and from how many times that on one is slow.
#[derive(Debug, Clone, Copy)]
struct Usual {
    ns: f64,
    limit: f64,
}

/// Two ranks between which transfers are slow, one way or both.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// What it costs; how slow each way is, the ways say.
    pub(super) slowness: Slowness,
    ways: Vec<SlowLink>,
}

impl Pair {
    pub(super) fn is_slow_way(&self, (from, to): Link) -> bool {
        self.ways.iter().any(|way| (way.from, way.to) == (from, to))
    }

    /// The ways that are slow, which share what the pair costs.
    pub(super) fn into_ways(self) -> impl Iterator<Item = SlowLink> {
        let Slowness { cost_ns, alone_ns, .. } = self.slowness;
        let cost_ns = cost_ns / self.ways.len() as f64;
        self.ways.into_iter().map(move |mut way| {
            (way.slowness.cost_ns, way.slowness.alone_ns) = (cost_ns, alone_ns);
            way
        })
    }
}

impl AsRef<Slowness> for Pair {
    fn as_ref(&self) -> &Slowness {
        &self.slowness
    }
}

impl AsMut<Slowness> for Pair {
    fn as_mut(&mut self) -> &mut Slowness {
        &mut self.slowness
    }
}

/// Slow links by the pairs of ranks that they join.
pub(super) fn pairs(links: Vec<SlowLink>) -> Vec<Pair> {
    let mut pairs: BTreeMap<Link, Pair> = BTreeMap::new();
    for way in links {
        let none = Pair { slowness: Slowness::default(), ways: Vec::new() };
        let ends = (way.from.min(way.to), way.from.max(way.to));
        pairs.entry(ends).or_insert(none).ways.push(way);
    }
    pairs.into_values().collect()
}

/// The links that are slow, and how long all take. Those of a rank that may lack its processor at times are that rank's. Those
/// of a slow rank are too where its processor is withheld from it as far as is known, or where most of them are slow and
/// not by much more than it computes slowly.
pub(super) fn links(
    steps: &[Step],
    roles: &Roles,
    ranks: &[SlowRank],
    processors: &Processors,
) -> (Vec<SlowLink>, Vec<LinkTime>) {
    let mut slow: BTreeMap<Link, SlowLink> = BTreeMap::new();
    let mut all: BTreeMap<Link, LinkTime> = BTreeMap::new();
    for of_kind in times(steps).values() {
        let usual = usual(of_kind, roles);
        for (link, of_link) in of_kind {
            let (from, to) = *link;
            let Some(usual) = usual(*link) else { continue };
            let ns = average(of_link);
            let sum = all.entry(*link).or_insert(LinkTime { from, to, ns: 0.0, usual_ns: 0.0 });
            sum.ns += ns;
            sum.usual_ns += usual.ns;
            let slow_steps = of_link.iter().filter(|one| **one > usual.limit * usual.ns).count();
            let is_slow = ns > usual.limit * usual.ns
                && slow_steps as f64 >= MOST_STEPS * of_link.len() as f64;
            if !is_slow {
                continue;
            }
            let [slow_steps, steps] =
                [slow_steps, of_link.len()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            let slowness =
                Slowness { ratio: ns / usual.ns, slow_steps, steps, ..Slowness::default() };
            let new = SlowLink { from, to, slowness };
            let known = slow.entry(*link).or_insert(new);
            if slowness.ratio > known.slowness.ratio {
                *known = new;
            }
        }
    }
    let most_of: BTreeSet<u32> = with_most_slow(all.keys(), &slow);
    let is_ranks = |link: &SlowLink| {
        let both = [link.from, link.to];
        if both.iter().any(|rank| processors.may_lack(*rank, starved::MEANINGFUL)) {
            return true;
        }
        ranks.iter().filter(|one| both.contains(&one.rank)).any(|end| {
            let has_processor =
                processors.lasting(end.rank).is_some_and(|part| part < LEAST_WITHHELD);
            let is_as_slow = link.slowness.ratio < MUCH_SLOWER * end.slowness.ratio;
            !has_processor || (is_as_slow && most_of.contains(&end.rank))
        })
    };
    let slow = slow.values().filter(|one| !is_ranks(one)).copied().collect();
    (slow, all.into_values().collect())
}

/// The ranks most of whose links are slow.
fn with_most_slow<'a>(
    all: impl Iterator<Item = &'a Link>,
    slow: &BTreeMap<Link, SlowLink>,
) -> BTreeSet<u32> {
    let mut counts: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for link in all {
        for rank in [link.0, link.1] {
            let (count, slow_count) = counts.entry(rank).or_default();
            *count += 1;
            *slow_count += usize::from(slow.contains_key(link));
        }
    }
    let most = counts.into_iter().filter(|(_, (count, slow_count))| 2 * slow_count > *count);
    most.map(|(rank, _)| rank).collect()
}

fn times(steps: &[Step]) -> BTreeMap<Kind, Times> {
    let mut times: BTreeMap<Kind, Times> = BTreeMap::new();
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
    times
}

/// What is usual of a link: of those whose ends have the same roles if they are enough, else of all. Nothing where
/// there is nothing to compare with.
fn usual(of_kind: &Times, roles: &Roles) -> impl Fn(Link) -> Option<Usual> {
    let roles_of = |(from, to): Link| -> RolesOf { (roles.role(from), roles.role(to)) };
    let mut alike: BTreeMap<RolesOf, Vec<f64>> = BTreeMap::new();
    for (link, times) in of_kind {
        alike.entry(roles_of(*link)).or_default().push(average(times));
    }
    let of_others = judged(alike.values().flatten().copied().collect(), MEANINGFUL_OF_OTHERS);
    let alike: BTreeMap<RolesOf, Option<Usual>> = alike
        .into_iter()
        .map(|(roles, times)| (roles, judged(times, MEANINGFUL).or(of_others)))
        .collect();
    move |link| alike.get(&roles_of(link)).copied().flatten()
}

/// What is usual of links with these times.
fn judged(mut times: Vec<f64>, meaningful: f64) -> Option<Usual> {
    times.retain(|ns| *ns > 0.0);
    if times.len() < ENOUGH_LINKS {
        return None;
    }
    let factor = (DEVIATIONS * spread(times.iter().map(|ns| ns.ln()))).exp();
    let spread_ns = spread(times.iter().copied());
    let ns = middle(&mut times);
    let limit = factor.min(1.0 + DEVIATIONS_OF_TIMES * spread_ns / ns);
    Some(Usual { ns, limit: meaningful.max(limit) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_is_reported_among_few_whose_short_transfers_differ_by_chance() {
        // A pipeline of four stages whose second link is slow both ways, in milliseconds.
        let usual = judged(vec![0.75, 4.44, 65.69, 65.24, 0.25, 0.96], MEANINGFUL_OF_OTHERS);
        let usual = usual.expect("they are enough");
        assert!(65.24 > usual.limit * usual.ns && 4.44 < usual.limit * usual.ns, "{usual:?}");
    }

    #[test]
    fn links_that_differ_little_are_judged_by_factors() {
        let like: Vec<f64> = (0..32).map(|place| (0.15 * f64::from(place % 5 - 2)).exp()).collect();
        let usual = judged(like, MEANINGFUL).expect("they are enough");
        let factor = (DEVIATIONS * 1.4826 * 0.15_f64).exp();
        assert!((usual.limit - factor).abs() < 1e-6, "{usual:?}");
    }
}
