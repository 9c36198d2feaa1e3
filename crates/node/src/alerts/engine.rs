//! The engine: which alert is pending, fires, or is being cleared.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;

use super::activity::ProcessActivity;
use super::findings::{Level, RuleFinding, findings};
use super::growth::Growth;
use super::{Alert, AlertState, Rule, Subject, Transition};

/// Alerts that may be pending or firing at one time; more are counted and not kept.
pub const MAX_ALERTS: usize = 4096;

const NANOSECONDS: u64 = 1_000_000_000;

/// Rules, and how far each of them is for each subject.
pub struct Engine {
    rules: Arc<[Rule]>,
    raised: BTreeMap<(usize, Subject), Raised>,
    pub(super) growth: Growth,
    pub(super) activity: ProcessActivity,
    dropped: u64,
}

struct Raised {
    alert: Alert,
    since_ns: u64,
    /// Since when the condition has been clearly over, if it is.
    clear_since_ns: Option<u64>,
    /// Whether this step's findings had the subject.
    seen: bool,
}

impl Engine {
    /// An engine of these rules, with nothing raised.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self {
            rules: rules.into(),
            raised: BTreeMap::new(),
            growth: Growth::default(),
            activity: ProcessActivity::default(),
            dropped: 0,
        }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rules, to be kept by others.
    pub(super) fn shared_rules(&self) -> Arc<[Rule]> {
        Arc::clone(&self.rules)
    }

    /// Alerts that found no room, so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Pending and firing alerts, by rule and subject.
    pub fn alerts(&self) -> impl Iterator<Item = &Alert> {
        self.raised.values().map(|raised| &raised.alert)
    }

    /// What the alerts of the rule at this place are about.
    pub(super) fn subjects(&self, place: usize) -> impl Iterator<Item = &Subject> {
        self.raised.keys().filter(move |(of, _)| *of == place).map(|(_, subject)| subject)
    }

    /// Whether the rule at this place has an alert, pending or firing.
    pub(super) fn has_alerts(&self, place: usize) -> bool {
        self.raised.keys().any(|(of, _)| *of == place)
    }

    /// Takes other rules. Alerts whose rule stays as it is stay; others are resolved.
    pub fn replace_rules(&mut self, rules: Vec<Rule>) -> Vec<Transition> {
        let old = std::mem::replace(&mut self.rules, rules.into());
        let mut transitions = Vec::new();
        for ((place, subject), raised) in std::mem::take(&mut self.raised) {
            match self.rules.iter().position(|rule| *rule == old[place]) {
                Some(place) => {
                    self.raised.insert((place, subject), raised);
                }
                None => resolve(raised, &mut transitions),
            }
        }
        transitions
    }

    /// Checks a snapshot. `now_ns` is of a clock that never goes back: a wall clock that jumps
    /// neither fires nor resolves anything.
    pub fn step(&mut self, now_ns: u64, snapshot: &Snapshot) -> Vec<Transition> {
        let rules = Arc::clone(&self.rules);
        self.activity.observe(now_ns, snapshot);
        let mut transitions = Vec::new();
        for (place, rule) in rules.iter().enumerate() {
            self.growth.observe(place, rule, now_ns, snapshot);
            for finding in findings(self, place, rule, now_ns, snapshot) {
                self.take(place, rule, now_ns, snapshot.taken_at, finding, &mut transitions);
            }
        }
        self.growth.forget_the_unseen();
        self.activity.forget_the_unseen();
        self.resolve_the_unseen(&mut transitions);
        transitions
    }

    /// One finding: raises, fires, clears or resolves.
    fn take(
        &mut self,
        place: usize,
        rule: &Rule,
        now_ns: u64,
        at: Timestamp,
        finding: RuleFinding,
        transitions: &mut Vec<Transition>,
    ) {
        let full = self.raised.len() >= MAX_ALERTS;
        let mut entry = match self.raised.entry((place, finding.subject.clone())) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(_) if finding.level != Level::Raised => return,
            Entry::Vacant(_) if full => {
                self.dropped += 1;
                return;
            }
            Entry::Vacant(vacant) => vacant.insert_entry(pending(rule, now_ns, at, &finding)),
        };
        let raised = entry.get_mut();
        raised.seen = true;
        let pending = raised.alert.state == AlertState::Pending;
        match finding.level {
            Level::Unknown => return,
            Level::Raised => raised.clear_since_ns = None,
            // A condition that must hold without a break has had one.
            Level::Between | Level::Clear if pending => {
                entry.remove();
                return;
            }
            Level::Between => raised.clear_since_ns = None,
            Level::Clear => {
                let since = *raised.clear_since_ns.get_or_insert(now_ns);
                if held(since, now_ns, rule.clear_for_seconds) {
                    resolve(entry.remove(), transitions);
                    return;
                }
            }
        }
        // While it clears, and when it is resolved, it is still what it was.
        if finding.level != Level::Clear {
            raised.alert.value = finding.value;
            raised.alert.text = finding.text;
        }
        if pending && held(raised.since_ns, now_ns, rule.for_seconds) {
            raised.alert.state = AlertState::Firing;
            raised.alert.fired_at = Some(at);
            transitions.push(Transition::Fired(raised.alert.clone()));
        }
    }

    /// Subjects that are gone have no condition any more.
    fn resolve_the_unseen(&mut self, transitions: &mut Vec<Transition>) {
        let gone: Vec<_> = self
            .raised
            .iter()
            .filter(|(_, raised)| !raised.seen)
            .map(|(key, _)| key.clone())
            .collect();
        for raised in gone.iter().filter_map(|key| self.raised.remove(key)) {
            resolve(raised, transitions);
        }
        for raised in self.raised.values_mut() {
            raised.seen = false;
        }
    }
}

fn pending(rule: &Rule, now_ns: u64, at: Timestamp, finding: &RuleFinding) -> Raised {
    let alert = Alert {
        rule: rule.name.clone(),
        severity: rule.severity,
        subject: finding.subject.clone(),
        uid: finding.uid,
        state: AlertState::Pending,
        since: at,
        fired_at: None,
        value: finding.value,
        text: String::new(),
    };
    Raised { alert, since_ns: now_ns, clear_since_ns: None, seen: true }
}

/// One that never fired goes without a word.
fn resolve(raised: Raised, transitions: &mut Vec<Transition>) {
    if raised.alert.state == AlertState::Firing {
        transitions.push(Transition::Resolved(raised.alert));
    }
}

fn held(since_ns: u64, now_ns: u64, seconds: u64) -> bool {
    now_ns.saturating_sub(since_ns) >= seconds.saturating_mul(NANOSECONDS)
}
