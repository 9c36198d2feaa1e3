//! How often something happened lately.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Moment;

/// Times of what counts against a budget.
#[derive(Debug, Clone, Default)]
pub(super) struct Spent {
    times: VecDeque<Moment>,
}

impl Spent {
    /// What another leader had spent, all as of now: it may count too long, never too short.
    pub(super) fn restored(now: Moment, count: u32) -> Self {
        Self { times: (0..count).map(|_| now).collect() }
    }

    /// How much is spent within `window` before `now`.
    pub(super) fn count(&mut self, now: Moment, window: Duration) -> u32 {
        while self.times.front().is_some_and(|first| now.since(*first) >= window) {
            self.times.pop_front();
        }
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    /// Spends one.
    pub(super) fn spend(&mut self, now: Moment) {
        self.times.push_back(now);
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
}
