//! Why a job stands still, in one sentence, from where all of its processes stand.
//!
//! Equal stacks are folded. Where most ranks wait for the same thing, those that do not are the reason.

mod different;
mod sentence;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::activity::Activity;
use crate::standing::ProcessStanding;

use different::different_collectives;
pub(crate) use sentence::plural;
use sentence::sentence;

/// Kinds of standstill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HangKind {
    /// A rank has not entered the collective that others wait in.
    RankMissing,
    /// Ranks wait in different collectives.
    DifferentCollectives,
    /// Ranks have begun the same collective with different sizes.
    DifferentSizes,
    /// Ranks wait in the same operation at different lines, so in different groups or in another order.
    DifferentOrder,
    /// A rank waits for a thread or process of its own to end, often on its way out of an error.
    HeldByJoin,
    /// A rank waits for the data of its next step.
    DataLoader,
    /// A thread waits while it holds the interpreter's lock.
    GilHeld,
    /// Threads of a rank wait for each other's locks.
    Deadlock,
    /// A rank waits for a checkpoint or a file system.
    FileSystem,
    /// A rank is stopped, as by SIGSTOP.
    Stopped,
    /// All ranks are in the same collective, and nothing arrives.
    Network,
    /// A device does not finish its work.
    Device,
    /// A rank compiles.
    Compile,
    /// A rank is in a debugger or at a breakpoint.
    Debugger,
    /// A rank goes on, but slowly.
    SlowButMoving,
}

impl HangKind {
    /// Its name, as it is serialized.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RankMissing => "rank_missing",
            Self::DifferentCollectives => "different_collectives",
            Self::DifferentSizes => "different_sizes",
            Self::DifferentOrder => "different_order",
            Self::HeldByJoin => "held_by_join",
            Self::DataLoader => "data_loader",
            Self::GilHeld => "gil_held",
            Self::Deadlock => "deadlock",
            Self::FileSystem => "file_system",
            Self::Stopped => "stopped",
            Self::Network => "network",
            Self::Device => "device",
            Self::Compile => "compile",
            Self::Debugger => "debugger",
            Self::SlowButMoving => "slow_but_moving",
        }
    }
}

/// What else is known of the operation that ranks wait in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Its number among the group's operations.
    pub sequence: Option<u64>,
    /// For how long nothing has moved, in seconds.
    pub stalled_s: Option<u64>,
}

/// Processes whose stacks are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Folded {
    /// Their ranks, or process ids where they have none.
    pub processes: Vec<u32>,
    /// What they do.
    pub activity: Activity,
    /// The stack of the first of them, innermost first.
    pub stack: Vec<String>,
}

/// Why a job stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Of which kind it is.
    pub kind: HangKind,
    /// The ranks at fault, or process ids where they have none; empty where all wait alike.
    pub culprits: Vec<u32>,
    /// One sentence.
    pub sentence: String,
    /// Equal stacks, the most frequent first.
    pub folded: Vec<Folded>,
}

/// Says why these processes stand still; none where all of them move.
#[must_use]
pub fn explain(standings: &[ProcessStanding], awaited: Awaited) -> Option<Explanation> {
    let stands = |one: &&ProcessStanding| !one.has_moved || one.is_stopped;
    if !standings.iter().any(|one| stands(&one)) {
        return None;
    }
    let different = different_collectives(standings);
    let (kind, culprits) = match &different {
        Some(different) => (different.kind, different.culprits.clone()),
        None => judge(standings),
    };
    let others: Vec<&ProcessStanding> = standings
        .iter()
        .filter(|one| !culprits.iter().any(|culprit| std::ptr::eq(*culprit, *one)))
        .collect();
    let mut sentence = sentence(&culprits, &others, awaited);
    if let Some(different) = different {
        sentence = different.sentence;
    }
    let culprits = culprits.iter().map(|one| one.rank.unwrap_or(one.pid)).collect();
    Some(Explanation { kind, culprits, sentence, folded: folded(standings) })
}

