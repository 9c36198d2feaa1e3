//! A fault that was there before anybody knew what is usual.
//!
//! A level that was learned while its node was slow is too high, and the fault invisible. So fresh
//! levels are compared with those of the node's class, and what the node has that its peers have
//! not is taken off: from then on it shows like any other fault. Only nodes are found this way.
//! That one link is slow by nature or by a fault is unknown without history.
//!
//! What is compared are links: all keys between two nodes measure the same one, and are one piece of
//! evidence however many they are. Healthy links are taken for independent draws, in logarithms, from
//! a normal distribution whose centre and spread are not known. How far a node's links must stand out
//! follows from how many links say so, and from how many the spread is known: it is the quantile of
//! Student's distribution. A few links that happen to be alike prove nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::detection::matrix::{KeyRow, MatrixCell};
use crate::detection::members::place;

/// Links that a node needs: one that is slow may as well be the link.
const FEWEST_LINKS: usize = 2;
/// How sure it must be: as rare as so many deviations of normal noise, 1 in a billion.
const DEVIATIONS: f32 = 6.0;
/// By which factor a node must stand out at least: ln 1.35.
const SMALLEST_EFFECT: f32 = 0.3;
/// Links are never believed to be more alike than this, whatever the few at hand say.
const SMALLEST_SPREAD: f32 = 0.05;
/// How rare it must be, however links differ, that some node has just the slowest of them.
const RARE: f64 = 1e-5;
/// The standard error of a median over that of a mean.
const MEDIAN_OVER_MEAN: f32 = 1.2533;

/// Compares the nodes of one class, and corrects the levels of those that stand out. Says whether
/// it could: not before nine of ten keys know their level.
pub(super) fn compare(class: &[u32], keys: &mut [KeyRow], cells: &[MatrixCell]) -> bool {
    let known = class.iter().filter(|key| keys[place(**key)].level.centre().is_some()).count();
    if known * 10 < class.len() * 9 {
        return false;
    }
    let (links, known_before) = links(class, keys, cells);
    for (node, offset) in outstanding(links, &known_before) {
        for number in class {
            let key = &mut keys[place(*number)];
            let cell = &cells[place(key.cell)];
            if key.is_unchecked && (cell.from == node || cell.to == node) {
                key.level.correct(offset);
            }
        }
    }
    class.iter().for_each(|key| keys[place(*key)].is_unchecked = false);
    true
}

/// What is known of the links between two nodes each.
type Links = BTreeMap<(u32, u32), f32>;

/// The level of each link of the class, and the nodes of which some were known before.
fn links(class: &[u32], keys: &[KeyRow], cells: &[MatrixCell]) -> (Links, BTreeSet<u32>) {
    let mut sums: BTreeMap<(u32, u32), (f32, f32)> = BTreeMap::new();
    let mut known_before = BTreeSet::new();
    for key in class.iter().map(|number| &keys[place(*number)]) {
        let Some(centre) = key.level.centre() else { continue };
        let MatrixCell { from, to, .. } = cells[place(key.cell)];
        let (sum, count) = sums.entry((from.min(to), from.max(to))).or_default();
        (*sum, *count) = (*sum + centre, *count + 1.0);
        if !key.is_unchecked {
            known_before.extend([from, to]);
        }
    }
    let links = sums.into_iter().map(|(ends, (sum, count))| (ends, sum / count));
    (links.collect(), known_before)
}

/// The nodes that stand out, and by how much: the one that does most, then the next among the rest.
fn outstanding(links: Links, known_before: &BTreeSet<u32>) -> Vec<(u32, f32)> {
    let mut rest = Rest::of(links);
    let mut found = Vec::new();
    while let Some((node, offset)) = rest.most_outstanding(known_before) {
        found.push((node, offset));
        rest.remove(node);
    }
    found
}

/// The links of nodes that have not been found. What is known of each node is kept from one to the next.
struct Rest {
    /// The other ends of each node's links, and their levels; also of those that have been found.
    ends: BTreeMap<u32, Vec<(u32, f32)>>,
    /// The levels of each node's links in order; nodes without any are not there.
    of_nodes: BTreeMap<u32, Vec<f32>>,
    count: usize,
    all: SampleSums,
}

