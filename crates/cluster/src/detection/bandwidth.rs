//! Slow links by what nodes' TCP connections carry while they have something to send.
//!
//! In a collective all ranks take as long, whichever link is slow; the kernel of each node knows better. Links are
//! compared with those that carry about as much. One is slow if it carries less than half, and what that takes longer is
//! a part of the time that matters. Addresses that two nodes have are no node's.
//!
//! A connection also seems busy while it waits for what its receiver acknowledges late. Then the kernel has seen it deliver
//! much faster than that, and it is no evidence of a slow link.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::members::Members;
use crate::detection::suspicion::Culprit;
use crate::observation::Traffic;
use crate::verdict::{Bandwidth, Evidence, VerdictKind};

/// Reports by which a link is judged, and in how many of them it must be slow.
const REPORTS: usize = 10;
const MOST_OF_THEM: usize = 8;
/// A link of which nothing was reported for so many evaluations is forgotten.
const KEPT_EVALUATIONS: u32 = 30;
/// A link is compared with those that carry at least and at most so many times as much, as powers of two,
const LIKE_EXPONENTS: usize = 2;
/// of which there must be so many beside it.
const LEAST_OTHERS: usize = 3;
/// What carries less than this part of what is usual is slow,
const SLOW_PART: f64 = 0.5;
/// if at least this part of the time is lost by it.
const LEAST_LOST: f64 = 0.05;
/// What delivers more than so many times as fast as it is busy, in more reports than may be exceptions, waits for
/// acknowledgements.
const MOST_FASTER: f64 = 3.0;
/// What carries fewer bytes in all reports is no link that is used.
const LEAST_BYTES: u64 = 1 << 20;
/// Addresses of nodes that are kept.
const MAX_ADDRESSES: usize = 1 << 17;
/// Volumes by their powers of two.
const EXPONENTS: usize = 64;

/// What nodes report of their connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Links {
    /// Whose each address is; nothing of one that two nodes have.
    homes: BTreeMap<IpAddr, Option<u32>>,
    links: BTreeMap<(u32, IpAddr), NodeLink>,
    evaluations: u32,
}

/// What one node sends to one address.
#[derive(Debug, Clone, Default)]
struct NodeLink {
    latest: VecDeque<BandwidthSample>,
    /// In which evaluation something was reported last.
    reported: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct BandwidthSample {
    bytes: u64,
    busy: Duration,
    elapsed: Duration,
    delivery_rate: u64,
}

/// One link with what it carried.
struct Judged<'a> {
    from: u32,
    to: u32,
    link: &'a NodeLink,
    sum: BandwidthSample,
}

// === impl Links ===

impl Links {
    /// A new epoch: ranks may be elsewhere, and their connections are new.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes what one node reports.
    pub(super) fn observe(&mut self, node: u32, traffic: &[Traffic]) {
        for one in traffic {
            let is_known = self.homes.contains_key(&one.local);
            if is_known || self.homes.len() < MAX_ADDRESSES {
                let home = self.homes.entry(one.local).or_insert(Some(node));
                *home = home.filter(|home| *home == node);
            }
            let link = self.links.entry((node, one.remote)).or_default();
            link.reported = self.evaluations;
            let Traffic { bytes, busy, elapsed, delivery_rate, .. } = *one;
            link.latest.push_back(BandwidthSample { bytes, busy, elapsed, delivery_rate });
            if link.latest.len() > REPORTS {
                link.latest.pop_front();
            }
        }
    }

    /// To be called in each evaluation.
    pub(super) fn evaluate(&mut self) {
        self.evaluations = self.evaluations.saturating_add(1);
        let evaluations = self.evaluations;
        self.links.retain(|_, link| evaluations.saturating_sub(link.reported) < KEPT_EVALUATIONS);
    }

