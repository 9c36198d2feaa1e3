//! To what the time that steps take too long is put.
//!
//! Steps are replayed several times, each time with more as it was: all ranks alike, then each role as long as is
//! usual for it, then each rank as long as is usual for it, then each computation as long as it took, then each gap
//! between operations, then each communication too. What a replay takes longer than the one before is the share of
//! what it added.
//!
//! Where clients measure computations, gaps between operations are no part of replays: some of them are waits for what
//! no client recorded. Where they do not, gaps are the ranks' work.
//! A rank is compared with the ranks of its role alone; no other does the same work.

mod links;
mod means;
mod ranks;
mod slowness;
mod starved;
mod variation;

pub use crate::attribution::slowness::Slowness;

use crate::attribution::links::Pair;
use crate::attribution::means::Means;
use crate::kind::{Kinds, Nature};
use crate::processors::Processors;
use crate::roles::{Role, Roles};
use crate::step::{Placed, Step};
use crate::typical::Typical;
use crate::what_if::mean_times;

/// Where the time of steps goes. All times are of one step on the average, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// What a step takes.
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
    /// The links that are slow against others, costliest first, and both ways of one together.
    pub links: Vec<SlowLink>,
    /// How long transfers take on each link that can be compared with others.
    pub link_times: Vec<LinkTime>,
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
    /// How many ranks have the role. Of one alone, whether the work or its host is slow is unknown.
    pub ranks: u32,
}

/// A rank that takes longer than the others of its role for what is its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowRank {
    /// Which.
    pub rank: u32,
    /// How slow, and what that costs.
    pub slowness: Slowness,
    /// Whether it takes longer between its operations alone, and computes as fast as others: it may have more to do
    /// there (data to read, a log to write), so its node need not be slow.
    pub is_between: bool,
    /// Which part of the time it wanted a processor and had none, as it was given.
    pub withheld: f64,
}

/// A link whose transfers take longer than like transfers elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowLink {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// How slow, and what that costs. Of a link that is slow both ways, each has half of what both cost, and what both
    /// cost alone.
    pub slowness: Slowness,
}

impl AsRef<Slowness> for SlowRank {
    fn as_ref(&self) -> &Slowness {
        &self.slowness
    }
}

impl AsMut<Slowness> for SlowRank {
    fn as_mut(&mut self) -> &mut Slowness {
        &mut self.slowness
    }
}

/// How long the transfers that a link has in one step take, the mean of each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkTime {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// How long, in nanoseconds.
    pub ns: f64,
    /// How long like transfers take on the link in the middle.
    pub usual_ns: f64,
}

/// Replays of some steps with parts of them at what is usual.
struct Replays<'a> {
    steps: &'a [Step],
    kinds: &'a Kinds,
    typical: Typical,
    means: Means,
    /// Whether gaps are the ranks' work, since nothing else says what they compute.
    are_gaps_work: bool,
}

impl Replays<'_> {
    /// Whether it is work that replays hold.
    fn is_work(&self, one: &Placed) -> bool {
        match self.kinds.nature(one.kind) {
            Nature::Compute => true,
            Nature::Between => self.are_gaps_work,
            Nature::Communication => false,
        }
    }

    /// What a communication typically takes; 0 for anything else.
    fn communication(&self, one: &Placed) -> f64 {
        match self.kinds.nature(one.kind) {
            Nature::Communication => self.typical.ns(one.kind),
            Nature::Compute | Nature::Between => 0.0,
        }
    }

    /// What a step takes longer since these ranks are slow, or are slow between their operations.
    fn cost_of_ranks(&self, slow: &[SlowRank]) -> f64 {
        let means = &self.means;
        // As work, whether or not that is what gaps are.
        let has_gaps = self.are_gaps_work || slow.iter().any(|one| one.is_between);
        let [with, without] = mean_times(self.steps, |one| {
            let nature = self.kinds.nature(one.kind);
            let of_role = match nature {
                Nature::Communication => return [self.typical.ns(one.kind); 2],
                Nature::Between if !has_gaps => return [0.0; 2],
                Nature::Compute | Nature::Between => means.of_role(one),
            };
            let its = slow.iter().find(|slow| slow.rank == one.rank);
            let is_slow = its.is_some_and(|its| !its.is_between || nature == Nature::Between);
            [if is_slow { means.of_rank_for_sure(one) } else { of_role }, of_role]
        });
        with - without
    }

    /// Says what slow ranks cost, and puts them in order.
    fn price(&self, slow: &mut [SlowRank]) {
        for one in slow.iter_mut() {
            one.slowness.alone_ns = self.cost_of_ranks(std::slice::from_ref(one));
        }
        slowness::price(slow, |some| self.cost_of_ranks(some));
    }

    /// What a step takes with one more of these as it was in each: all ranks even, then roles, ranks, computations, gaps
    /// and communications.
    fn all(&self) -> [f64; 6] {
        let means = &self.means;
        mean_times(self.steps, |one| {
            let actual = one.work_ns as f64;
            if !self.is_work(one) {
                let typical = self.communication(one);
                let as_it_was = self.as_it_was(one);
                return [typical, typical, typical, typical, typical, as_it_was];
            }
            let of_rank = means.of_rank_for_sure(one);
            let is_gap = self.kinds.nature(one.kind) == Nature::Between;
            let computed = if is_gap { of_rank } else { actual };
            [means.even(one.kind), means.of_role(one), of_rank, computed, actual, actual]
        })
    }

    /// What it took; 0 for gaps that are no work.
    fn as_it_was(&self, one: &Placed) -> f64 {
        match self.kinds.nature(one.kind) {
            Nature::Between if !self.are_gaps_work => 0.0,
            _ => one.work_ns as f64,
        }
    }

    /// What a step takes longer since transfers between these ranks are slow, where all others are typical; and what it
    /// would take with these typical and all else as it was.
    fn with_links(&self, pairs: &[Pair], worked_ns: f64) -> (f64, f64) {
        let [alone, without] = mean_times(self.steps, |one| {
            let is_it = links::ends(one)
                .is_some_and(|ends| pairs.iter().any(|pair| pair.is_slow_way(ends)));
            let is_as_it_was = is_it || self.is_work(one);
            let alone = if is_as_it_was { one.work_ns as f64 } else { self.communication(one) };
            [alone, if is_it { self.communication(one) } else { self.as_it_was(one) }]
        });
        (alone - worked_ns, without)
    }

    /// These links with what they cost, in order. `replayed_ns` is what a step takes as it was, `worked_ns` the same
    /// with communications that are typical.
    fn priced(&self, links: Vec<SlowLink>, replayed_ns: f64, worked_ns: f64) -> Vec<SlowLink> {
        let mut pairs = links::pairs(links);
        for one in &mut pairs {
            // What else is slow may hide it, and it may need what else is.
            let (alone_ns, without_ns) = self.with_links(std::slice::from_ref(one), worked_ns);
            one.slowness.alone_ns = alone_ns.max(replayed_ns - without_ns);
        }
        slowness::price(&mut pairs, |some| self.with_links(some, worked_ns).0);
        pairs.into_iter().flat_map(Pair::into_ways).collect()
    }
}

