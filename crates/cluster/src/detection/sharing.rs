//! By how much several keys are slower together, so that none is at fault.
//!
//! What they share may be one node's own slowness, if it is at an end of nearly all of them. So the question is
//! asked of the same keys that the answer is taken off. And the one that is slowed least is less slow than all
//! share by what noise does to the least of as many: that is added again, or a shift of about the noise would be
//! taken for everybody's own.

use crate::detection::members::place;

/// The part of the keys that may be slower while the rest is not: the shift that is taken off is that of the tenth
/// that is slowed least.
pub(super) const UNAFFECTED_PART: usize = 10;
/// Nodes that must be at the ends of keys before anything is said to be common to these.
const FEWEST_NODES: usize = 3;

/// What noise is believed to take off the least at most: half of what matters. Noise that was learned while a job
/// became faster is too much, and would be taken off everybody's faults.
const MOST_BY_NOISE: f32 = 0.11;

/// What keys have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KeyClass {
    /// By how much they all are slower than usual; 0 if unknown.
    pub(super) shift: f32,
    /// Whether it is known.
    pub(super) is_known: bool,
}

/// How much slower than usual keys are.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
    residuals: Vec<f32>,
    /// The sum of what noise they have.
    scales: f32,
    /// How many of them are of keys that touch each node, by its number; all 0 between two uses.
    of_node: Vec<u32>,
    touched: Vec<u32>,
}

impl Sharing {
    /// Adds a key between two nodes, and how much noise it has.
    pub(super) fn add(&mut self, residual: f32, scale: f32, from: u32, to: u32) {
        self.residuals.push(residual);
        self.scales += scale;
        for end in [from, to].map(place) {
            if self.of_node.len() <= end {
                self.of_node.resize(end + 1, 0);
            }
            self.of_node[end] += 1;
        }
        self.touched.extend([from, to]);
    }

    /// What all keys that were added have in common; resets.
    pub(super) fn take(&mut self) -> KeyClass {
        let (mut nodes, mut most) = (0, 0);
        for end in self.touched.drain(..).map(place) {
            let keys = std::mem::take(&mut self.of_node[end]);
            (nodes, most) = (nodes + usize::from(keys > 0), most.max(place(keys)));
        }
        let count = self.residuals.len();
        // Where one node is at an end of nearly every key, its own slowness would be common to all.
        let has_hub = most * UNAFFECTED_PART > count * (UNAFFECTED_PART - 1);
        let is_known = nodes >= FEWEST_NODES && !has_hub;
        let shift = if !is_known {
            0.0
        } else {
            let least = count / UNAFFECTED_PART;
            let scale = self.scales / count as f32;
            let slowed = *self.residuals.select_nth_unstable_by(least, f32::total_cmp).1;
            let by_noise = scale * below_the_middle(least, count);
            (slowed + by_noise.min(MOST_BY_NOISE)).max(0.0)
        };
        self.residuals.clear();
        self.scales = 0.0;
        KeyClass { shift, is_known }
    }
}

/// How far below the middle of normal noise the value is that has so many of `count` below it, in deviations; 0 for
/// the upper half. The place of it by G. Blom ("Statistical estimates and transformed beta-variables", 1958), the
/// quantile by formula 26.2.22 of Abramowitz and Stegun, good to 0.003.
fn below_the_middle(below: usize, count: usize) -> f32 {
    let place = (below as f32 + 0.625) / (count as f32 + 0.25);
    if place >= 0.5 {
        return 0.0;
    }
    let t = (-2.0 * place.ln()).sqrt();
    t - (2.307_53 + 0.270_61 * t) / (1.0 + t * (0.992_29 + 0.044_81 * t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_node_may_have_alone_is_not_shared() {
        let mut sharing = Sharing::default();
        let mut check = |keys: &[(f32, u32, u32)], expected: f32| {
            keys.iter().for_each(|(residual, from, to)| sharing.add(*residual, 0.0, *from, *to));
            assert_eq!(sharing.take().shift, expected, "{keys:?}");
        };
        // All of three and more nodes, by what the least is slower.
        check(&[(1.1, 0, 1), (1.2, 1, 2), (1.1, 2, 3), (1.2, 3, 0)], 1.1);
        check(&[(1.1, 0, 1), (0.0, 2, 3), (1.1, 1, 2)], 0.0);
        // Two nodes, one that is at an end of all, and nothing at all.
        check(&[(1.1, 0, 1), (1.1, 1, 0)], 0.0);
        check(&[(1.1, 0, 1), (1.1, 1, 2), (1.1, 1, 3)], 0.0);
        check(&[], 0.0);
        // Of many, one in ten may be as always.
        let keys: Vec<(f32, u32, u32)> =
            (0..20).map(|one| (if one < 2 { 0.0 } else { 1.1 }, one, one + 1)).collect();
        check(&keys, 1.1);
        // Getting faster together is no slowness.
        check(&[(-1.0, 0, 1), (-1.0, 2, 3)], 0.0);
    }

    #[test]
    fn noise_makes_nothing_shared_less() {
        // The mean of the least of so many draws of normal noise (H. L. Harter, "Expected values of normal order
        // statistics", 1961), and of the second of ten.
        let cases = [(0, 2, 0.5642), (0, 4, 1.0294), (0, 9, 1.4850), (1, 10, 1.0014)];
        for (below, count, expected) in cases {
            let found = below_the_middle(below, count);
            assert!((found - expected).abs() < 0.03, "{below} of {count}: {found}");
        }
        let mut sharing = Sharing::default();
        for (residual, node) in [0.1, 0.3, 0.2, 0.15, 0.25].into_iter().zip(0..) {
            sharing.add(residual, 0.08, node, node + 1);
        }
        let shift = sharing.take().shift;
        assert!((0.18..0.21).contains(&shift), "{shift}");
    }
}
