//! How long each rank and each role computes on the average.

use std::collections::BTreeMap;

use super::SlowRole;
use crate::kind::{Kind, Kinds, Nature};
use crate::roles::{Role, Roles};
use crate::step::{Placed, Step};

/// Mean durations of computations, in nanoseconds, by kind.
#[derive(Debug)]
pub(super) struct Means {
    kinds: usize,
    /// By rank and kind: how many in a step, and how long each takes.
    ranks: BTreeMap<u32, Vec<Mean>>,
    roles: BTreeMap<Role, Vec<Mean>>,
    even: Vec<f64>,
    role_of: BTreeMap<u32, Role>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Mean {
    count: u64,
    ns: f64,
    /// The sum of the squares of the distances from the mean.
    squares: f64,
}

/// Where measured computations are a smaller part of the ranks' own time, they do not tell how fast a rank is.
const TELLING_PART: f64 = 0.05;
/// What differs from its role's mean by less than this many times its mean's own error is chance.
const ERRORS: f64 = 2.0;

impl Means {
    pub(super) fn of(steps: &[Step], kinds: &Kinds, roles: &Roles) -> Self {
        let count = kinds.count();
        let mut ranks: BTreeMap<u32, Vec<Mean>> = BTreeMap::new();
        let all = steps.iter().flat_map(Step::operations);
        for one in all.filter(|one| kinds.nature(one.kind).is_own()) {
            let of_rank = ranks.entry(one.rank).or_insert_with(|| vec![Mean::default(); count]);
            let mean = &mut of_rank[one.kind.index()];
            mean.add(one.work_ns as f64);
        }
        let mut by_role: BTreeMap<Role, Vec<&Vec<Mean>>> = BTreeMap::new();
        let mut role_of = BTreeMap::new();
        for (rank, means) in &ranks {
            if let Some(role) = roles.role(*rank) {
                role_of.insert(*rank, role);
                by_role.entry(role).or_default().push(means);
            }
        }
        let of_kind = |ranks: &[&Vec<Mean>], kind: usize| usual(ranks.iter().map(|of| of[kind]));
        let roles: BTreeMap<Role, Vec<Mean>> = by_role
            .into_iter()
            .map(|(role, ranks)| (role, (0..count).map(|kind| of_kind(&ranks, kind)).collect()))
            .collect();
        let even = (0..count).map(|kind| weighted(roles.values().map(|of| of[kind]))).collect();
        Self { kinds: count, ranks, roles, even, role_of }
    }

    /// Whether computations that were measured are a part of the ranks' own time large enough to show their speed.
    pub(super) fn are_computations_measured(&self, kinds: &Kinds) -> bool {
        // What is usual, since a slow rank's computations may take as long as the gaps.
        let (mut computed, mut between) = (0.0, 0.0);
        for of_role in self.roles.values() {
            for (kind, mean) in kinds.all().zip(of_role) {
                let sum = match kinds.nature(kind) {
                    Nature::Between => &mut between,
                    Nature::Compute | Nature::Communication => &mut computed,
                };
                *sum += mean.ns * mean.count as f64;
            }
        }
        computed > 0.0 && computed >= TELLING_PART * (computed + between)
    }

    /// How long a computation of this kind takes where all roles are alike.
    pub(super) fn even(&self, kind: Kind) -> f64 {
        self.even[kind.index()]
    }

    /// How long one like this takes at the ranks of its role.
    pub(super) fn of_role(&self, one: &Placed) -> f64 {
        let of_role = self.role_of.get(&one.rank).and_then(|role| self.roles.get(role));
        of_role.map_or(one.work_ns as f64, |of| of[one.kind.index()].ns)
    }

    /// How long one like this takes at its rank.
    pub(super) fn of_rank(&self, one: &Placed) -> f64 {
        self.ranks.get(&one.rank).map_or(one.work_ns as f64, |of| of[one.kind.index()].ns)
    }

