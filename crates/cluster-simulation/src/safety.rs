//! What must never happen, whatever goes wrong.
//!
//! It sees what is sent, stored, started and ended, and knows what was broken on purpose. It shares no
//! code with the machines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use telltale_cluster::incident::Incident;
use telltale_cluster::message::{Assignment, Order, ToNode};
use telltale_cluster::node::{Bar, NodeName};
use telltale_cluster::policy::{Mode, NoSpare};
use telltale_cluster::stored::{Phase, StoredState, Why};

use crate::clock::TrueTime;
use crate::scenario::{Kinds, Scenario};

/// How long after its end a trouble still excuses what is done about it: silence, two rounds of orders
/// and the stopping of workers.
const EXCUSE: Duration = Duration::from_secs(30);

/// A worker's process as the checker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckedProcess {
    /// The host that it runs on.
    pub(crate) host: usize,
    /// Its epoch's number.
    pub(crate) epoch: u64,
    /// Its rank.
    pub(crate) rank: u32,
}

/// The checker.
#[derive(Debug)]
pub(crate) struct Safety {
    slots: u32,
    may_shrink: bool,
    eviction_budget: usize,
    budget_window: Duration,
    violations: Vec<String>,
    stored: Option<StoredState>,
    /// The map's digest and rank 0's place of every epoch that was committed in the store.
    committed: BTreeMap<u64, (u64, String, u16)>,
    commanding: u64,
    /// The last term in which each node was heard by the leader, and when it first was.
    heard: BTreeMap<NodeName, (u64, TrueTime)>,
    processes: BTreeSet<CheckedProcess>,
    newest_started: BTreeMap<usize, u64>,
    evictions: VecDeque<TrueTime>,
    excused: BTreeMap<NodeName, TrueTime>,
    /// Until when a restart has a reason.
    troubled_until: TrueTime,
    /// Until when an operator's order may show.
    ordered_until: TrueTime,
    ordered_out: BTreeSet<NodeName>,
    /// Until when a node that has left in order may lose its slot for that.
    left: BTreeMap<NodeName, TrueTime>,
    /// Whether no node ever fails, or something else explains it, so that no node may be charged.
    nobody_is_charged: bool,
    /// Whether a failure began the present epoch, and no order was given since.
    failed: bool,
}

