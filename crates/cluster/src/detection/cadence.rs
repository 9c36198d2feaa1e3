//! How often something comes that comes about evenly, in evaluations, and whether it still does.

/// The longest gap that is believed to be usual.
const LONGEST_GAP: u32 = 180;
/// What is left of the longest gap with each that is shorter: one in so many parts goes.
const GAP_PARTS: u32 = 4;

/// When something came last, and the longest gap of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cadence {
    last: u32,
    gap: u32,
}

impl Cadence {
    /// That of what may come from this evaluation on.
    pub(super) const fn new(evaluation: u32) -> Self {
        Self { last: evaluation, gap: 1 }
    }

    /// It came, before this evaluation.
    pub(super) fn mark(&mut self, evaluation: u32) {
        let gap = evaluation.saturating_sub(self.last).clamp(1, LONGEST_GAP);
        self.gap = gap.max(self.gap - self.gap.div_ceil(GAP_PARTS));
        self.last = evaluation;
    }

    /// The look before which it came last.
    pub(super) const fn last(&self) -> u32 {
        self.last
    }

    /// The longest gap of late.
    pub(super) const fn gap(&self) -> u32 {
        self.gap
    }

    /// Whether no more than two gaps have passed, and one evaluation: what came stands for the present.
    pub(super) const fn is_kept(&self, evaluation: u32) -> bool {
        evaluation.saturating_sub(self.last) <= 2 * self.gap + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_seldom_is_waited_for_longer() {
        for (every, expected) in [(1, 3), (5, 11), (20, 41), (600, 361)] {
            let mut cadence = Cadence::new(0);
            (1..=20).for_each(|time| cadence.mark(time * every));
            let kept = (0..).take_while(|since| cadence.is_kept(20 * every + since)).last();
            assert_eq!(kept, Some(expected), "each {every} windows");
        }
    }

    #[test]
    fn a_pause_is_forgotten() {
        let mut cadence = Cadence::new(0);
        [1, 2, 3, 40].into_iter().for_each(|evaluation| cadence.mark(evaluation));
        assert_eq!(cadence.gap(), 37);
        (41..80).for_each(|evaluation| cadence.mark(evaluation));
        assert_eq!(cadence.gap(), 1);
    }
}
