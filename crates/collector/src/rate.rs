//! Rates that follow from counters of the kernel: from one sample to the next.

use std::time::Duration;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

/// Why a rate is not there yet.
pub(crate) const FIRST_SAMPLE: &str = "it is measured from one sample to the next";

/// Over less time no rate is computed: the kernel counts in ticks of 10 ms.
pub(crate) const LEAST_SPAN: Duration = Duration::from_millis(200);

/// When something is read: by the wall clock, and by a clock that never goes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledAt {
    pub(crate) at: Timestamp,
    pub(crate) monotonic_ns: u64,
}

// === impl SampledAt ===

impl SampledAt {
    /// So much later in the same round of samples: readings of a round have one time, though what
    /// a rate is of is exact.
    pub(crate) fn after(self, later: Duration) -> Self {
        let later_ns = u64::try_from(later.as_nanos()).unwrap_or(u64::MAX);
        Self { monotonic_ns: self.monotonic_ns.saturating_add(later_ns), ..self }
    }
}

/// A rate, and the counters it was computed from last with the time they were read at.
#[derive(Debug, Clone)]
pub(crate) struct Rate<C, R> {
    before: Option<(C, u64)>,
    latest: Reading<R>,
}

// === impl Rate ===

impl<C, R> Default for Rate<C, R> {
    fn default() -> Self {
        Self { before: None, latest: Reading::absent(Absence::NotYet, FIRST_SAMPLE) }
    }
}

impl<C: Copy, R: Clone> Rate<C, R> {
    /// Takes note of what the counters are now, or why they are not known, and returns the rate.
    /// `between` has it from two samples and the nanoseconds that lie between them; where it has none,
    /// the rate stays as it was. A counter that was not known is followed from the start.
    pub(crate) fn follow(
        &mut self,
        now: Result<C, Reading<R>>,
        moment: SampledAt,
        between: impl FnOnce(C, C, u64) -> Option<R>,
    ) -> Reading<R> {
        let now = match now {
            Ok(now) => now,
            Err(absent) => {
                *self = Self::default();
                return absent;
            }
        };
        let sample = (now, moment.monotonic_ns);
        let (before, then_ns) = *self.before.get_or_insert(sample);
        let span_ns = moment.monotonic_ns.saturating_sub(then_ns);
        if u128::from(span_ns) >= LEAST_SPAN.as_nanos() {
            self.before = Some(sample);
            if let Some(rate) = between(before, now, span_ns) {
                self.latest = Reading::new(rate, moment.at);
            }
        }
        self.latest.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{Rate, SampledAt};
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::{Absence, Reading};

    /// Follows a counter from 0, 100 and so on milliseconds: what is not known has no value.
    fn check(samples: &[(u64, Option<u64>)], expected: &[Result<u64, Absence>]) {
        let mut rate = Rate::default();
        let mut found = Vec::new();
        for (milliseconds, counter) in samples {
            let ns = milliseconds * 1_000_000;
            let counter = counter.ok_or_else(|| Reading::absent(Absence::TimedOut, ""));
            let moment = SampledAt { at: Timestamp(ns), monotonic_ns: ns };
            let reading = rate.follow(counter, moment, |before, now, span_ns| {
                Some(u64::checked_sub(now, before)? * 1_000_000_000 / span_ns)
            });
            let absence = reading.absence().map(|(reason, _)| reason);
            found.push(reading.value().copied().ok_or_else(|| absence.unwrap()));
        }
        assert_eq!(found, expected, "{samples:?}");
    }

    #[test]
    fn a_rate_is_of_the_time_that_passed() {
        const NOT_YET: Result<u64, Absence> = Err(Absence::NotYet);
        check(
            &[(0, Some(5)), (500, Some(55)), (501, Some(9_000)), (1_000, Some(105))],
            &[NOT_YET, Ok(100), Ok(100), Ok(100)],
        );
        check(&[(0, Some(5)), (100, Some(9)), (200, Some(15))], &[NOT_YET, NOT_YET, Ok(50)]);
        // One that went back has no rate, and the next is from there.
        check(
            &[(0, Some(5)), (500, Some(10)), (1_000, Some(0)), (1_500, Some(10))],
            &[NOT_YET, Ok(10), Ok(10), Ok(20)],
        );
        check(&[(500, Some(5)), (400, Some(10))], &[NOT_YET, NOT_YET]);
    }

    #[test]
    fn a_counter_that_was_not_known_is_followed_from_the_start() {
        let timed_out = Err(Absence::TimedOut);
        check(&[(0, None), (500, Some(10))], &[timed_out, Err(Absence::NotYet)]);
        check(
            &[(0, Some(0)), (500, Some(5)), (600, None), (700, Some(500)), (900, Some(502))],
            &[Err(Absence::NotYet), Ok(10), timed_out, Err(Absence::NotYet), Ok(10)],
        );
    }
}
