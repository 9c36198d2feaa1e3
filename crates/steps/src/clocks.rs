//! Whose clock is ahead by how much, from what passed between hosts.
//!
//! No end of a communication is before the start of any of its ranks: that bounds how far one host's clock can be
//! ahead of the other's, as in NTP. Within the bounds, both ends are taken to end together: a receiver when the last byte
//! is there, and a sender then or, where sends are buffered, before.
//!
//! Where everything goes one way around, as in a ring, one slow link looks like clocks that differ. There it helps to
//! know from elsewhere, if only to some milliseconds, how they do.

use std::collections::BTreeMap;

use crate::lists::Lists;
use crate::operation::Partners;
use crate::step::Placed;

/// What is known of clocks from elsewhere may be wrong by this much; what passes between hosts tells better.
const KNOWN_WITHIN_NS: u64 = 10_000_000;
/// Of this part of the transfers the ends were further apart by less: the receivers were ready, and nothing was buffered.
const CLOSEST_PART: usize = 10;

/// What is known of how far the clock of one host is ahead of another's, in nanoseconds.
#[derive(Debug, Clone)]
struct ClockBounds {
    least: i64,
    most: i64,
    /// How far the ends of collectives were apart, and of transfers: the receiver's less the sender's where the host
    /// that is ahead received, or its negative where that sent.
    collectives: Vec<i64>,
    received: Vec<i64>,
    sent: Vec<i64>,
}

impl ClockBounds {
    const fn nothing() -> Self {
        Self {
            least: i64::MIN,
            most: i64::MAX,
            collectives: Vec::new(),
            received: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn bound(&mut self, least: i64, most: i64) {
        self.least = self.least.max(least);
        self.most = self.most.min(most);
    }

    /// The best guess, and by how much it may be wrong. `elsewhere` is what is known of these clocks otherwise.
    fn guess(mut self, elsewhere: Option<i64>) -> (i64, u64) {
        let width = self.most.abs_diff(self.least);
        let closest = |list: &mut Vec<i64>| {
            let place = list.len().checked_sub(1)? / CLOSEST_PART;
            Some(*list.select_nth_unstable(place).1)
        };
        let middle = self.collectives.len() / 2;
        let guess = if self.collectives.is_empty() {
            let received = closest(&mut self.received);
            let sent = closest(&mut self.sent).map(i64::saturating_neg);
            match (received, sent) {
                // Each is too large by a latency, in its direction.
                (Some(received), Some(sent)) => received / 2 + sent / 2,
                (one, other) => one.or(other).unwrap_or(0),
            }
        } else {
            *self.collectives.select_nth_unstable(middle).1
        };
        let is_wrong = |known: &i64| known.abs_diff(guess) > KNOWN_WITHIN_NS;
        let guess = elsewhere.filter(is_wrong).unwrap_or(guess);
        // A clock that drifts may leave no room between the bounds.
        let guess =
            if self.least <= self.most { guess.clamp(self.least, self.most) } else { guess };
        (guess, width)
    }
}

/// Puts all times on the clock of the first rank's host. Hosts that nothing connects keep theirs. `clock` says how far
/// ahead of some other clock that of a host is, as far as that is known.
pub(crate) fn align(
    operations: &mut [Placed],
    units: &Lists,
    host: impl Fn(u32) -> u32,
    clock: impl Fn(u32) -> Option<i64>,
) {
    let mut pairs: BTreeMap<(u32, u32), ClockBounds> = BTreeMap::new();
    for unit in units.all().filter(|unit| unit.len() > 1) {
        let first = &operations[unit[0] as usize];
        for place in &unit[1..] {
            let other = &operations[*place as usize];
            // The clock of the second host less that of the first.
            let (one, another) = match host(first.rank) < host(other.rank) {
                true => (first, other),
                false => (other, first),
            };
            let key = (host(one.rank), host(another.rank));
            if key.0 == key.1 {
                continue;
            }
            let known = pairs.entry(key).or_insert_with(ClockBounds::nothing);
            known.bound(
                another.start_ns.saturating_sub(one.end_ns),
                another.end_ns.saturating_sub(one.start_ns),
            );
            let apart = another.end_ns.saturating_sub(one.end_ns);
            match another.partners {
                Partners::From { .. } => known.received.push(apart),
                Partners::To { .. } => known.sent.push(apart.saturating_neg()),
                Partners::All { .. } | Partners::None => known.collectives.push(apart),
            }
        }
    }
    if pairs.is_empty() {
        return;
    }
    let ahead = ahead(pairs, host(operations[0].rank), clock);
    for one in operations {
        let Some(ahead) = ahead.get(&host(one.rank)) else { continue };
        one.start_ns = one.start_ns.saturating_sub(*ahead);
        one.end_ns = one.end_ns.saturating_sub(*ahead);
    }
}

/// How far each host's clock is ahead of that of `reference`, along the pairs that are known best.
fn ahead(
    pairs: BTreeMap<(u32, u32), ClockBounds>,
    reference: u32,
    clock: impl Fn(u32) -> Option<i64>,
) -> BTreeMap<u32, i64> {
    let mut edges: Vec<(u64, u32, u32, i64)> = pairs
        .into_iter()
        .map(|((one, another), known)| {
            let elsewhere = clock(one).zip(clock(another));
            let elsewhere = elsewhere.map(|(one, another)| another.saturating_sub(one));
            let (ahead, width) = known.guess(elsewhere);
            (width, one, another, ahead)
        })
        .collect();
    edges.sort_unstable();
    // Kruskal's minimum spanning tree.
    let mut roots: BTreeMap<u32, u32> = BTreeMap::new();
    let mut tree: BTreeMap<u32, Vec<(u32, i64)>> = BTreeMap::new();
    for (_, one, another, ahead) in edges {
        let (from, to) = (root(&mut roots, one), root(&mut roots, another));
        if from == to {
            continue;
        }
        roots.insert(from, to);
        tree.entry(one).or_default().push((another, ahead));
        tree.entry(another).or_default().push((one, ahead.saturating_neg()));
    }
    let mut known = BTreeMap::from([(reference, 0_i64)]);
    let mut waiting = vec![reference];
    while let Some(host) = waiting.pop() {
        let base = known[&host];
        for (other, ahead) in tree.get(&host).into_iter().flatten() {
            if !known.contains_key(other) {
                known.insert(*other, base.saturating_add(*ahead));
                waiting.push(*other);
            }
        }
    }
    known
}

/// Who stands for the hosts that `host` is connected with so far.
fn root(roots: &mut BTreeMap<u32, u32>, host: u32) -> u32 {
    let mut one = host;
    while let Some(next) = roots.get(&one).copied() {
        if let Some(after) = roots.get(&next).copied() {
            roots.insert(one, after);
        }
        one = next;
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_slow_link_one_way_is_distinguished_from_clocks_that_differ_by_what_is_known_of_them() {
        // Sends are buffered and end at once, and what they send is there after 60 ms, each time.
        let mut known = ClockBounds::nothing();
        known.bound(-MS, 60 * MS);
        known.received = vec![59 * MS; 10];
        // Alone, that may as well be a clock that is ahead.
        assert_eq!(known.clone().guess(None).0, 59 * MS);
        assert_eq!(known.clone().guess(Some(2 * MS)).0, 2 * MS);
        // What passes between hosts tells better than what is known to some milliseconds, and bounds it.
        assert_eq!(known.clone().guess(Some(55 * MS)).0, 59 * MS);
        assert_eq!(known.guess(Some(-30 * MS)).0, -MS);
    }
}
