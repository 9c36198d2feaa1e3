//! Who is late to collectives: all others wait for them, and they wait for none.
//!
//! The time that a rank spends in a collective is the transfer and the waiting for those who come
//! later. When one rank computes slowly, the others' times grow and its own does not. So each rank's
//! time is compared with the others', and that comparison with what it used to be.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::history::{Change, Level};
use crate::detection::members::Members;
use crate::detection::slowness::nanoseconds;
use crate::group::GroupId;
use crate::latency::{Collective, SizeBucket, WaitKey, WaitWindow};
use crate::rank::Rank;
use crate::verdict::{Evidence, VerdictKind};

/// The least share of all time that everybody must lose to one rank before it is named. Ranks whose computing
/// differs by some percent from one hour to the next change short waits by any factor, and delay no rank: a rank
/// that computes for most of a step and takes 1.5 times as long costs others a quarter of theirs.
const MEANINGFUL_LOSS: f32 = 0.1;
/// Reports over which the rate of collectives is smoothed.
const RATE_REPORTS: f32 = 8.0;
/// Keys that are kept at once.
const MAX_KEYS: usize = 1_000_000;

type ClassKey = (GroupId, Collective, SizeBucket);

#[derive(Debug, Clone, Default)]
pub(super) struct WaitingTimes {
    classes: BTreeMap<ClassKey, BTreeMap<Rank, CollectiveWait>>,
    keys: usize,
    no_place: u64,
}

/// One rank's time in one kind of collective.
#[derive(Debug, Clone)]
struct CollectiveWait {
    node: u32,
    value: f32,
    is_fresh: bool,
    /// How many collectives there have been in all, how many of them are in the rate, and how long ago that was.
    total: u64,
    counted: Option<u64>,
    since_ns: f32,
    /// How many there are in a nanosecond. Not by the windows: they hold the latest, and may be of several reports.
    rate: f32,
    usual: Level,
    /// How much slower than usual it is.
    time: Change,
    usual_lead: Level,
    /// How much less than the others it waits, beyond the usual.
    lead: Change,
}

impl WaitingTimes {
    /// Takes the windows of one node's report.
    pub(super) fn observe(&mut self, node: u32, windows: &[WaitWindow], members: &Members) {
        for WaitWindow { key, window } in windows {
            let WaitKey { group, rank, collective, bucket } = *key;
            if members.of_rank(rank) != Some(node) {
                self.no_place += 1;
                continue;
            }
            let class = self.classes.entry((group, collective, bucket)).or_default();
            if !class.contains_key(&rank) {
                if self.keys >= MAX_KEYS {
                    self.no_place += 1;
                    continue;
                }
                self.keys += 1;
            }
            let wait = class.entry(rank).or_insert_with(|| CollectiveWait::new(node));
            if wait.node != node {
                *wait = CollectiveWait::new(node);
            }
            // The mean, since the waiting may all be in one of a step's collectives.
            wait.value = (window.mean_ns.max(1) as f64).ln() as f32;
            wait.total = window.last_sequence;
            wait.is_fresh = true;
        }
    }

    /// Windows that were not taken: no place, or not of the node.
    pub(super) const fn no_place(&self) -> u64 {
        self.no_place
    }

    /// Ranks move between epochs, and groups with them: all restarts.
    pub(super) fn forget(&mut self) {
        *self = Self { no_place: self.no_place, ..Self::default() };
    }

    /// Takes in what was reported since the last evaluation, which is so long ago.
    pub(super) fn evaluate(&mut self, elapsed: Duration) {
        let elapsed_ns = elapsed.as_nanos().max(1) as f32;
        for class in self.classes.values_mut() {
            class.values_mut().for_each(|wait| wait.since_ns += elapsed_ns);
            let mut values: Vec<f32> =
                class.values().filter(|wait| wait.is_fresh).map(|wait| wait.value).collect();
            // A comparison needs all: who is missing may be the one who is waited for.
            if values.len() < 2 || values.len() < class.len() {
                continue;
            }
            values.sort_unstable_by(f32::total_cmp);
            for wait in class.values_mut() {
                wait.push(others_low(&values, wait.value));
            }
        }
    }