impl Rest {
    fn of(links: Links) -> Self {
        let mut ends: BTreeMap<u32, Vec<(u32, f32)>> = BTreeMap::new();
        let mut all = SampleSums::default();
        for ((one, other), level) in &links {
            ends.entry(*one).or_default().push((*other, *level));
            ends.entry(*other).or_default().push((*one, *level));
            all.add(*level);
        }
        let levels = |ends: &Vec<(u32, f32)>| {
            let mut levels: Vec<f32> = ends.iter().map(|(_, level)| *level).collect();
            levels.sort_unstable_by(f32::total_cmp);
            levels
        };
        let of_nodes = ends.iter().map(|(node, ends)| (*node, levels(ends))).collect();
        Self { ends, of_nodes, count: links.len(), all }
    }

    fn most_outstanding(&self, known_before: &BTreeSet<u32>) -> Option<(u32, f32)> {
        let is_new = |(node, own): &(&u32, &Vec<f32>)| {
            own.len() >= FEWEST_LINKS && !known_before.contains(node)
        };
        let nodes = self.of_nodes.len() as f64;
        let could_prove =
            |(_, own): &(&u32, &Vec<f32>)| nodes * RARE.recip() <= ways(self.count, own.len());
        let standing = self.of_nodes.iter().filter(is_new).filter(could_prove);
        let standing = standing.filter_map(|(node, own)| {
            let (offset, bound) = compared(own, self.all)?;
            (offset >= SMALLEST_EFFECT && offset >= bound).then_some((
                *node,
                offset,
                offset / bound,
            ))
        });
        let most = standing.max_by(|(.., one), (.., other)| one.total_cmp(other))?;
        Some((most.0, most.1))
    }

    /// Takes off a node and its links.
    fn remove(&mut self, node: u32) {
        self.of_nodes.remove(&node);
        for (other, level) in self.ends.remove(&node).unwrap_or_default() {
            // One that was found has taken its links with it.
            let Some(levels) = self.of_nodes.get_mut(&other) else { continue };
            if let Ok(position) = levels.binary_search_by(|one| one.total_cmp(&level)) {
                levels.remove(position);
            }
            if levels.is_empty() {
                self.of_nodes.remove(&other);
            }
            self.count -= 1;
            self.all = self.all.without(&[level]);
        }
    }
}

/// In how many ways some of so many can be chosen.
fn ways(all: usize, chosen: usize) -> f64 {
    (0..chosen).map(|one| (all - one) as f64 / (one + 1) as f64).product()
}

/// How much slower a node's `own` links, in their order, are than those it has no part in, and how much that
/// must be. Nothing if there are too few others to know how different links are.
fn compared(own: &[f32], all: SampleSums) -> Option<(f32, f32)> {
    let others = all.without(own);
    let spread = others.deviation()?.max(SMALLEST_SPREAD);
    // The lower of the two in the middle: half of a neighbour's links may be another's fault.
    let level = own[(own.len() - 1) / 2];
    let share = MEDIAN_OVER_MEAN * MEDIAN_OVER_MEAN / own.len() as f32 + 1.0 / others.count;
    let bound = quantile(others.count - 1.0) * spread * share.sqrt();
    Some((level - others.mean(), bound))
}

/// What in Student's distribution with so many degrees of freedom is as rare as [`DEVIATIONS`] in the normal one.
/// An approximation within three percent (D. Wallace, "Bounds on normal approximations to Student's and the chi-square
/// distributions", 1959).
fn quantile(freedom: f32) -> f32 {
    let normal = DEVIATIONS * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (normal * normal / freedom).exp_m1()).sqrt()
}

/// Numbers of which only count, sum and squares are kept; a logarithm of nanoseconds is at most 45.
#[derive(Debug, Clone, Copy, Default)]
struct SampleSums {
    count: f32,
    sum: f64,
    squares: f64,
}

