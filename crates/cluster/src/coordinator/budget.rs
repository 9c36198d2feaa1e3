//! How often something happened lately.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Moment;

/// What counts against a budget, and since when.
#[derive(Debug, Clone, Default)]
pub(super) struct Spent {
    /// How many at each moment, the earliest first.
    times: VecDeque<(Moment, u32)>,
}

impl Spent {
    /// What another leader had spent, all as of now: it may count too long, never too short.
    pub(super) fn restored(now: Moment, count: u32) -> Self {
        Self { times: VecDeque::from([(now, count)]) }
    }

    /// How much is spent within `window` before `now`.
    pub(super) fn count(&mut self, now: Moment, window: Duration) -> u32 {
        while self.times.front().is_some_and(|(first, _)| now.since(*first) >= window) {
            self.times.pop_front();
        }
        self.times.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Spends one.
    pub(super) fn spend(&mut self, now: Moment) {
        self.times.push_back((now, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_counts_for_the_window() {
        let window = Duration::from_nanos(10);
        let mut spent = Spent::restored(Moment::from_ns(5), 2);
        spent.spend(Moment::from_ns(8));
        let counts = [8, 14, 15, 18].map(|at| spent.count(Moment::from_ns(at), window));
        assert_eq!(counts, [3, 3, 1, 0]);
    }

    #[test]
    fn whatever_is_restored_takes_the_same_place() {
        let now = Moment::from_ns(5);
        let mut spent = Spent::restored(now, u32::MAX);
        spent.spend(now);
        assert_eq!((spent.times.len(), spent.count(now, Duration::from_nanos(10))), (2, u32::MAX));
        assert_eq!(spent.count(Moment::from_ns(15), Duration::from_nanos(10)), 0);
    }
}
