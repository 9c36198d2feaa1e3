//! One rule over one subject, from one collection to the next.

use std::collections::VecDeque;

use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Evidence, Fault, HealthRule, Shape, Thresholds};
use telltale_schema::reading::{Absence, Reading};

use super::readings::{Readings, TIMED_OUT, VANISHED};
use crate::rate::SampledAt;

/// Spans that the time of a rule is divided into: rises of one span are remembered as one.
const SPANS: u64 = 64;

/// What is remembered of one rule over one subject.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// Since when it holds.
    since: Option<SampledAt>,
    /// Whether it has held for long enough.
    is_found: bool,
    /// What showed it last.
    evidence: Vec<Evidence>,
    /// The value of the collection before.
    last: Option<f64>,
    /// The most that was seen.
    most: Option<f64>,
    rises: VecDeque<Rise>,
    /// When a counter last rose, or an event was.
    changed: Option<SampledAt>,
}

/// A counter that rose, once or several times within a span.
#[derive(Debug, Clone, Copy)]
struct Rise {
    first: SampledAt,
    from: f64,
    to: f64,
    last: SampledAt,
}

/// What one collection shows.
enum Finding {
    Holds(Vec<Evidence>),
    Clear,
    /// It cannot be known now; what was known still holds.
    Unknown,
}

/// A reading that has a value, or what its absence means.
type Known<T> = Result<(T, Timestamp), Finding>;

// === impl Track ===

impl Track {
    /// One whose fault another reader has found.
    pub(super) fn learned(fault: &Fault, now: SampledAt) -> Self {
        let ago = now.at.since_ns(fault.since);
        let monotonic_ns = now.monotonic_ns.saturating_sub(ago);
        let since = SampledAt { monotonic_ns, at: fault.since };
        let rule = fault.kind.rule();
        let values = || fault.evidence.iter().map(|one| one.value);
        // What was lost, was there.
        let was_there = matches!(rule.shape, Shape::Lost(_)).then_some(1.0);
        let last_at = fault.evidence.last().map_or(fault.since, |one| one.at);
        let changed_ns = now.monotonic_ns.saturating_sub(now.at.since_ns(last_at));
        Self {
            since: Some(since),
            is_found: true,
            evidence: fault.evidence.clone(),
            last: values().next_back().filter(|_| !rule.counted_by_reader),
            most: values().chain(was_there).reduce(f64::max),
            rises: VecDeque::new(),
            changed: Some(SampledAt { monotonic_ns: changed_ns, at: last_at }),
        }
    }

    /// Since when the rule holds, and what shows it; none where it does not, or not for long enough.
    pub(super) fn check(
        &mut self,
        rule: &HealthRule,
        thresholds: &Thresholds,
        readings: &dyn Readings,
        now: SampledAt,
    ) -> Option<(Timestamp, Vec<Evidence>)> {
        let found = self.find(rule, thresholds, readings, now).unwrap_or_else(|finding| finding);
        match found {
            Finding::Holds(evidence) => {
                let since = *self.since.get_or_insert(now);
                self.is_found = elapsed(since, now) >= nanoseconds(thresholds.hold_seconds);
                self.evidence = evidence;
            }
            Finding::Clear => (self.since, self.is_found) = (None, false),
            // What was found goes on; nothing is found by what is not known.
            Finding::Unknown => {}
        }
        self.found()
    }

    /// Since when what was found holds, and what showed it.
    pub(super) fn found(&self) -> Option<(Timestamp, Vec<Evidence>)> {
        let since = self.since.filter(|_| self.is_found)?;
        Some((since.at, self.evidence.clone()))
    }

    fn find(
        &mut self,
        rule: &HealthRule,
        thresholds: &Thresholds,
        readings: &dyn Readings,
        now: SampledAt,
    ) -> Result<Finding, Finding> {
        if let Some(name) = rule.only_while
            && known(readings.number(name))?.0 <= 0.0
        {
            return Ok(Finding::Clear);
        }
        if let Some(name) = rule.only_after {
            let value = readings.number(name).value().copied();
            if self.most(value.unwrap_or_default()) <= 0.0 {
                return Ok(Finding::Clear);
            }
        }
        let shown = |name, value, at| explained(rule, readings, evidence(name, value, at));
        Ok(match rule.shape {
            Shape::Found => Finding::Clear,
            Shape::Above(name) => {
                let (value, at) = known(readings.number(name))?;
                holds_if(value > thresholds.above, || shown(name, value, at))
            }
            Shape::Below(name, of) => {
                let (value, at) = known(readings.number(name))?;
                let (most, most_at) = known(readings.number(of))?;
                let both = || vec![evidence(name, value, at), evidence(of, most, most_at)];
                holds_if(value < most, both)
            }
            Shape::Fell(name) => {
                let (value, at) = known(readings.number(name))?;
                let most = self.most(value);
                let highest = format!("highest_{name}");
                let before = || vec![evidence(name, value, at), evidence(&highest, most, at)];
                holds_if(value < most, before)
            }
            Shape::Lost(name) => {
                let (value, at) = known(readings.number(name))?;
                let been = readings.number(&format!("has_been_{name}")).value().copied();
                let most = self.most(value.max(been.unwrap_or(value)));
                holds_if(value <= 0.0 && most > 0.0, || shown(name, value, at))
            }
            Shape::Includes(name, any_of) => included(name, any_of, known(readings.words(name))?),
            Shape::Rises(name) => {
                let by = rule.only_by.map(|by| cause(readings, by));
                self.rising(name, thresholds, known(readings.number(name))?.0, by, now)
            }
            Shape::Restarts(name) => {
                let (value, at) = known(readings.number(name))?;
                let before = self.last.replace(value).filter(|last| value < *last);
                let shown =
                    before.map(|last| vec![evidence(name, last, at), evidence(name, value, at)]);
                self.event(shown, thresholds, now)
            }
            Shape::Returns => {
                let (value, _) = known(readings.number(VANISHED))?;
                let is_back = self.last.replace(value).is_some_and(|last| last > value);
                match value > 0.0 {
                    true => Finding::Clear,
                    false => self.event(is_back.then(Vec::new), thresholds, now),
                }
            }
            Shape::Hangs => {
                let (value, _) = known(readings.number(TIMED_OUT))?;
                holds_if(value > 0.0, Vec::new)
            }
        })
    }