    /// The nodes that everybody waits for.
    pub(super) fn findings(&self, members: &Members, meaningful: f32) -> Vec<DetectorFinding> {
        let mut late: BTreeMap<Rank, Vec<Evidence>> = BTreeMap::new();
        let mut held_up: Vec<(Rank, Rank)> = Vec::new();
        for ((group, ..), class) in &self.classes {
            let alarmed = class.iter().filter(|(_, wait)| wait.is_late(meaningful));
            for (rank, wait) in alarmed {
                let others = class.iter().filter(|(other, _)| *other != rank);
                let slower: Vec<(Rank, &CollectiveWait)> = others
                    .filter(|(_, other)| other.is_slower(meaningful))
                    .map(|(rank, other)| (*rank, other))
                    .collect();
                let lost = middle(slower.iter().map(|(_, other)| other.lost_share()).collect());
                if slower.len() * 2 < class.len() - 1 || lost < MEANINGFUL_LOSS {
                    continue;
                }
                held_up.extend(slower.iter().map(|(other, _)| (*other, *rank)));
                late.entry(*rank).or_default().push(waits_least(*group, wait, &slower));
            }
        }
        // A rank that waits for a late one in one group comes late to another, and is not the cause.
        let is_cause =
            |rank: &Rank| !held_up.iter().any(|(who, by)| who == rank && late.contains_key(by));
        let causes = late.iter().filter(|(rank, _)| is_cause(rank));
        causes
            .filter_map(|(rank, evidence)| {
                let node = members.of_rank(*rank)?;
                Some(DetectorFinding::of_node(VerdictKind::SlowNode, node, 1.0, evidence.clone()))
            })
            .collect()
    }
}

impl CollectiveWait {
    const fn new(node: u32) -> Self {
        Self {
            node,
            value: 0.0,
            is_fresh: false,
            total: 0,
            counted: None,
            since_ns: 0.0,
            rate: 0.0,
            usual: Level::new(),
            time: Change::new(),
            usual_lead: Level::new(),
            lead: Change::new(),
        }
    }

    /// Takes one window, in which the others spent `others` on each collective.
    fn push(&mut self, others: f32) {
        self.is_fresh = false;
        self.count();
        compare(&mut self.usual, &mut self.time, self.value);
        compare(&mut self.usual_lead, &mut self.lead, others - self.value);
    }

    /// Takes into the rate what there has been since this was last done.
    fn count(&mut self) {
        let since_ns = std::mem::take(&mut self.since_ns);
        let Some(counted) = self.counted.replace(self.total) else { return };
        // A worker that was restarted counts from the beginning.
        let Some(new) = self.total.checked_sub(counted) else { return };
        let rate = new as f32 / since_ns.max(1.0);
        let is_first = self.rate == 0.0;
        self.rate += (rate - self.rate) / if is_first { 1.0 } else { RATE_REPORTS };
    }

    fn is_late(&self, meaningful: f32) -> bool {
        self.lead.is_alarmed() && self.lead.level().is_some_and(|level| level >= meaningful)
    }

    fn is_slower(&self, meaningful: f32) -> bool {
        self.time.level().is_some_and(|level| level >= meaningful)
    }

    /// The share of all time that it spends more in these collectives than usual.
    fn lost_share(&self) -> f32 {
        let (Some(usual), Some(level)) = (self.usual.centre(), self.time.level()) else {
            return 0.0;
        };
        usual.exp() * level.exp_m1() * self.rate
    }
}

fn compare(usual: &mut Level, change: &mut Change, value: f32) {
    let Some(centre) = usual.centre() else {
        if let Some(scale) = usual.learn(value) {
            change.learn_scale(scale);
        }
        return;
    };
    change.push(value - centre);
    if change.is_calm() {
        usual.follow(value - centre, change.scale());
    }
    usual.move_by(change.settle_faster());
}

/// The lower quartile of all `sorted` values but one of `own`.
fn others_low(sorted: &[f32], own: f32) -> f32 {
    let quartile = (sorted.len() - 1) / 4;
    let is_own_before = own <= sorted[quartile];
    sorted[if is_own_before { quartile + 1 } else { quartile }]
}

fn middle(mut values: Vec<f32>) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn waits_least(
    group: GroupId,
    suspect: &CollectiveWait,
    slower: &[(Rank, &CollectiveWait)],
) -> Evidence {
    let usual = slower.iter().filter_map(|(_, wait)| wait.usual.centre()).collect();
    Evidence::WaitsLeast {
        group,
        suspect_ns: nanoseconds(suspect.value),
        others_ns: nanoseconds(middle(slower.iter().map(|(_, wait)| wait.value).collect())),
        usual_ns: nanoseconds(middle(usual)),
    }
}
