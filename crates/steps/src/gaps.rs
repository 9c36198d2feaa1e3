//! What ranks do between their operations.
//!
//! Clients measure what they know of. A rank that reads its data, writes a checkpoint or computes outside of any span
//! makes the others wait just the same, and that it does nothing which it shares with them is known: so the time in
//! which none of a rank's operations runs is its own, or a wait for what its client does not record.

use std::collections::BTreeMap;

use crate::kind::{Kind, Kinds, Nature};
use crate::operation::{MAX_DURATION_NS, Operation, Partners};
use crate::step::StepBuilder;

/// Gaps in front of operations of one kind that are a smaller part of the step at every rank are left out.
const LEAST_PART: f64 = 0.01;

/// The kind of what a rank does from the end of one step to its first operation in the next.
const BETWEEN_STEPS: &str = "between steps";

/// A gap, and the kind of the operation that ends it.
struct Gap {
    rank: u32,
    /// None of the first operation of the step.
    before: Option<Kind>,
    start_ns: i64,
    end_ns: i64,
}

impl StepBuilder {
    /// Adds what ranks do between operations as operations of their own, of kinds `before ...` and, for what lies before
    /// the first, `between steps`. `ends` has when each rank ended the step before, by its own clock, as
    /// [`StepBuilder::ends`] gave it: from there it is this step.
    /// Gaps that matter nowhere are left out.
    pub fn add_gaps(&mut self, ends: &BTreeMap<u32, i64>, kinds: &mut Kinds) {
        let gaps = self.gaps(ends);
        let mut sums: BTreeMap<(Option<Kind>, u32), i64> = BTreeMap::new();
        for gap in &gaps {
            let sum = sums.entry((gap.before, gap.rank)).or_default();
            *sum = sum.saturating_add(gap.end_ns - gap.start_ns);
        }
        let least_ns = LEAST_PART * self.longest_ns(ends) as f64;
        let mut between: BTreeMap<Option<Kind>, Option<Kind>> = BTreeMap::new();
        for ((before, _), sum) in sums {
            if sum as f64 >= least_ns && sum > 0 {
                let name = before.map_or(BETWEEN_STEPS.to_owned(), |kind| {
                    format!("before {}", kinds.name(kind))
                });
                between.entry(before).or_insert_with(|| kinds.kind(&name, Nature::Between));
            }
        }
        for Gap { rank, before, start_ns, end_ns } in gaps {
            if let Some(kind) = between.get(&before).copied().flatten() {
                self.add(rank, Operation { kind, start_ns, end_ns, partners: Partners::None });
            }
        }
    }

    /// The gaps of all ranks.
    fn gaps(&mut self, ends: &BTreeMap<u32, i64>) -> Vec<Gap> {
        self.sort();
        let mut gaps = Vec::new();
        for of_rank in self.operations().chunk_by(|one, next| one.0 == next.0) {
            let rank = of_rank[0].0;
            let mut free_ns = ends.get(&rank).copied();
            for (place, (_, one)) in of_rank.iter().enumerate() {
                let gap = free_ns.and_then(|free| one.start_ns.checked_sub(free));
                if let (Some(start_ns), Some(0..=MAX_DURATION_NS)) = (free_ns, gap) {
                    let before = (place > 0).then_some(one.kind);
                    gaps.push(Gap { rank, before, start_ns, end_ns: one.start_ns });
                }
                free_ns = Some(free_ns.map_or(one.end_ns, |free| free.max(one.end_ns)));
            }
        }
        gaps
    }

    /// How long the step took at the rank that needed the most time.
    fn longest_ns(&self, ends: &BTreeMap<u32, i64>) -> i64 {
        let of_ranks = self.operations().chunk_by(|one, next| one.0 == next.0);
        let times = of_ranks.map(|of_rank| {
            let first = ends.get(&of_rank[0].0).copied().unwrap_or(of_rank[0].1.start_ns);
            let last = of_rank.iter().map(|(_, one)| one.end_ns).max().unwrap_or(first);
            last.saturating_sub(first)
        });
        times.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: Kind, start_ns: i64, end_ns: i64) -> Operation {
        Operation { kind, start_ns, end_ns, partners: Partners::None }
    }

    #[test]
    fn the_time_in_which_nothing_of_a_rank_runs_is_its_own() {
        let mut kinds = Kinds::default();
        let forward = kinds.kind("forward", Nature::Compute).unwrap();
        let backward = kinds.kind("backward", Nature::Compute).unwrap();
        let mut step = StepBuilder::new(1);
        // The second one overlaps the first, so that there is no gap before it.
        for (rank, one) in [
            (0, operation(forward, 1_000, 2_000)),
            (0, operation(forward, 1_500, 3_000)),
            (0, operation(backward, 3_500, 4_000)),
            (1, operation(forward, 700, 1_000)),
            (1, operation(backward, 1_001, 2_000)),
        ] {
            step.add(rank, one);
        }
        step.add_gaps(&BTreeMap::from([(0, 0), (1, 600)]), &mut kinds);
        let step = step.build(|_| 0, |_| None).unwrap();
        let gaps: Vec<(u32, &str, i64)> = step
            .operations()
            .iter()
            .filter(|one| kinds.nature(one.kind) == Nature::Between)
            .map(|one| (one.rank, kinds.name(one.kind), one.work_ns))
            .collect();
        let expected = [
            (0, "between steps", 1_000),
            (0, "before backward", 500),
            (1, "between steps", 100),
            (1, "before backward", 1),
        ];
        assert_eq!(gaps, expected);
        // The second forward could have begun with the first one.
        assert!((step.replay(|one| one.work_ns as f64) - 3_500.0).abs() < 1e-6);
    }

    #[test]
    fn gaps_that_matter_nowhere_are_left_out() {
        let mut kinds = Kinds::default();
        let forward = kinds.kind("forward", Nature::Compute).unwrap();
        let mut step = StepBuilder::new(1);
        step.add(0, operation(forward, 0, 500_000));
        step.add(0, operation(forward, 500_100, 1_000_000));
        step.add_gaps(&BTreeMap::new(), &mut kinds);
        assert_eq!((step.count(), kinds.count()), (2, 1));
    }
}