    /// The most that was seen, this value counted.
    fn most(&mut self, value: f64) -> f64 {
        *self.most.insert(self.most.map_or(value, |most| most.max(value)))
    }

    /// Something that happened at one moment and is shown for a while.
    fn event(
        &mut self,
        happened: Option<Vec<Evidence>>,
        thresholds: &Thresholds,
        now: SampledAt,
    ) -> Finding {
        if let Some(evidence) = happened {
            self.changed = Some(now);
            self.since = None;
            return Finding::Holds(evidence);
        }
        match self.changed {
            Some(when) if elapsed(when, now) < nanoseconds(thresholds.quiet_seconds) => {
                Finding::Unknown
            }
            _ => Finding::Clear,
        }
    }

    /// A counter that rises, or has risen a while ago.
    fn rising(
        &mut self,
        name: &str,
        thresholds: &Thresholds,
        value: f64,
        by: Option<Finding>,
        now: SampledAt,
    ) -> Finding {
        let (counts, by) = match by {
            Some(Finding::Holds(by)) => (true, by),
            Some(_) => (false, Vec::new()),
            None => (true, Vec::new()),
        };
        match self.last.replace(value) {
            Some(from) if value > from && counts => {
                self.changed = Some(now);
                let span = nanoseconds(thresholds.within_seconds) / SPANS;
                match self.rises.back_mut().filter(|rise| elapsed(rise.first, now) < span) {
                    Some(rise) => (rise.to, rise.last) = (value, now),
                    None => self.rises.push_back(Rise { first: now, from, to: value, last: now }),
                }
            }
            // It starts again: what was wrong was before.
            Some(from) if value < from => {
                self.rises.clear();
                self.changed = None;
                return Finding::Clear;
            }
            _ => {}
        }
        let is_quiet = self
            .changed
            .is_none_or(|when| elapsed(when, now) >= nanoseconds(thresholds.quiet_seconds));
        if self.since.is_some() && is_quiet {
            self.rises.clear();
            return Finding::Clear;
        }
        let within = nanoseconds(thresholds.within_seconds);
        self.rises.retain(|rise| elapsed(rise.first, now) <= within);
        let risen: f64 = self.rises.iter().map(|rise| rise.to - rise.from).sum();
        if risen >= thresholds.rise
            && let (Some(first), Some(last)) = (self.rises.front(), self.rises.back())
        {
            self.since.get_or_insert(first.first);
            let before = evidence(name, first.from, first.first.at);
            let after = evidence(name, last.to, last.last.at);
            return Finding::Holds([before].into_iter().chain(by).chain([after]).collect());
        }
        // Found before, and not yet quiet for long enough; or not found at all.
        Finding::Unknown
    }
}

/// The value of a reading. Without one, what was found still holds: what fails often cannot be read
/// any more. A device that has no such reading, is being reset, or is in other hands by intent, is
/// judged by what comes next.
fn known<T>(reading: Reading<T>) -> Known<T> {
    match reading {
        Reading::Value { value, at } => Ok((value, at)),
        Reading::Absent { absent, .. } => Err(match absent {
            Absence::Unsupported | Absence::Resetting | Absence::Hidden => Finding::Clear,
            _ => Finding::Unknown,
        }),
    }
}

/// Whether a rise has one of the causes that count.
fn cause(readings: &dyn Readings, (name, any_of): (&str, &[&str])) -> Finding {
    let found = known(readings.words(name));
    found.map(|found| included(name, any_of, found)).unwrap_or(Finding::Clear)
}

/// One of the words, or of the numbers.
fn included(name: &str, any_of: &[&str], (words, at): (Vec<String>, Timestamp)) -> Finding {
    let found = words.iter().find(|word| any_of.contains(&word.as_str()));
    let shown = |word: &String| match word.parse() {
        Ok(number) => evidence(name, number, at),
        Err(_) => evidence(word, 1.0, at),
    };
    found.map_or(Finding::Clear, |word| Finding::Holds(vec![shown(word)]))
}

/// The reading of the rule first, then those that explain it and are known.
fn explained(rule: &HealthRule, readings: &dyn Readings, first: Evidence) -> Vec<Evidence> {
    let beside = rule.beside.iter().filter_map(|name| match readings.number(name) {
        Reading::Value { value, at } => Some(evidence(name, value, at)),
        Reading::Absent { .. } => None,
    });
    [first].into_iter().chain(beside).collect()
}

fn holds_if(holds: bool, evidence: impl FnOnce() -> Vec<Evidence>) -> Finding {
    if holds { Finding::Holds(evidence()) } else { Finding::Clear }
}

fn evidence(reading: &str, value: f64, at: Timestamp) -> Evidence {
    Evidence { reading: reading.to_owned(), value, at }
}

fn elapsed(when: SampledAt, now: SampledAt) -> u64 {
    now.monotonic_ns.saturating_sub(when.monotonic_ns)
}

const fn nanoseconds(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}
