//! What becomes of observations that were not reported before the next one was made: one report has both.

use std::collections::BTreeSet;

use super::{
    MAX_TRAFFIC_PER_REPORT, MAX_WINDOWS_PER_REPORT, MAX_WITHHELD_PER_REPORT, Observation, Traffic,
};
use crate::work::{
    MAX_GROUPS_PER_REPORT, MAX_NAMES_PER_REPORT, MAX_OPERATIONS_PER_REPORT, Operations, Work,
};

impl Observation {
    /// This observation with what an earlier one has that was not reported, as far as a report has room. Says how many
    /// windows had none; of lost operations the next number reports.
    pub(crate) fn with_unsent(mut self, before: Self) -> (Self, usize) {
        let Self { edges, waits, operations, withheld, traffic, excused, .. } = before;
        self.excused |= excused;
        let dropped = prepend(edges, &mut self.edges, MAX_WINDOWS_PER_REPORT)
            + prepend(waits, &mut self.waits, MAX_WINDOWS_PER_REPORT);
        prepend(withheld, &mut self.withheld, MAX_WITHHELD_PER_REPORT);
        add_traffic(traffic, &mut self.traffic);
        add_operations(operations, &mut self.operations);
        (self, dropped)
    }
}

/// Puts `before` in front of `news`, as far as there is room, and says how many have none.
fn prepend<One>(mut before: Vec<One>, news: &mut Vec<One>, room: usize) -> usize {
    before.append(news);
    let dropped = before.len().saturating_sub(room);
    before.truncate(room);
    *news = before;
    dropped
}

/// Adds what connections carried before to what the same ones carried later.
fn add_traffic(before: Vec<Traffic>, news: &mut Vec<Traffic>) {
    for one in before {
        let is_same = |other: &Traffic| (other.local, other.remote) == (one.local, one.remote);
        match news.iter().position(is_same) {
            Some(place) => {
                let later = &mut news[place];
                later.bytes = later.bytes.saturating_add(one.bytes);
                later.busy = later.busy.saturating_add(one.busy);
                later.delivery_rate = later.delivery_rate.max(one.delivery_rate);
                later.elapsed = later.elapsed.saturating_add(one.elapsed);
            }
            None if news.len() < MAX_TRAFFIC_PER_REPORT => news.push(one),
            None => {}
        }
    }
}

/// Puts earlier operations in front. Of too many for a report the earliest are dropped: their steps lack operations, later
/// ones need not.
fn add_operations(earlier: Operations, news: &mut Operations) {
    let mut before = earlier.list;
    let room = MAX_OPERATIONS_PER_REPORT.saturating_sub(news.list.len());
    before.drain(..before.len().saturating_sub(room));
    let all = before.iter().chain(&news.list);
    let groups: BTreeSet<_> = all.clone().filter_map(|one| group(&one.work)).collect();
    let names: BTreeSet<&str> = all.filter_map(|one| name(&one.work)).collect();
    if groups.len() > MAX_GROUPS_PER_REPORT || names.len() > MAX_NAMES_PER_REPORT {
        before.clear();
    }
    let kept = u64::try_from(before.len()).unwrap_or(u64::MAX);
    news.before = news.before.map(|count| count.saturating_sub(kept)).or(earlier.before);
    before.append(&mut news.list);
    news.list = before;
}

const fn group(work: &Work) -> Option<crate::group::GroupId> {
    match work {
        Work::Transfer { group, .. } | Work::Collective { group, .. } => Some(*group),
        Work::Compute(_) | Work::StepEnd => None,
    }
}

fn name(work: &Work) -> Option<&str> {
    match work {
        Work::Compute(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observation::Withheld;
    use crate::rank::Rank;
    use crate::work::FinishedOperation;

    fn operation(step: u64, work: Work) -> FinishedOperation {
        FinishedOperation { rank: Rank(0), step, work, start_us: 0, duration_us: 5 }
    }

    fn steps(steps: std::ops::Range<u64>) -> Observation {
        let before = Some(steps.start);
        let list = steps.map(|step| operation(step, Work::StepEnd)).collect();
        Observation {
            operations: Operations { list, before },
            withheld: vec![Withheld::of(Rank(0), 0.5)],
            ..Observation::default()
        }
    }

    fn numbers(observation: &Observation) -> Vec<u64> {
        observation.operations.list.iter().map(|one| one.step).collect()
    }

    #[test]
    fn operations_that_were_not_reported_come_with_the_next_report() {
        let (all, dropped) = steps(3..5).with_unsent(steps(1..3));
        assert_eq!((numbers(&all), dropped), (vec![1, 2, 3, 4], 0));
        assert_eq!((all.operations.before, all.withheld.len()), (Some(1), 2));
        // The earliest have no room.
        let most = u64::try_from(MAX_OPERATIONS_PER_REPORT).unwrap();
        let (all, _) = steps(10..most + 7).with_unsent(steps(0..10));
        assert_eq!((all.operations.list.len() as u64, all.operations.before), (most, Some(7)));
        assert_eq!(numbers(&all).first(), Some(&7));
    }

    #[test]
    fn a_report_with_operations_of_before_has_no_more_names_than_it_may() {
        let named = |from: usize, count: usize| {
            let names = (from..from + count).map(|one| Work::Compute(one.to_string().into()));
            let list = names.map(|work| operation(1, work)).collect();
            Observation {
                operations: Operations { list, before: Some(5) },
                ..Observation::default()
            }
        };
        let (all, _) = named(5, MAX_NAMES_PER_REPORT).with_unsent(named(0, 5));
        assert_eq!(
            (all.operations.list.len(), all.operations.before),
            (MAX_NAMES_PER_REPORT, Some(5))
        );
    }

    #[test]
    fn traffic_of_one_connection_is_added() {
        let traffic = |last: usize, busy_ms| Traffic {
            local: [10, 0, 0, 1].into(),
            remote: [10, 0, 1, u8::try_from(last).unwrap()].into(),
            bytes: 100,
            busy: Duration::from_millis(busy_ms),
            delivery_rate: 0,
            elapsed: Duration::from_secs(1),
        };
        let with = |traffic: Vec<Traffic>| Observation { traffic, ..Observation::default() };
        let (all, _) =
            with(vec![traffic(2, 70)]).with_unsent(with(vec![traffic(3, 1), traffic(2, 30)]));
        let [second, third] = all.traffic[..] else { panic!("{all:?}") };
        assert_eq!(third, traffic(3, 1));
        assert_eq!((second.bytes, second.busy), (200, Duration::from_millis(100)));
        assert_eq!(second.elapsed, Duration::from_secs(2));
        let many = |from: usize| {
            (from..from + MAX_TRAFFIC_PER_REPORT).map(|one| traffic(one, 1)).collect()
        };
        let (all, _) = with(many(0)).with_unsent(with(many(100)));
        assert_eq!(all.traffic.len(), MAX_TRAFFIC_PER_REPORT);
    }
}