/// The kind and who is at fault.
fn judge(standings: &[ProcessStanding]) -> (HangKind, Vec<&ProcessStanding>) {
    let all = || standings.iter();
    let stopped: Vec<&ProcessStanding> = all().filter(|one| one.is_stopped).collect();
    if !stopped.is_empty() {
        return (HangKind::Stopped, stopped);
    }
    let mut outside: Vec<&ProcessStanding> = all().filter(|one| !one.takes_part()).collect();
    if outside.len() == standings.len()
        && let Some(odd) = minority(standings, |one| (one.activity, one.place.clone()))
    {
        outside = odd;
    }
    if !outside.is_empty() {
        let kinds = outside.iter().map(|one| one.kind_alone());
        let kind = kinds.min_by_key(|kind| decisiveness(*kind));
        return (kind.unwrap_or(HangKind::RankMissing), outside);
    }
    if let Some(odd) = minority(standings, |one| one.operation.clone()) {
        return (HangKind::DifferentCollectives, odd);
    }
    if let Some(odd) = minority(standings, |one| one.place.clone()) {
        return (HangKind::DifferentOrder, odd);
    }
    (HangKind::Network, Vec::new())
}

/// Kinds in the order in which one of several culprits' says most.
fn decisiveness(kind: HangKind) -> u8 {
    match kind {
        HangKind::RankMissing => 2,
        HangKind::SlowButMoving => 1,
        _ => 0,
    }
}

/// Those who differ from the most frequent value; none where all are equal. Where no value is more frequent
/// than another, all but the lowest rank's are named.
fn minority<K: Ord>(
    standings: &[ProcessStanding],
    key: impl Fn(&ProcessStanding) -> K,
) -> Option<Vec<&ProcessStanding>> {
    let all: Vec<&ProcessStanding> = standings.iter().collect();
    minority_of(&all, |one| key(one), |one| one.rank)
}

fn minority_of<T: Copy, K: Ord>(
    all: &[T],
    key: impl Fn(&T) -> K,
    rank: impl Fn(&T) -> Option<u32>,
) -> Option<Vec<T>> {
    let mut by_key: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for one in all {
        by_key.entry(key(one)).or_default().push(*one);
    }
    if by_key.len() < 2 {
        return None;
    }
    let lowest = |group: &[T]| group.iter().map(&rank).min();
    let mut groups: Vec<Vec<T>> = by_key.into_values().collect();
    groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), lowest(group)));
    Some(groups.into_iter().skip(1).flatten().collect())
}

impl ProcessStanding {
    /// Whether it waits for other ranks.
    #[must_use]
    pub const fn takes_part(&self) -> bool {
        matches!(self.activity, Activity::Collective | Activity::Transfer)
    }

    /// What it is that holds this process up, whatever others do.
    fn kind_alone(&self) -> HangKind {
        match self.activity {
            Activity::Debugger | Activity::ReadsTerminal => HangKind::Debugger,
            Activity::WaitsForGil | Activity::HoldsGil => HangKind::GilHeld,
            Activity::Compiles => HangKind::Compile,
            Activity::LoadsData => HangKind::DataLoader,
            Activity::Checkpoints | Activity::UsesFile => HangKind::FileSystem,
            Activity::WaitsForDevice => HangKind::Device,
            Activity::Joins => HangKind::HeldByJoin,
            Activity::WaitsForLock | Activity::WaitsForSignal => HangKind::Deadlock,
            Activity::UsesNetwork => HangKind::Network,
            _ if self.has_moved && self.is_busy => HangKind::SlowButMoving,
            _ => HangKind::RankMissing,
        }
    }
}

fn folded(standings: &[ProcessStanding]) -> Vec<Folded> {
    let mut by_stack: BTreeMap<(&[String], Activity), Vec<u32>> = BTreeMap::new();
    for one in standings {
        let processes = by_stack.entry((&one.stack, one.activity)).or_default();
        processes.push(one.rank.unwrap_or(one.pid));
    }
    let fold = |((stack, activity), mut processes): ((&[String], Activity), Vec<u32>)| {
        processes.sort_unstable();
        Folded { processes, activity, stack: stack.to_vec() }
    };
    let mut folded: Vec<Folded> = by_stack.into_iter().map(fold).collect();
    folded.sort_by_key(|one| {
        (std::cmp::Reverse(one.processes.len()), one.processes.first().copied())
    });
    folded
}
