//! To what the time that steps take too long is put.
//!
//! Steps are replayed several times, each time with more as it was: all ranks alike, then each role as long as is
//! usual for it, then each rank as long as is usual for it, then each computation as long as it took, then each
//! communication too. What a replay takes longer than the one before is the share of what it added.
//! A rank is compared with the ranks of its role alone; nobody else does the same work.

mod links;
mod means;
mod ranks;
mod variation;

use crate::attribution::means::Means;
use crate::kind::{Kinds, Nature};
use crate::roles::{Role, Roles};
use crate::step::{Placed, Step};
use crate::typical::Typical;
use crate::what_if::mean_time;

/// Where the time of steps goes. All times are of one step on the average, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// What a step takes, without the delays before operations began.
    pub actual_ns: f64,
    /// What it would take if all ranks computed alike and no communication were slow.
    pub even_ns: f64,
    /// What it takes longer since roles differ: the model's partition into stages.
    pub roles_ns: f64,
    /// What it takes longer since ranks of one role differ for good: slow hosts or devices.
    pub ranks_ns: f64,
    /// What it takes longer since computations vary with the data.
    pub data_ns: f64,
    /// What it takes longer since computations vary otherwise: noise of the hosts.
    pub noise_ns: f64,
    /// What it takes longer since communications do not take what is typical of their kind.
    pub links_ns: f64,
    /// How the roles' work differs, slowest first; empty where there is one role.
    pub roles: Vec<SlowRole>,
    /// The ranks that are slow against their role, costliest first.
    pub ranks: Vec<SlowRank>,
    /// The links that are slow against others, costliest first.
    pub links: Vec<SlowLink>,
}

/// How long a role computes in comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowRole {
    /// Which.
    pub role: Role,
    /// How many times as long it computes as the other roles on the average.
    pub ratio: f64,
    /// The same for each kind of computation that others do too, by name.
    pub kinds: Vec<(Box<str>, f64)>,
    /// How many ranks have the role. Of one alone, whether the work or its host is slow cannot be told.
    pub ranks: u32,
}

/// A rank that computes longer than the others of its role.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowRank {
    /// Which.
    pub rank: u32,
    /// How many times as long as is usual of its role.
    pub ratio: f64,
    /// What a step would take less without that.
    pub cost_ns: f64,
    /// In how many of the steps it was slow.
    pub slow_steps: u32,
    /// Of how many.
    pub steps: u32,
}

/// A link whose transfers take longer than like transfers elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowLink {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// How many times as long as like transfers.
    pub ratio: f64,
    /// What a step would take less without that.
    pub cost_ns: f64,
    /// In how many of the steps it was slow.
    pub slow_steps: u32,
    /// Of how many.
    pub steps: u32,
}

impl Attribution {
    /// Where the time of these steps goes.
    #[must_use]
    pub fn of(steps: &[Step], kinds: &Kinds, roles: &Roles) -> Self {
        let typical = Typical::of(steps, kinds);
        let means = Means::of(steps, kinds, roles);
        let is_compute = |one: &Placed| kinds.nature(one.kind) == Nature::Compute;
        let time = |compute: &dyn Fn(&Placed) -> f64| {
            mean_time(
                steps,
                |one| if is_compute(one) { compute(one) } else { typical.ns(one.kind) },
            )
        };
        let even_ns = time(&|one| means.even(one.kind));
        let by_role_ns = time(&|one| means.of_role(one));
        let by_rank_ns = time(&|one| means.of_rank_for_sure(one));
        let computed_ns = time(&|one| one.work_ns as f64);
        let actual_ns = mean_time(steps, |one| one.work_ns as f64);
        let varied_ns = computed_ns - by_rank_ns;
        let data_part = variation::data_part(steps, kinds, roles, &means);
        let ranks = ranks::slow(steps, kinds, roles, &means, |rank| {
            time(&|one| {
                if one.rank == rank { means.of_rank_for_sure(one) } else { means.of_role(one) }
            }) - by_role_ns
        });
        let links = links::slow(steps, roles, &ranks, |from, to| {
            let is_it = |one: &Placed| links::ends(one) == Some((from, to));
            let work = |one: &Placed| match is_compute(one) || is_it(one) {
                true => one.work_ns as f64,
                false => typical.ns(one.kind),
            };
            mean_time(steps, work) - computed_ns
        });
        Self {
            actual_ns,
            even_ns,
            roles_ns: by_role_ns - even_ns,
            ranks_ns: by_rank_ns - by_role_ns,
            data_ns: varied_ns * data_part,
            noise_ns: varied_ns * (1.0 - data_part),
            links_ns: actual_ns - computed_ns,
            roles: means.slow_roles(kinds, roles),
            ranks,
            links,
        }
    }

    /// What a step takes longer than it would if all ranks computed alike.
    #[must_use]
    pub fn lost_ns(&self) -> f64 {
        self.actual_ns - self.even_ns
    }
}