impl Safety {
    /// A checker of a cluster in which nothing has happened yet.
    #[must_use]
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            slots: scenario.job.slots,
            may_shrink: scenario.policy.no_spare != NoSpare::Hold,
            eviction_budget: usize::try_from(scenario.policy.eviction_budget).unwrap_or(usize::MAX),
            budget_window: scenario.policy.budget_window,
            violations: Vec::new(),
            stored: None,
            committed: BTreeMap::new(),
            commanding: 0,
            heard: BTreeMap::new(),
            processes: BTreeSet::new(),
            newest_started: BTreeMap::new(),
            evictions: VecDeque::new(),
            excused: BTreeMap::new(),
            troubled_until: TrueTime::default(),
            ordered_until: TrueTime::default(),
            ordered_out: BTreeSet::new(),
            left: BTreeMap::new(),
            nobody_is_charged: matches!(
                scenario.kinds,
                Kinds::PlannedReruns | Kinds::CrowdCut | Kinds::CrowdCutAmongFailures
            ),
            failed: false,
        }
    }

    /// What was violated.
    #[must_use]
    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    fn hold(&mut self, holds: bool, now: TrueTime, violation: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(format!("{:.3} s: {}", now.0.as_secs_f64(), violation()));
        }
    }

    /// A node is, until `until`, in a trouble for which it may be evicted.
    pub(crate) fn excuse(&mut self, node: &NodeName, until: TrueTime) {
        let until = until.after(EXCUSE);
        let excused = self.excused.entry(node.clone()).or_default();
        *excused = (*excused).max(until);
        self.troubled_until = self.troubled_until.max(until);
    }

    /// An operator has ordered something about a node, or about the job.
    pub(crate) fn ordered(&mut self, out: Option<&NodeName>, now: TrueTime) {
        self.ordered_until = self.ordered_until.max(now.after(EXCUSE));
        self.troubled_until = self.troubled_until.max(self.ordered_until);
        if let Some(node) = out {
            self.ordered_out.insert(node.clone());
        }
    }

    /// A node's agent has ended in order, and said so. That costs no eviction, unless the word was lost.
    pub(crate) fn left(&mut self, node: &NodeName, now: TrueTime) {
        self.left.insert(node.clone(), now.after(EXCUSE));
    }

    /// A decision was stored.
    pub(crate) fn stored(&mut self, now: TrueTime, why: &Why, state: &StoredState) {
        if let Some(former) = self.stored.take() {
            self.follows(now, &former, state);
            if former.epoch != state.epoch || *why == Why::Ordered {
                self.failed = matches!(why, Why::Incident { .. });
            }
            self.evicted(now, &former, why, state);
            self.charged(now, &former, state);
        }
        if let Phase::Committed(master) = &state.phase {
            let place = (state.map.digest(), master.address.as_str().to_owned(), master.port.get());
            let number = state.epoch.number();
            let fresh = number == 0
                || self.committed.range(..number).next_back().is_none_or(|one| one.1.2 != place.2);
            self.hold(fresh, now, || format!("epoch {number} has the port of the one before"));
            let same = self.committed.get(&number).is_none_or(|known| *known == place);
            self.hold(same, now, || format!("epoch {number} was committed twice, differently"));
            self.hold(state.map.is_complete(), now, || {
                format!("epoch {number} was committed with a vacant slot")
            });
            self.committed.insert(number, place);
        }
        let shrunk = state.map.slot_count() < self.slots && !self.may_shrink;
        self.hold(!shrunk, now, || "the job got smaller, and must not".to_owned());
        self.stored = Some(state.clone());
    }

    fn follows(&mut self, now: TrueTime, former: &StoredState, state: &StoredState) {
        let (before, after) = (former.epoch.number(), state.epoch.number());
        self.hold(after == before || after == before + 1, now, || {
            format!("epoch {before} was followed by {after}")
        });
        let forming = former.phase == Phase::Forming;
        if after > before && !forming {
            let excused = now <= self.troubled_until;
            self.hold(excused, now, || format!("epoch {after} was begun, and nothing was wrong"));
            let may = former.mode != Mode::Observe || now <= self.ordered_until;
            self.hold(may, now, || format!("epoch {after} was begun by one who only observes"));
        }
        let frozen = after == before && matches!(former.phase, Phase::Committed(_));
        let same = former.map == state.map;
        self.hold(!frozen || same, now, || format!("the map of epoch {after} was changed"));
        if former.map.slot_count() <= state.map.slot_count() {
            for (slot, node) in former.map.holders() {
                let moved = state.map.slot_of(node).is_some_and(|other| other != slot);
                self.hold(!moved, now, || format!("{node} was moved out of slot {slot}"));
            }
        }
    }

    /// No node is charged where none may be.
    fn charged(&mut self, now: TrueTime, former: &StoredState, state: &StoredState) {
        if !self.nobody_is_charged {
            return;
        }
        for (node, count) in &state.failures {
            let before = former.failures.get(node).copied().unwrap_or(0);
            self.hold(*count <= before, now, || {
                format!("{node} was charged, and nothing was wrong with it")
            });
        }
    }

    fn evicted(&mut self, now: TrueTime, former: &StoredState, why: &Why, state: &StoredState) {
        let forming = former.phase == Phase::Forming;
        let over = matches!(former.phase, Phase::Over(_));
        for (_, node) in former.map.holders() {
            if state.map.slot_of(node).is_some() || forming || over {
                continue;
            }
            let ordered = matches!(state.barred.get(node), Some(Bar::Draining | Bar::Removed));
            if ordered && self.ordered_out.contains(node) {
                continue;
            }
            if self.left.get(node).is_some_and(|until| now <= *until) {
                continue;
            }
            let excused = self.excused.get(node).is_some_and(|until| now <= *until);
            self.hold(excused, now, || {
                format!("{node} was evicted, and nothing was wrong with it")
            });
            if matches!(why, Why::Absent { .. }) {
                // No budget is asked for who is not there for an epoch that was planned, or whom no leader of this
                // term has heard.
                // It may have come while the decision was on its way to the store.
                let is_before = |(term, at): &(u64, TrueTime)| {
                    *term == self.commanding && now > at.after(EXCUSE / 6)
                };
                let heard = self.heard.get(node).is_some_and(is_before);
                self.hold(!(self.failed && heard), now, || {
                    format!("{node} was passed over after a failure")
                });
                continue;
            }
            // The coordinator's clock may be a little fast.
            let window = self.budget_window - self.budget_window / 1000;
            while self.evictions.front().is_some_and(|first| now.since(*first) >= window) {
                self.evictions.pop_front();
            }
            self.evictions.push_back(now);
            let (count, budget) = (self.evictions.len(), self.eviction_budget);
            self.hold(count <= budget, now, || format!("{count} evictions, and {budget} allowed"));
        }
    }

    /// A coordinator has held an incident for long; this is its last report of it.
    pub(crate) fn held(&mut self, now: TrueTime, incident: &Incident, reported: Option<&Incident>) {
        let events = |of: &Incident| (of.events.len(), of.dropped_events);
        let is_reported = reported.is_some_and(|reported| {
            reported.id == incident.id && events(reported) == events(incident)
        });
        self.hold(is_reported, now, || {
            format!("of incident {} not all is reported: {reported:?}", incident.id)
        });
    }

    /// A store that was behind its agents is put right again; whether a coordinator saw that.
    pub(crate) fn store_was_behind(&mut self, now: TrueTime, is_seen: bool) {
        self.hold(is_seen, now, || "no coordinator sees that its store is behind".to_owned());
    }

    /// A coordinator sends an order.
    pub(crate) fn commanded(&mut self, now: TrueTime, node: &NodeName, message: &ToNode) {
        let term = message.term.number();
        let latest = self.commanding;
        self.hold(term >= latest, now, || format!("term {term} commands, and {latest} did before"));
        self.commanding = latest.max(term);
        let number = message.epoch.number();
        let decided = self.stored.as_ref().map_or(0, |stored| stored.epoch.number());
        self.hold(number <= decided, now, || {
            format!("epoch {number} is commanded, and {decided} is the last that was stored")
        });
        match &message.order {
            Order::Commit(assignment) => self.committed_to(now, node, number, assignment),
            Order::Welcome => {
                let first = self.heard.entry(node.clone()).or_insert((term, now));
                if first.0 != term {
                    *first = (term, now);
                }
            }
            _ => {}
        }
    }

    fn committed_to(&mut self, now: TrueTime, node: &NodeName, number: u64, reported: &Assignment) {
        let master = (
            reported.digest,
            reported.master.address.as_str().to_owned(),
            reported.master.port.get(),
        );
        let stored = self.committed.get(&number);
        let decided = stored == Some(&master);
        self.hold(decided, now, || {
            format!("{node} is ordered to run epoch {number} as it was not stored: {master:?}")
        });
        let Some(stored) = &self.stored else { return };
        if stored.epoch.number() == number {
            let slot = stored.map.slot_of(node);
            self.hold(slot == Some(reported.slot), now, || {
                format!("{node} is ordered to take slot {}, and has {slot:?}", reported.slot)
            });
        }
    }

    /// A worker's process has come to be.
    pub(crate) fn process_began(&mut self, now: TrueTime, process: CheckedProcess) {
        let CheckedProcess { host, epoch, rank } = process;
        let others: Vec<CheckedProcess> = self.processes.iter().copied().collect();
        for other in others {
            let twice = other.epoch == epoch && other.rank == rank;
            self.hold(!twice, now, || {
                format!("rank {rank} of epoch {epoch} runs on hosts {} and {host}", other.host)
            });
            let mixed = other.host == host && other.epoch != epoch;
            self.hold(!mixed, now, || {
                format!("host {host} runs epochs {} and {epoch} at once", other.epoch)
            });
        }
        let newest = *self.newest_started.get(&host).unwrap_or(&0);
        self.hold(epoch >= newest, now, || {
            format!("host {host} starts epoch {epoch} after {newest}")
        });
        self.newest_started.insert(host, epoch.max(newest));
        self.processes.insert(process);
    }

    /// A worker's process is no more.
    pub(crate) fn process_ended(&mut self, process: CheckedProcess) {
        self.processes.remove(&process);
    }
}