    /// The links that are slow.
    pub(super) fn findings(&self, members: &Members) -> Vec<DetectorFinding> {
        let judged = self.judged();
        let usual = Usual::of(&judged);
        let mut slow = BTreeMap::new();
        for one in &judged {
            let found = usual.like(&one.sum).and_then(|usual| one.slowness(usual, members));
            if let Some(found) = found {
                slow.insert((one.from, one.to), found);
            }
        }
        let sides = Sides::of(&judged, &slow);
        let has_other_way = |(from, to)| slow.contains_key(&(to, from));
        let finding = |(ends, bandwidth): (&(u32, u32), &Bandwidth)| DetectorFinding {
            kind: VerdictKind::SlowLink,
            culprits: vec![sides.culprit(*ends, has_other_way(*ends))],
            is_certain: true,
            confidence: bandwidth.confidence(),
            evidence: vec![Evidence::Bandwidth(bandwidth.clone())],
            is_news: true,
        };
        slow.iter().map(finding).collect()
    }

    /// The links between two nodes of which enough is known.
    fn judged(&self) -> Vec<Judged<'_>> {
        let known = self.links.iter().filter(|(_, link)| link.latest.len() >= REPORTS);
        let judged = known.filter_map(|((from, address), link)| {
            let to = (*self.homes.get(address)?).filter(|to| to != from)?;
            Some(Judged { from: *from, to, link, sum: link.sum() })
        });
        judged.filter(|one| one.sum.bytes >= LEAST_BYTES).collect()
    }
}

// === impl NodeLink ===

impl NodeLink {
    fn sum(&self) -> BandwidthSample {
        let begin =
            BandwidthSample { delivery_rate: self.delivery_rate(), ..BandwidthSample::default() };
        self.latest.iter().fold(begin, |sum, one| BandwidthSample {
            bytes: sum.bytes.saturating_add(one.bytes),
            busy: sum.busy.saturating_add(one.busy),
            elapsed: sum.elapsed.saturating_add(one.elapsed),
            delivery_rate: sum.delivery_rate,
        })
    }

    /// What the kernel has seen it deliver in more of the reports than may be exceptions: the first bytes of a link
    /// whose rate is limited pass it at once.
    fn delivery_rate(&self) -> u64 {
        let mut rates: Vec<u64> = self.latest.iter().map(|one| one.delivery_rate).collect();
        rates.sort_unstable_by(|one, other| other.cmp(one));
        rates.get(REPORTS - MOST_OF_THEM).copied().unwrap_or(0)
    }
}

// === impl BandwidthSample ===

impl BandwidthSample {
    /// Bytes a second while there was something to send.
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.busy.as_secs_f64().max(1e-6)
    }

    fn exponent(&self) -> usize {
        usize::try_from(self.bytes.max(1).ilog2()).unwrap_or(0)
    }
}

// === impl Judged ===

impl Judged<'_> {
    /// How slow it is, if it is.
    fn slowness(&self, usual: f64, members: &Members) -> Option<Bandwidth> {
        let is_slow = |one: &&BandwidthSample| one.bytes > 0 && one.rate() < SLOW_PART * usual;
        let slow = self.link.latest.iter().filter(is_slow).count();
        let needed = self.sum.bytes as f64 / usual;
        let elapsed = self.sum.elapsed.as_secs_f64().max(1e-6);
        let lost = (self.sum.busy.as_secs_f64() - needed) / elapsed;
        let is_waiting = self.sum.delivery_rate as f64 > MOST_FASTER * self.sum.rate();
        let is_it = !is_waiting
            && slow >= MOST_OF_THEM
            && self.sum.rate() < SLOW_PART * usual
            && lost >= LEAST_LOST;
        is_it.then(|| Bandwidth {
            from: members.name(self.from).clone(),
            to: members.name(self.to).clone(),
            bytes_per_second: self.sum.rate(),
            usual_bytes_per_second: usual,
            lost: lost.min(1.0),
            slow: u32::try_from(slow).unwrap_or(u32::MAX),
            observed: u32::try_from(self.link.latest.len()).unwrap_or(u32::MAX),
        })
    }
}

