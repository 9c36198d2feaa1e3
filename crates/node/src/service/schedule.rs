//! When the service collects, and what. Pure: it receives the time and what has happened.
//!
//! Everything is read each interval. In between, a process that comes or goes brings a collection
//! at once, but not one for each of a thousand: after one, the next waits a moment, and longer when
//! such collections have taken more than their share. A client that asks for a fresh one gets it, up
//! to a rate; beyond that, callers wait for the same.

use std::time::{Duration, Instant};

use telltale_collector::EndpointUse;
use telltale_collector::Round;

/// The least time from the end of a collection for a change to the next.
pub(crate) const LEAST_GAP: Duration = Duration::from_millis(15);

/// How long after a change there is one more collection: a process that has just begun opens its
/// devices in its ledger, which no event reports.
const SETTLING: Duration = Duration::from_millis(100);

/// Collections for changes may take one part in so many of a core, however many processes start.
const CHANGES_SHARE: u32 = 10;

/// The CPU time that they may take in a row before that share holds them up: some changes after a
/// quiet while are all seen at once.
const CHANGES_AT_ONCE: Duration = Duration::from_millis(50);

/// The longest that one waits for its share.
const LONGEST_GAP: Duration = Duration::from_millis(250);

/// Fresh collections that may be asked for one after the other.
const FRESH_AT_ONCE: u32 = 20;

/// The time after which one more may be asked for.
const FRESH_EACH: Duration = Duration::from_millis(100);

/// Endpoints are asked again after so many times the CPU time that asking took: a thousandth of
/// one core goes into it, where that is rarer than each interval.
const ENDPOINTS_FACTOR: u32 = 1000;

/// The longest time from one asking to the next.
const ENDPOINTS_AT_LEAST_EACH: Duration = Duration::from_secs(10);

/// Why there is a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectionCause {
    /// The interval is over.
    Interval,
    /// A client waits for a fresh one.
    Asked,
    /// Something came or went.
    Change,
    /// Something came or went a moment ago.
    Settled,
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScheduleStep {
    /// Collect this.
    Collect(CollectionCause, Round),
    /// Wait until then, or until something happens. Changes must not wake the thread while one is
    /// known already, or just after noise.
    Wait { until: Instant, for_changes: bool },
}

/// The schedule.
#[derive(Debug)]
pub(crate) struct Schedule {
    interval: Duration,
    due: Instant,
    endpoints_due: Instant,
    change_due: Instant,
    /// CPU time that collections for changes took, less their share of the time since.
    owed: Duration,
    owed_at: Instant,
    changed: bool,
    settled_at: Option<Instant>,
    /// Until then changes are not listened to: what came last was none.
    deaf_until: Instant,
    fresh_left: u32,
    fresh_since: Instant,
}

// === impl Schedule ===