    /// The same, as far as the rank differs from its role by more than chance.
    pub(super) fn of_rank_for_sure(&self, one: &Placed) -> f64 {
        let of_role = self.of_role(one);
        let Some(of_rank) = self.ranks.get(&one.rank) else { return of_role };
        let mean = of_rank[one.kind.index()];
        let distance = mean.ns - of_role;
        let chance = (ERRORS * mean.error() / distance).powi(2);
        if chance < 1.0 { of_role + distance * (1.0 - chance) } else { of_role }
    }

    /// How long each role computes in comparison with the others, slowest first.
    pub(super) fn slow_roles(&self, kinds: &Kinds, roles: &Roles) -> Vec<SlowRole> {
        if self.roles.len() < 2 {
            return Vec::new();
        }
        let mut slow: Vec<SlowRole> = self
            .roles
            .iter()
            .map(|(role, of)| {
                let others = |kind: usize| {
                    let others = self.roles.iter().filter(|(other, _)| *other != role);
                    weighted(others.map(|(_, of)| of[kind]))
                };
                // Of kinds that no other rank has nothing is compared, and what is done once a step (an optimizer) is
                // not what a stage was given to do of each micro-batch.
                let most = of.iter().map(|mean| mean.count).max().unwrap_or(0);
                let compared = (0..self.kinds).filter(|kind| {
                    of[*kind].count > 0 && 2 * of[*kind].count >= most && others(*kind) > 0.0
                });
                let (mut own_ns, mut others_ns, mut of_kinds) = (0.0, 0.0, Vec::new());
                for kind in compared {
                    let Mean { count, ns, .. } = of[kind];
                    own_ns += ns * count as f64;
                    others_ns += others(kind) * count as f64;
                    let name = kinds.all().nth(kind).map_or("", |kind| kinds.name(kind));
                    of_kinds.push((name.into(), ns / others(kind)));
                }
                let ratio = if others_ns > 0.0 { own_ns / others_ns } else { 1.0 };
                let ranks = u32::try_from(roles.ranks(*role).len()).unwrap_or(u32::MAX);
                SlowRole { role: *role, ratio, kinds: of_kinds, ranks }
            })
            .collect();
        slow.sort_by(|one, other| other.ratio.total_cmp(&one.ratio));
        slow
    }
}

// === impl Mean ===

impl Mean {
    fn add(&mut self, ns: f64) {
        self.count += 1;
        let before = ns - self.ns;
        self.ns += before / self.count as f64;
        self.squares += before * (ns - self.ns);
    }

    /// By how much the mean may be off; of one value nothing is known.
    fn error(self) -> f64 {
        if self.count < 2 {
            return f64::INFINITY;
        }
        let count = self.count as f64;
        (self.squares / (count - 1.0) / count).sqrt()
    }
}

/// What is usual of a role: the median over its ranks of how long one takes, the lower of the two in the middle, since
/// ranks are slow by a fault and never fast by one; and how many of them one rank does.
fn usual(ranks: impl Iterator<Item = Mean>) -> Mean {
    let mut found: Vec<Mean> = ranks.filter(|one| one.count > 0).collect();
    let count = found.iter().map(|one| one.count).max().unwrap_or(0);
    let Some(middle) = found.len().checked_sub(1) else { return Mean::default() };
    let by_time = |one: &Mean, other: &Mean| one.ns.total_cmp(&other.ns);
    let (_, usual, _) = found.select_nth_unstable_by(middle / 2, by_time);
    Mean { count, ns: usual.ns, squares: 0.0 }
}

/// The mean over roles, each with the weight of its count.
fn weighted(roles: impl Iterator<Item = Mean>) -> f64 {
    let (sum, count) = roles
        .fold((0.0, 0), |(sum, count), one| (sum + one.ns * one.count as f64, count + one.count));
    if count == 0 { 0.0 } else { sum / count as f64 }
}
