//! Who waits for whom.

use std::collections::HashMap;

use crate::step::{Placed, Step};

/// How long one rank waits for another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// Which waits.
    pub rank: u32,
    /// For which: the last to be ready.
    pub awaited: u32,
    /// How long in one step, on the average, in nanoseconds.
    pub ns: f64,
}

/// What a rank has waited for another one: how long, and until when.
#[derive(Debug, Clone, Copy)]
struct Waited {
    sum_ns: i64,
    until_ns: i64,
}

/// How long ranks wait for each other, the longest first. A rank waits from when it began a communication until the last
/// of the ranks that take part did; two waits for the same rank at a time are one.
#[must_use]
pub fn waits(steps: &[Step]) -> Vec<Wait> {
    let mut sums: HashMap<(u32, u32), i64> = HashMap::new();
    for step in steps {
        let mut of_step: HashMap<(u32, u32), Waited> = HashMap::new();
        let mut spans = spans(step);
        spans.sort_unstable_by_key(|(_, start_ns, _)| *start_ns);
        for (pair, start_ns, ready_ns) in spans {
            let none = Waited { sum_ns: 0, until_ns: i64::MIN };
            let waited = of_step.entry(pair).or_insert(none);
            let begin_ns = start_ns.max(waited.until_ns);
            waited.sum_ns = waited.sum_ns.saturating_add((ready_ns - begin_ns).max(0));
            waited.until_ns = ready_ns.max(waited.until_ns);
        }
        for (pair, waited) in of_step {
            let sum = sums.entry(pair).or_default();
            *sum = sum.saturating_add(waited.sum_ns);
        }
    }
    let count = steps.len().max(1) as f64;
    let mut waits: Vec<Wait> = sums
        .into_iter()
        .map(|((rank, awaited), ns)| Wait { rank, awaited, ns: ns as f64 / count })
        .collect();
    waits.sort_by(|one, other| {
        let by_rank = (one.rank, one.awaited).cmp(&(other.rank, other.awaited));
        other.ns.total_cmp(&one.ns).then(by_rank)
    });
    waits
}

/// Each wait of a step: who for whom, from when to when.
fn spans(step: &Step) -> Vec<((u32, u32), i64, i64)> {
    let mut spans = Vec::new();
    for unit in step.units().filter(|unit| unit.len() > 1) {
        let of_unit = || unit.iter().map(|place| &step.operations()[*place as usize]);
        let Some(last) = of_unit().max_by_key(|one| one.start_ns) else { continue };
        // Who did not wait until then was not held up.
        let waits = |one: &&Placed| one.rank != last.rank && one.end_ns >= last.start_ns;
        spans.extend(
            of_unit().filter(waits).map(|one| ((one.rank, last.rank), one.start_ns, last.start_ns)),
        );
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{Kinds, Nature};
    use crate::operation::{Operation, Partners};
    use crate::step::StepBuilder;

    #[test]
    fn who_begins_first_waits_for_who_begins_last() {
        let mut kinds = Kinds::default();
        let kind = kinds.kind("all_reduce", Nature::Communication).unwrap();
        let mut step = StepBuilder::new(0);
        let all = Partners::All { group: 0, members: 3 };
        let other = Partners::All { group: 1, members: 2 };
        for (rank, start_ns, end_ns, partners) in [
            (0, 0, 110, all),
            (1, 40, 110, all),
            (2, 100, 110, all),
            // At the same time as the one before, and for the same rank: 20 ns more.
            (0, 50, 130, other),
            (2, 120, 130, other),
        ] {
            step.add(rank, Operation { kind, start_ns, end_ns, partners });
        }
        let step = step.build(|_| 0, |_| None).unwrap();
        let wait = |rank, ns| Wait { rank, awaited: 2, ns };
        assert_eq!(waits(&[step.clone(), step]), [wait(0, 120.0), wait(1, 60.0)]);
    }

    #[test]
    fn a_send_that_is_over_before_the_receiver_comes_waits_for_nothing() {
        let mut kinds = Kinds::default();
        let kind = kinds.kind("transfer", Nature::Communication).unwrap();
        let mut step = StepBuilder::new(0);
        let to = Partners::To { rank: 1, group: 0 };
        let from = Partners::From { rank: 0, group: 0 };
        step.add(0, Operation { kind, start_ns: 0, end_ns: 10, partners: to });
        step.add(1, Operation { kind, start_ns: 100, end_ns: 110, partners: from });
        assert_eq!(waits(&[step.build(|_| 0, |_| None).unwrap()]), []);
    }
}
