//! Ranks that do the same work, and whose speeds can therefore be compared.
//!
//! Learned from what the ranks do, never configured: two ranks have one role if their operations are of
//! the same kinds and their partners in each have the same roles (colour refinement, as for graphs). In a
//! pipeline each stage is a role, in a ring, a mesh or plain data parallelism all ranks have one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::kind::{Kind, Kinds, Nature};
use crate::operation::Partners;
use crate::step::{Placed, Step};

/// A role, by its place in the flow: the one whose ranks compute first has the smallest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role(pub u32);

/// The roles of a job's ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    of_rank: BTreeMap<u32, Role>,
    ranks: Vec<Vec<u32>>,
    replica_of: BTreeMap<u32, u32>,
}

/// How an operation looks without the ranks in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum OperationShape {
    Alone,
    Sends,
    Receives,
    Collective(u32),
}

impl OperationShape {
    const fn of(partners: Partners) -> Self {
        match partners {
            Partners::None => Self::Alone,
            Partners::To { .. } => Self::Sends,
            Partners::From { .. } => Self::Receives,
            Partners::All { members, .. } => Self::Collective(members),
        }
    }
}

/// What one rank's role follows from.
#[derive(Debug, Default)]
struct Features {
    /// Kinds of its operations, and which transfer comes first: that distinguishes the ends of a pipeline.
    alone: BTreeSet<(Kind, OperationShape, bool)>,
    /// Whom it meets in what.
    meets: BTreeSet<(Kind, OperationShape, u32)>,
    first_compute_ns: Option<i64>,
}

impl Roles {
    /// The roles of the ranks in this step.
    #[must_use]
    pub fn of(step: &Step, kinds: &Kinds) -> Self {
        let features = features(step, kinds);
        let colours = refine(&features);
        let mut groups: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (rank, colour) in &colours {
            groups.entry(*colour).or_default().push(*rank);
        }
        let mut ranks: Vec<Vec<u32>> = groups.into_values().collect();
        ranks.sort_by_cached_key(|ranks| {
            let firsts = ranks.iter().filter_map(|rank| features[rank].first_compute_ns);
            (firsts.min().unwrap_or(i64::MAX), ranks[0])
        });
        let numbered = (0_u32..).zip(&ranks);
        let of_rank = numbered
            .flat_map(|(number, ranks)| ranks.iter().map(move |rank| (*rank, Role(number))))
            .collect();
        Self { of_rank, ranks, replica_of: replicas(&features) }
    }

    /// A rank's role; `None` if it did nothing.
    #[must_use]
    pub fn role(&self, rank: u32) -> Option<Role> {
        self.of_rank.get(&rank).copied()
    }

    /// The ranks that have a role, in order.
    #[must_use]
    pub fn ranks(&self, role: Role) -> &[u32] {
        self.ranks.get(role.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// All roles.
    pub fn all(&self) -> impl Iterator<Item = Role> + use<> {
        let count = self.ranks.len();
        (0_u32..).take(count).map(Role)
    }

    /// The lowest of the ranks that transfers connect with this one: in a job of pipelines each pipeline is a replica.
    #[must_use]
    pub fn replica(&self, rank: u32) -> u32 {
        self.replica_of.get(&rank).copied().unwrap_or(rank)
    }
}

fn features(step: &Step, kinds: &Kinds) -> BTreeMap<u32, Features> {
    let mut features: BTreeMap<u32, Features> = BTreeMap::new();
    for of_rank in step.operations().chunk_by(|one, next| one.rank == next.rank) {
        let features = features.entry(of_rank[0].rank).or_default();
        let is_transfer = |one: &&Placed| {
            matches!(
                OperationShape::of(one.partners),
                OperationShape::Sends | OperationShape::Receives
            )
        };
        let first = of_rank.iter().find(is_transfer).map(|one| one.start_ns);
        // What lies between operations differs by chance.
        for one in of_rank.iter().filter(|one| kinds.nature(one.kind) != Nature::Between) {
            let shape = OperationShape::of(one.partners);
            let is_first = is_transfer(&one) && first == Some(one.start_ns);
            features.alone.insert((one.kind, shape, is_first));
            if let Partners::To { rank, .. } | Partners::From { rank, .. } = one.partners {
                features.meets.insert((one.kind, shape, rank));
            }
            if kinds.nature(one.kind) == Nature::Compute && one.work_ns > 0 {
                features.first_compute_ns.get_or_insert(one.start_ns);
            }
        }
    }
    features
}

/// A colour for each rank: the same for those of one role.
fn refine(features: &BTreeMap<u32, Features>) -> BTreeMap<u32, u64> {
    let mut colours: BTreeMap<u32, u64> =
        features.iter().map(|(rank, features)| (*rank, hash(&features.alone))).collect();
    let mut count = distinct(&colours);
    // Each round distinguishes at least one more, or it is the last.
    for _ in 0..features.len() {
        let next: BTreeMap<u32, u64> = features
            .iter()
            .map(|(rank, features)| {
                let colour = |rank: u32| colours.get(&rank).copied().unwrap_or(0);
                let meets: BTreeSet<(Kind, OperationShape, u64)> = features
                    .meets
                    .iter()
                    .map(|(kind, shape, rank)| (*kind, *shape, colour(*rank)))
                    .collect();
                (*rank, hash(&(colours[rank], meets)))
            })
            .collect();
        let more = distinct(&next);
        if more == count {
            break;
        }
        (colours, count) = (next, more);
    }
    colours
}

fn distinct(colours: &BTreeMap<u32, u64>) -> usize {
    colours.values().collect::<BTreeSet<_>>().len()
}

/// With fixed keys: the same in each run.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// For each rank the lowest that transfers connect it with.
fn replicas(features: &BTreeMap<u32, Features>) -> BTreeMap<u32, u32> {
    let mut lowest: BTreeMap<u32, u32> = BTreeMap::new();
    for rank in features.keys() {
        if lowest.contains_key(rank) {
            continue;
        }
        let mut waiting = vec![*rank];
        while let Some(one) = waiting.pop() {
            if lowest.contains_key(&one) {
                continue;
            }
            lowest.insert(one, *rank);
            let meets = features.get(&one).map(|features| &features.meets).into_iter().flatten();
            waiting.extend(meets.map(|(_, _, peer)| *peer));
        }
    }
    lowest
}