impl Schedule {
    /// A schedule that begins with everything at `now`.
    pub(crate) fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            due: now,
            endpoints_due: now,
            change_due: now,
            owed: Duration::ZERO,
            owed_at: now,
            changed: false,
            settled_at: None,
            deaf_until: now,
            fresh_left: FRESH_AT_ONCE,
            fresh_since: now,
        }
    }

    /// From now on collects each `interval`, for the first time after one.
    pub(crate) fn set_interval(&mut self, interval: Duration, now: Instant) {
        if interval != self.interval {
            self.interval = interval;
            self.due = now + interval;
        }
    }

    /// Something came or went.
    pub(crate) fn note_change(&mut self) {
        self.changed = true;
    }

    /// Something happened that no collection would see, as files of others do in a directory that
    /// everybody may write to. Such things may wake us up only so often.
    pub(crate) fn note_noise(&mut self, now: Instant) {
        self.deaf_until = now + LEAST_GAP;
    }

    /// The action at `now`; `asked` when a client waits for a fresh collection.
    pub(crate) fn next(&mut self, now: Instant, asked: bool) -> ScheduleStep {
        self.refill(now);
        if asked && self.fresh_left > 0 {
            let round = Round { sensors: true, endpoints: EndpointUse::Always };
            return ScheduleStep::Collect(CollectionCause::Asked, round);
        }
        if now >= self.due {
            let all = now >= self.endpoints_due;
            let endpoints = if all { EndpointUse::Always } else { EndpointUse::WhereNeeded };
            return ScheduleStep::Collect(
                CollectionCause::Interval,
                Round { sensors: true, endpoints },
            );
        }
        let round = Round { sensors: false, endpoints: EndpointUse::WhereNeeded };
        if self.changed && now >= self.change_due {
            return ScheduleStep::Collect(CollectionCause::Change, round);
        }
        if self.settled_at.is_some_and(|at| now >= at.max(self.change_due)) {
            return ScheduleStep::Collect(CollectionCause::Settled, round);
        }
        let mut until = self.due;
        if let Some(at) = self.settled_at {
            until = until.min(at.max(self.change_due));
        }
        if asked {
            until = until.min(self.fresh_since + FRESH_EACH);
        }
        if self.changed {
            until = until.min(self.change_due);
        } else if now < self.deaf_until {
            until = until.min(self.deaf_until);
        }
        let for_changes = !self.changed && now >= self.deaf_until;
        ScheduleStep::Wait { until, for_changes }
    }

    /// A collection begins: what has happened before it, it will see.
    pub(crate) fn begin(&mut self, cause: CollectionCause) {
        self.changed = false;
        if cause == CollectionCause::Asked {
            self.fresh_left = self.fresh_left.saturating_sub(1);
        }
    }

    /// It has ended and took so much CPU time of the collecting thread.
    pub(crate) fn end(
        &mut self,
        cause: CollectionCause,
        round: Round,
        cpu: Duration,
        now: Instant,
    ) {
        match cause {
            CollectionCause::Change => {
                self.settled_at = Some(now + SETTLING);
                self.charge(cpu, now);
            }
            CollectionCause::Settled => {
                self.settled_at = None;
                self.charge(cpu, now);
            }
            // Others may have come too early for it; and these are no reason for a change to wait.
            CollectionCause::Interval | CollectionCause::Asked => {}
        }
        if round.sensors {
            // A late collection is not made up for.
            self.due = (self.due + self.interval).max(now);
            if self.due > now + self.interval {
                // One that was asked for takes the place of the next.
                self.due = now + self.interval;
            }
        }
        if round.endpoints == EndpointUse::Always {
            let wait = (cpu * ENDPOINTS_FACTOR).min(ENDPOINTS_AT_LEAST_EACH);
            self.endpoints_due = now + wait;
        }
    }

    /// Charges a collection for a change to their share; the next one waits for it.
    fn charge(&mut self, cpu: Duration, now: Instant) {
        let paid = now.saturating_duration_since(self.owed_at) / CHANGES_SHARE;
        let most = CHANGES_AT_ONCE + LONGEST_GAP / CHANGES_SHARE;
        self.owed = (self.owed.saturating_sub(paid) + cpu).min(most);
        self.owed_at = now;
        let over = self.owed.saturating_sub(CHANGES_AT_ONCE);
        self.change_due = now + (over * CHANGES_SHARE).max(LEAST_GAP);
    }

    fn refill(&mut self, now: Instant) {
        while self.fresh_left < FRESH_AT_ONCE && now >= self.fresh_since + FRESH_EACH {
            self.fresh_left += 1;
            self.fresh_since += FRESH_EACH;
        }
        if self.fresh_left == FRESH_AT_ONCE {
            self.fresh_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CollectionCause, ENDPOINTS_AT_LEAST_EACH, FRESH_AT_ONCE, FRESH_EACH, LEAST_GAP,
        LONGEST_GAP, Schedule, ScheduleStep,
    };
    use std::time::{Duration, Instant};
    use telltale_collector::EndpointUse;

    const SECOND: Duration = Duration::from_secs(1);
    const MILLI: Duration = Duration::from_millis(1);

    /// A schedule, its time, and what each collection takes.
    struct Played {
        schedule: Schedule,
        start: Instant,
        now: Instant,
        takes: Duration,
    }

    impl Played {
        fn new(takes: Duration) -> Self {
            let start = Instant::now();
            Self { schedule: Schedule::new(SECOND, start), start, now: start, takes }
        }

        /// Collects if it is time, else waits for what the schedule says.
        fn step(&mut self, asked: bool) -> Option<(CollectionCause, EndpointUse)> {
            match self.schedule.next(self.now, asked) {
                ScheduleStep::Collect(cause, round) => {
                    self.schedule.begin(cause);
                    self.now += self.takes;
                    self.schedule.end(cause, round, self.takes, self.now);
                    Some((cause, round.endpoints))
                }
                ScheduleStep::Wait { until, .. } => {
                    assert!(until > self.now, "a wait that does not end is a busy loop");
                    self.now = until;
                    None
                }
            }
        }

        fn elapsed(&self) -> Duration {
            self.now - self.start
        }
    }

    #[test]
    fn each_interval_there_is_one_and_a_late_one_is_not_made_up_for() {
        let mut played = Played::new(MILLI);
        for round in 0..5 {
            assert_eq!(played.step(false).map(|(cause, _)| cause), Some(CollectionCause::Interval));
            assert_eq!(played.elapsed(), SECOND * round + MILLI);
            assert_eq!(played.step(false), None);
        }
        played.now += SECOND * 10;
        assert!(played.step(false).is_some());
        let late = played.elapsed();
        assert!(played.step(false).is_some(), "at once, since the next is due");
        assert_eq!(played.step(false), None);
        assert_eq!(played.elapsed(), late + SECOND);
    }

    #[test]
    fn a_thousand_changes_a_second_are_few_collections() {
        let mut played = Played::new(MILLI);
        let (mut changes, mut last) = (0, Duration::ZERO);
        while played.elapsed() < SECOND * 10 {
            played.schedule.note_change();
            if let Some((CollectionCause::Change, endpoints)) = played.step(false) {
                assert!(changes == 0 || played.elapsed() - last >= LEAST_GAP);
                assert_eq!(endpoints, EndpointUse::WhereNeeded);
                (changes, last) = (changes + 1, played.elapsed());
            }
        }
        assert!((550..=650).contains(&changes), "{changes}");
        let settled = |step| matches!(step, Some((CollectionCause::Settled, _)));
        let after: usize = (0..30).map(|_| usize::from(settled(played.step(false)))).sum();
        assert_eq!(after, 1, "one more when it is over");
    }

    #[test]
    fn a_machine_that_stood_still_for_a_day_brings_no_flood() {
        let mut played = Played::new(MILLI);
        for day in 1..=5u32 {
            played.now = played.start + SECOND * 86_400 * day;
            played.schedule.note_change();
            let woken = played.now;
            let mut collections = 0;
            while played.now < woken + SECOND * 10 {
                collections += usize::from(played.step(false).is_some());
            }
            // One that is late, one for the change, one after it has settled, then one a second.
            assert!((10..=14).contains(&collections), "day {day}: {collections}");
        }
    }

    #[test]
    fn changes_take_a_tenth_of_a_core_after_a_while_and_the_regular_ones_delay_none() {
        let mut played = Played::new(MILLI * 4);
        played.step(false);
        let begun = played.elapsed();
        played.schedule.note_change();
        let first = played.step(false);
        assert_eq!(
            first.map(|(cause, _)| cause),
            Some(CollectionCause::Change),
            "no wait after a regular one"
        );
        let (mut early, mut all) = (0_u32, 0_u32);
        while played.elapsed() < begun + SECOND * 20 {
            played.schedule.note_change();
            if let Some((CollectionCause::Change, _)) = played.step(false) {
                early += u32::from(played.elapsed() < begun + SECOND / 5);
                all += 1;
            }
        }
        assert!(early >= 9, "{early} in the first fifth of a second");
        let share = f64::from(all) * 4.0 / 20_000.0;
        assert!((0.08..0.105).contains(&share), "{share}");
    }

    #[test]
    fn noise_wakes_nobody_up_for_a_moment() {
        let mut played = Played::new(MILLI);
        played.step(false);
        let listens = |played: &mut Played| match played.schedule.next(played.now, false) {
            ScheduleStep::Wait { until, for_changes } => (until - played.now, for_changes),
            step @ ScheduleStep::Collect(..) => panic!("{step:?}"),
        };
        assert!(listens(&mut played).1);
        played.schedule.note_noise(played.now);
        assert_eq!(listens(&mut played), (LEAST_GAP, false));
        played.step(false);
        assert!(listens(&mut played).1);
    }

    #[test]
    fn a_single_change_waits_for_nothing_and_a_slow_collection_for_a_while() {
        let mut played = Played::new(MILLI * 100);
        played.step(false);
        played.now += LONGEST_GAP;
        played.schedule.note_change();
        let before = played.now;
        assert_eq!(played.step(false).map(|(cause, _)| cause), Some(CollectionCause::Change));
        assert_eq!(played.now, before + MILLI * 100);
        played.schedule.note_change();
        assert_eq!(played.step(false), None);
        assert_eq!(played.now, before + MILLI * 100 + LONGEST_GAP);
    }

    #[test]
    fn who_asks_is_answered_at_once_up_to_a_rate() {
        let mut played = Played::new(MILLI);
        played.step(false);
        for _ in 0..FRESH_AT_ONCE {
            assert_eq!(played.step(true), Some((CollectionCause::Asked, EndpointUse::Always)));
        }
        assert!(played.elapsed() < SECOND);
        assert_eq!(played.step(true), None);
        assert_eq!(played.step(true).map(|(cause, _)| cause), Some(CollectionCause::Asked));
        let before = played.elapsed();
        played.step(true);
        assert!(played.elapsed() <= before + FRESH_EACH);
        // The next regular one is an interval after the last one that was asked for.
        let last = played.elapsed();
        while played.step(false).is_none() {}
        assert!(played.elapsed() <= last + SECOND + MILLI);
    }

    #[test]
    fn many_endpoints_are_asked_more_seldom_and_few_each_time() {
        for (takes, each) in [(MILLI / 10, 1), (MILLI * 4, 4), (MILLI * 100, 10)] {
            let mut played = Played::new(takes);
            let mut asked = Vec::new();
            while played.elapsed() < SECOND * 61 {
                if let Some((_, EndpointUse::Always)) = played.step(false) {
                    asked.push(played.elapsed());
                }
            }
            let seconds = asked[5].saturating_sub(asked[4]).as_secs_f64();
            assert!((seconds - f64::from(each)).abs() <= 1.0, "{takes:?}: {seconds}");
            assert!(seconds <= ENDPOINTS_AT_LEAST_EACH.as_secs_f64() + 1.0);
        }
    }
}