impl Attribution {
    /// Where the time of these steps goes. A rank that does work of its own is compared with what it would take if its
    /// processor were never withheld from it.
    #[must_use]
    pub fn of(steps: &[Step], kinds: &Kinds, roles: &Roles, processors: &Processors) -> Self {
        let (typical, means) = (Typical::of(steps, kinds), Means::of(steps, kinds, roles));
        let are_gaps_work = !means.are_computations_measured(kinds);
        let replays = Replays { steps, kinds, typical, means, are_gaps_work };
        let means = &replays.means;
        let [even_ns, by_role_ns, by_rank_ns, computed_ns, worked_ns, replayed_ns] = replays.all();
        // Unmeasured time is there whichever rank is slow.
        let rest_ns = (mean_longest(steps) - replayed_ns).max(0.0);
        let varied_ns = computed_ns - by_rank_ns;
        let data_part = variation::data_part(steps, kinds, roles, means);
        let mut ranks = ranks::slow(steps, kinds, roles, means);
        replays.price(&mut ranks);
        let gaps = starved::Gaps::of(steps, kinds);
        let lost_ns = |rank: u32| {
            // The work of a role of one rank cannot be separated from the rank.
            let is_alone = roles.role(rank).is_some_and(|role| roles.ranks(role).len() == 1);
            let since = if is_alone { even_ns } else { by_role_ns };
            let gaps = if are_gaps_work { 0.0 } else { gaps.excess_ns(rank) };
            replayed_ns - since - varied_ns * data_part + gaps
        };
        let starved = starved::slow(steps, processors, replayed_ns + rest_ns, lost_ns);
        for one in starved {
            match ranks.iter_mut().find(|slow| slow.rank == one.rank && !slow.is_between) {
                Some(known) => known.withheld = one.withheld,
                None => ranks.push(one),
            }
        }
        slowness::sort(&mut ranks);
        slowness::bound(&mut ranks, replayed_ns + rest_ns - even_ns);
        let (slow_links, link_times) = links::links(steps, roles, &ranks, processors);
        Self {
            actual_ns: replayed_ns + rest_ns,
            even_ns: even_ns + rest_ns,
            roles_ns: by_role_ns - even_ns,
            ranks_ns: by_rank_ns - by_role_ns,
            data_ns: varied_ns * data_part,
            noise_ns: varied_ns * (1.0 - data_part) + worked_ns - computed_ns,
            links_ns: replayed_ns - worked_ns,
            roles: means.slow_roles(kinds, roles),
            ranks,
            links: replays.priced(slow_links, replayed_ns, worked_ns),
            link_times,
        }
    }

    /// What a step takes longer than it would if all ranks computed alike and no communication were slow.
    #[must_use]
    pub fn lost_ns(&self) -> f64 {
        self.actual_ns - self.even_ns
    }
}

/// How long steps took at the ranks that needed the most time, on the average.
fn mean_longest(steps: &[Step]) -> f64 {
    let sum: f64 = steps.iter().map(|step| step.longest_ns() as f64).sum();
    sum / steps.len().max(1) as f64
}
