//! The history's own time: it follows the wall clock, runs as steadily as the monotonic one, and
//! never goes back within a run. Where the wall clock was set, or there was no sample for a while, a new
//! run begins.

use telltale_schema::clock::Timestamp;

/// A difference between the clocks that is a clock being set rather than one that is slowly
/// corrected.
const SET_MS: u64 = 2_000;
/// How much of the time that passed the two may be brought together by: more than NTP slews
/// (500 in a million).
const SLEW_PART: u64 = 1_000;

/// A moment on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Milliseconds since 1970.
    pub(super) at_ms: i64,
    /// Since the moment before, in the same run; none where a new run begins.
    pub(super) since_ms: Option<u64>,
    /// Recorded time so far, over all runs.
    pub(super) mark_ms: i64,
    /// The run.
    pub(super) run: i64,
    /// Whether the wall clock was set since the moment before.
    pub(super) clock_was_set: bool,
}

/// Gives moments their place.
#[derive(Debug)]
pub(super) struct Timeline {
    /// The longest that a sample stands for.
    longest_ms: u64,
    run: i64,
    mark_ms: i64,
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    at_ms: i64,
    monotonic_ns: u64,
}

// === impl Timeline ===

impl Timeline {
    /// A timeline that goes on after this run and mark.
    pub(super) fn new(run: i64, mark_ms: i64, longest_ms: u64) -> Self {
        Self { longest_ms, run, mark_ms, last: None }
    }

    /// From now on a sample stands for so long at most.
    pub(super) fn set_longest(&mut self, longest_ms: u64) {
        self.longest_ms = longest_ms;
    }

    /// The place of what was seen at this time by both clocks; none where no whole millisecond has
    /// passed since the last one.
    pub(super) fn place(&mut self, wall: Timestamp, monotonic_ns: u64) -> Option<Moment> {
        let wall_ms = i64::try_from(wall.0 / 1_000_000).expect("2^64 ns are 2^45 ms");
        let Some(last) = self.last else { return Some(self.begin(wall_ms, monotonic_ns, false)) };
        let passed_ms = monotonic_ns.saturating_sub(last.monotonic_ns) / 1_000_000;
        let expected_ms = last.at_ms.saturating_add_unsigned(passed_ms);
        let off_ms = wall_ms.abs_diff(expected_ms);
        if passed_ms > self.longest_ms || off_ms > SET_MS {
            return Some(self.begin(wall_ms, monotonic_ns, off_ms > SET_MS));
        }
        let correction = off_ms.min(passed_ms / SLEW_PART);
        let since_ms = match wall_ms > expected_ms {
            true => passed_ms + correction,
            false => passed_ms - correction,
        };
        if since_ms == 0 {
            return None;
        }
        let at_ms = last.at_ms.saturating_add_unsigned(since_ms);
        // What is below a millisecond is kept for the next time.
        let monotonic_ns = last.monotonic_ns + passed_ms * 1_000_000;
        self.last = Some(Last { at_ms, monotonic_ns });
        self.mark_ms = self.mark_ms.saturating_add_unsigned(since_ms);
        Some(Moment {
            at_ms,
            since_ms: Some(since_ms),
            mark_ms: self.mark_ms,
            run: self.run,
            clock_was_set: false,
        })
    }

    fn begin(&mut self, at_ms: i64, monotonic_ns: u64, clock_was_set: bool) -> Moment {
        self.run += 1;
        self.last = Some(Last { at_ms, monotonic_ns });
        Moment { at_ms, since_ms: None, mark_ms: self.mark_ms, run: self.run, clock_was_set }
    }
}

/// A time of the database, in milliseconds, as a moment; before 1970 is 1970.
pub(crate) fn moment(at_ms: i64) -> Timestamp {
    Timestamp(u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000_000))
}

/// A moment in milliseconds since 1970.
pub(super) fn milliseconds(moment: Timestamp) -> i64 {
    i64::try_from(moment.0 / 1_000_000).expect("2^64 ns are 2^45 ms")
}

#[cfg(test)]
mod tests {
    use super::{Moment, Timeline};
    use telltale_schema::clock::Timestamp;

    const MS: u64 = 1_000_000;

    fn place(timeline: &mut Timeline, wall_ms: u64, monotonic_ms: u64) -> Option<Moment> {
        timeline.place(Timestamp(wall_ms * MS), monotonic_ms * MS)
    }

    #[test]
    fn a_clock_that_is_set_begins_a_run_and_one_that_slews_is_followed() {
        let mut timeline = Timeline::new(4, 100, 10_000);
        let first = place(&mut timeline, 50_000, 7).unwrap();
        let since_ms = None;
        let clock_was_set = false;
        assert_eq!(first, Moment { at_ms: 50_000, since_ms, mark_ms: 100, run: 5, clock_was_set });
        let second = place(&mut timeline, 51_003, 1_007).unwrap();
        assert_eq!((second.at_ms, second.since_ms, second.mark_ms), (51_001, Some(1_001), 1_101));
        let behind = place(&mut timeline, 51_900, 2_007).unwrap();
        assert_eq!((behind.at_ms, behind.run), (52_000, 5), "an early wall clock slows it down");
        for (wall_ms, run) in [(40_000, 6), (4_000_000, 7)] {
            let set = place(&mut timeline, wall_ms, 3_007).unwrap();
            let at_ms = i64::try_from(wall_ms).unwrap();
            assert_eq!((set.at_ms, set.since_ms, set.run), (at_ms, None, run));
            assert!(set.clock_was_set);
            assert_eq!(set.mark_ms, behind.mark_ms, "recorded time does not jump");
        }
    }

    #[test]
    fn a_gap_begins_a_run_and_the_same_millisecond_is_no_sample() {
        let mut timeline = Timeline::new(0, 0, 10_000);
        place(&mut timeline, 1_000, 0).unwrap();
        assert_eq!(place(&mut timeline, 1_000, 0), None);
        assert_eq!(timeline.place(Timestamp(1_000 * MS), MS - 1), None);
        assert_eq!(place(&mut timeline, 1_001, 1).unwrap().since_ms, Some(1));
        let after_gap = place(&mut timeline, 12_002, 11_002).unwrap();
        assert_eq!((after_gap.run, after_gap.clock_was_set), (2, false));
    }

    #[test]
    fn a_gap_is_what_is_longer_than_the_samples_are_apart_now() {
        let mut timeline = Timeline::new(0, 0, 5_000);
        place(&mut timeline, 1_000, 0).unwrap();
        timeline.set_longest(30_000);
        assert_eq!(place(&mut timeline, 11_000, 10_000).unwrap().since_ms, Some(10_000));
        timeline.set_longest(5_000);
        assert_eq!(place(&mut timeline, 21_000, 20_000).unwrap().since_ms, None);
    }

    #[test]
    fn time_runs_on_within_a_run_whatever_the_wall_clock_says() {
        let mut timeline = Timeline::new(0, 0, 10_000);
        let mut last = place(&mut timeline, 1_000_000, 0).unwrap();
        for step in 1..5_000u64 {
            let wobble = (step * 7_919) % 4_000;
            let Some(next) = place(&mut timeline, 1_000_000 + step * 100 + wobble, step * 100)
            else {
                continue;
            };
            assert!(next.run > last.run || next.at_ms > last.at_ms);
            assert!(next.mark_ms >= last.mark_ms);
            last = next;
        }
    }
}
