//! How the clocks of nodes differ, by when their reports were sent and came: to some milliseconds.

use std::collections::{BTreeMap, VecDeque};

use crate::observation::Observation;
use crate::time::Moment;

/// Reports of each node that are checked. Clocks drift apart by less than a tenth of a millisecond in a second.
const REPORTS: usize = 30;
/// Clients whose operations end so long before or after their agent's report do not read its clock.
const LATEST_US: i64 = 100_000;
const EARLIEST_US: i64 = 120_000_000;

/// What is known of each node's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    nodes: BTreeMap<u32, HostClock>,
}

#[derive(Debug, Clone, Default)]
struct HostClock {
    /// How much later reports came than they were sent, each by its own clock, in nanoseconds.
    later_ns: VecDeque<i64>,
    /// Whether its clients read another clock.
    is_other: bool,
}

impl Clocks {
    /// Takes when a report came.
    pub(super) fn observe(&mut self, now: Moment, node: u32, observation: &Observation) {
        let Some(sent_us) = observation.sent_us else { return };
        let clock = self.nodes.entry(node).or_default();
        let now_ns = i64::try_from(now.as_ns()).unwrap_or(i64::MAX);
        clock.later_ns.push_back(now_ns.saturating_sub(sent_us.saturating_mul(1000)));
        if clock.later_ns.len() > REPORTS {
            clock.later_ns.pop_front();
        }
        let timed = observation.operations.list.iter().filter(|one| one.duration_us > 0);
        clock.is_other |= timed.into_iter().any(|one| {
            let duration_us = i64::try_from(one.duration_us).unwrap_or(i64::MAX);
            let since_us = sent_us.saturating_sub(one.start_us.saturating_add(duration_us));
            !(-LATEST_US..=EARLIEST_US).contains(&since_us)
        });
    }

    /// How many nanoseconds a node's clock, which its clients read, is ahead of this one: by the report that came
    /// soonest. `None` where that is not known.
    pub(super) fn ahead_ns(&self, node: u32) -> Option<i64> {
        let clock = self.nodes.get(&node).filter(|clock| !clock.is_other)?;
        clock.later_ns.iter().min().map(|later| later.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::Rank;
    use crate::work::{FinishedOperation, Operations, Work};

    fn report(sent_us: i64, end_us: Option<i64>) -> Observation {
        let operation = end_us.map(|end_us| FinishedOperation {
            rank: Rank(0),
            step: 1,
            work: Work::Compute("forward".into()),
            start_us: end_us - 500,
            duration_us: 500,
        });
        let operations = Operations { list: operation.into_iter().collect(), before: None };
        Observation { sent_us: Some(sent_us), operations, ..Observation::default() }
    }

    #[test]
    fn the_report_that_came_soonest_reports_how_clocks_differ() {
        let mut clocks = Clocks::default();
        for (second, delay_us) in (1..=40).zip([9000, 700, 400, 20_000].into_iter().cycle()) {
            let now_us = second * 1_000_000;
            // The clock of node 1 is an hour ahead.
            let sent_us = now_us - delay_us + 3_600_000_000;
            let now = Moment::from_ns(u64::try_from(now_us * 1000).unwrap());
            clocks.observe(now, 1, &report(sent_us, Some(sent_us - 2000)));
            clocks.observe(now, 2, &report(now_us, Some(1_700_000_000_000_000)));
            clocks.observe(now, 3, &Observation::default());
        }
        assert_eq!(clocks.ahead_ns(1), Some(3_600_000_000_000 - 400_000));
        // The clients of node 2 read a clock of the calendar, and node 3 says nothing of its own.
        assert_eq!((clocks.ahead_ns(2), clocks.ahead_ns(3)), (None, None));
        // What makes no sense is not believed.
        clocks.observe(Moment::from_ns(u64::MAX), 1, &report(i64::MIN, Some(i64::MAX)));
        assert_eq!(clocks.ahead_ns(1), None);
    }
}