impl SampleSums {
    fn add(&mut self, value: f32) {
        let value = f64::from(value);
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn without(mut self, values: &[f32]) -> Self {
        for value in values.iter().copied().map(f64::from) {
            self.count -= 1.0;
            self.sum -= value;
            self.squares -= value * value;
        }
        self
    }

    fn mean(self) -> f32 {
        (self.sum / f64::from(self.count)) as f32
    }

    /// The deviation, known from one number less than there are; nothing of less than two.
    fn deviation(self) -> Option<f32> {
        if self.count < 2.0 {
            return None;
        }
        let square = self.squares - self.sum * self.sum / f64::from(self.count);
        Some((square.max(0.0) / f64::from(self.count - 1.0)).sqrt() as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(links: &[((u32, u32), f32)], expected: &[u32]) {
        let links: Links = links.iter().copied().collect();
        let found = outstanding(links, &BTreeSet::new());
        assert_eq!(found.iter().map(|one| one.0).collect::<Vec<_>>(), expected);
    }

    /// A mesh in which links differ by some percent, and those of these nodes are slower by `slower`.
    fn mesh(nodes: u32, slow: &[u32], slower: f32) -> Vec<((u32, u32), f32)> {
        let pairs = (0..nodes).flat_map(|one| (one + 1..nodes).map(move |other| (one, other)));
        let level = |(one, other): (u32, u32)| {
            let touching = [one, other].iter().filter(|end| slow.contains(end)).count();
            11.0 + ((one * 7 + other * 3) % 5) as f32 / 10.0 + slower * touching as f32
        };
        pairs.map(|pair| (pair, level(pair))).collect()
    }

    #[test]
    fn links_that_happen_to_be_alike_prove_nothing() {
        check(&[((0, 1), 11.33), ((2, 3), 11.32), ((4, 5), 11.78)], &[]);
        // Both links of one node of a short pipeline, twice as slow as three that are the same to the last digit.
        let alike = [((0, 1), 11.3), ((1, 2), 11.3), ((2, 3), 11.3), ((3, 4), 12.0)];
        check(&[&alike[..], &[((4, 5), 12.0)]].concat(), &[]);
        check(&mesh(4, &[], 0.0), &[]);
        check(&mesh(8, &[], 0.0), &[]);
    }

    #[test]
    fn a_node_with_many_slow_links_stands_out_and_so_do_two() {
        check(&mesh(8, &[3], 1.1), &[3]);
        check(&mesh(8, &[3], 0.2), &[]);
        check(&mesh(32, &[3], 0.5), &[3]);
        let mut found = outstanding(mesh(32, &[3, 9], 1.1).into_iter().collect(), &BTreeSet::new());
        found.sort_by_key(|one| one.0);
        assert_eq!(found.iter().map(|one| one.0).collect::<Vec<_>>(), [3, 9]);
        assert!(found.iter().all(|one| (1.0..1.3).contains(&one.1)), "{found:?}");
    }

    #[test]
    fn hundreds_of_slow_nodes_among_ten_thousand_are_found_fast() {
        // Each has eight neighbours; one in fifty is slow.
        let (nodes, every) = (10_000, 50);
        let links = (0..nodes).flat_map(|one| {
            (1..=4).map(move |step| {
                let other = (one + step) % nodes;
                let slow = [one, other].iter().filter(|end| **end % every == 0).count();
                let level = 11.0 + ((one * 7 + other * 3) % 5) as f32 / 10.0 + 1.1 * slow as f32;
                ((one.min(other), one.max(other)), level)
            })
        });
        let mut found: Vec<u32> =
            outstanding(links.collect(), &BTreeSet::new()).iter().map(|one| one.0).collect();
        found.sort_unstable();
        assert!(found.into_iter().eq((0..nodes).filter(|node| node % every == 0)));
    }

    #[test]
    fn what_is_known_from_few_links_must_stand_out_more() {
        // The quantiles of Student's distribution for 1 in 10^9, one-sided.
        for (freedom, expected) in [(10.0, 20.17), (20.0, 10.28), (60.0, 7.06), (10_000.0, 6.0)] {
            let found = quantile(freedom);
            assert!((found / expected - 1.0_f32).abs() < 0.03, "{freedom}: {found}");
        }
        assert!(quantile(2.0) > 1_000.0);
    }
}