/// What links usually carry a second, by how much they carry in all.
struct Usual([Option<f64>; EXPONENTS]);

// === impl Usual ===

impl Usual {
    fn of(judged: &[Judged<'_>]) -> Self {
        let mut rates: [Vec<f64>; EXPONENTS] = std::array::from_fn(|_| Vec::new());
        for one in judged {
            rates[one.sum.exponent()].push(one.sum.rate());
        }
        Self(std::array::from_fn(|exponent| {
            let least = exponent.saturating_sub(LIKE_EXPONENTS);
            let most = (exponent + LIKE_EXPONENTS).min(EXPONENTS - 1);
            let mut like: Vec<f64> = rates[least..=most].iter().flatten().copied().collect();
            if rates[exponent].is_empty() || like.len() <= LEAST_OTHERS {
                return None;
            }
            let middle = like.len() / 2;
            Some(*like.select_nth_unstable_by(middle, f64::total_cmp).1)
        }))
    }

    fn like(&self, sum: &BandwidthSample) -> Option<f64> {
        self.0[sum.exponent()]
    }
}

/// Of each node how many links go out of it and into it, and how many of them are slow.
struct Sides(BTreeMap<LinkSide, (usize, usize)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkSide {
    Out(u32),
    In(u32),
}

// === impl Sides ===

impl Sides {
    fn of(judged: &[Judged<'_>], slow: &BTreeMap<(u32, u32), Bandwidth>) -> Self {
        let mut sides: BTreeMap<LinkSide, (usize, usize)> = BTreeMap::new();
        for one in judged {
            let is_slow = usize::from(slow.contains_key(&(one.from, one.to)));
            for side in [LinkSide::Out(one.from), LinkSide::In(one.to)] {
                let (count, slow) = sides.entry(side).or_default();
                *count += 1;
                *slow += is_slow;
            }
        }
        Self(sides)
    }

    /// What a slow link is evidence of: one side of a node of which all links that way are slow, or the link.
    fn culprit(&self, (from, to): (u32, u32), has_other_way: bool) -> Culprit {
        let is_slow =
            |side| self.0.get(&side).is_some_and(|(count, slow)| *count > 1 && slow == count);
        match has_other_way {
            _ if is_slow(LinkSide::Out(from)) => Culprit::Sender(from),
            _ if is_slow(LinkSide::In(to)) => Culprit::Receiver(to),
            true => Culprit::BothWays(from.min(to), from.max(to)),
            false => Culprit::OneWay(from, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeName;
    use crate::rank::{RankMap, WorkersPerNode};

    const MIB: u64 = 1 << 20;

    fn address(node: u32) -> IpAddr {
        IpAddr::from([10, 0, 0, u8::try_from(node).unwrap() + 1])
    }

    fn traffic(from: u32, to: u32, bytes: u64, busy_ms: u64) -> Traffic {
        let (busy, elapsed) = (Duration::from_millis(busy_ms), Duration::from_secs(1));
        Traffic {
            local: address(from),
            remote: address(to),
            bytes,
            busy,
            delivery_rate: 1000 * bytes / busy_ms,
            elapsed,
        }
    }

    fn members(count: u32) -> Members {
        let mut map = RankMap::vacant(count, WorkersPerNode::new(1).unwrap());
        for slot in 0..count {
            let _ = map.fill(crate::rank::Slot(slot), &NodeName::new(&format!("n{slot}")).unwrap());
        }
        let mut members = Members::default();
        members.set_ranks(&map);
        members
    }

    /// What is found when each of these is reported so often.
    fn found(times: usize, all: &[Traffic]) -> Vec<Culprit> {
        let (mut links, members) = (Links::default(), members(8));
        for _ in 0..times {
            links.evaluate();
            for one in all {
                let node =
                    members.number(&NodeName::new(&format!("n{}", node_of(one.local))).unwrap());
                links.observe(node.unwrap(), &[*one]);
            }
        }
        links.findings(&members).into_iter().flat_map(|one| one.culprits).collect()
    }

    fn node_of(address: IpAddr) -> u8 {
        let IpAddr::V4(address) = address else { unreachable!("all are of the older kind") };
        address.octets()[3] - 1
    }

    fn ring(slow: &[u32]) -> Vec<Traffic> {
        let busy_ms = |node| if slow.contains(&node) { 600 } else { 30 };
        (0..4).map(|node| traffic(node, (node + 1) % 4, 10 * MIB, busy_ms(node))).collect()
    }

    #[test]
    fn a_link_that_carries_less_than_like_ones_is_named_after_ten_reports() {
        assert_eq!(found(10, &ring(&[1])), [Culprit::OneWay(1, 2)]);
        assert_eq!(found(9, &ring(&[1])), []);
        assert_eq!(found(10, &ring(&[])), []);
        // There is nothing to compare it with.
        assert_eq!(found(10, &ring(&[1])[..3]), []);
    }

    #[test]
    fn what_costs_little_or_carries_little_is_no_fault() {
        let mut all = ring(&[]);
        all[1].busy = Duration::from_millis(75);
        assert_eq!(found(10, &all), [], "it loses less than a twentieth of the time");
        all[1] = traffic(1, 2, MIB, 600);
        assert_eq!(found(10, &all), [], "the others carry ten times as much");
    }

    #[test]
    fn all_that_a_node_sends_is_named_once() {
        let pairs = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
        let all = |is_slow: fn(u32, u32) -> bool| -> Vec<Traffic> {
            let pairs = pairs.clone().filter(|(from, to)| from != to);
            let busy_ms = |from, to| if is_slow(from, to) { 700 } else { 20 };
            pairs.map(|(from, to)| traffic(from, to, 8 * MIB, busy_ms(from, to))).collect()
        };
        assert_eq!(found(10, &all(|from, _| from == 2)), [Culprit::Sender(2); 3]);
        assert_eq!(found(10, &all(|_, to| to == 3)), [Culprit::Receiver(3); 3]);
        let between = |from, to| [(1, 2), (2, 1)].contains(&(from, to));
        assert_eq!(found(10, &all(between)), [Culprit::BothWays(1, 2); 2]);
    }

    #[test]
    fn what_waits_for_acknowledgements_is_not_slow_and_a_burst_at_the_start_does_not_hide_what_is()
    {
        let found = |fast_reports: usize| {
            let (mut links, members) = (Links::default(), members(8));
            for report in 0..10 {
                let mut all = ring(&[1]);
                if report < fast_reports {
                    all[1].delivery_rate *= 20;
                }
                (0..).zip(all).for_each(|(node, one)| links.observe(node, &[one]));
            }
            links.findings(&members).len()
        };
        assert_eq!([0, 1, 2, 3, 10].map(found), [1, 1, 1, 0, 0]);
    }

    #[test]
    fn an_address_of_two_nodes_and_one_of_no_node_are_no_ends() {
        let mut all = ring(&[1]);
        all.push(traffic(2, 7, 10 * MIB, 900));
        assert_eq!(found(10, &all), [Culprit::OneWay(1, 2)]);
        let (mut links, members) = (Links::default(), members(8));
        for _ in 0..10 {
            (0..).zip(ring(&[1])).for_each(|(node, one)| links.observe(node, &[one]));
            // Node 5 says that it has the address of node 2.
            links.observe(5, &[traffic(2, 0, MIB, 1)]);
        }
        assert!(links.findings(&members).is_empty());
    }

    #[test]
    fn a_link_that_is_not_used_any_more_is_forgotten() {
        let (mut links, members) = (Links::default(), members(8));
        for _ in 0..10 {
            (0..).zip(ring(&[1])).for_each(|(node, one)| links.observe(node, &[one]));
        }
        assert_eq!(links.findings(&members).len(), 1);
        (0..KEPT_EVALUATIONS).for_each(|_| links.evaluate());
        assert!(links.findings(&members).is_empty());
    }
}
