//! Where the time of a job's steps goes, with the names of nodes: for verdicts and for people.

use std::collections::{BTreeMap, VecDeque};

use telltale_steps::attribution::{Attribution, Slowness};
use telltale_steps::{Kinds, Processors, Roles, Step, Typical, what_if};

use crate::detection::members::Members;
use crate::detection::steps::waits::RankWait;
use crate::node::NodeName;
use crate::rank::Rank;

/// Steps whose times are kept.
pub(super) const MAX_TIMES: usize = telltale_wire::limits::cluster::MAX_STEP_TIMES;
/// Stages, ranks or links that one analysis names.
const MAX_NAMED: usize = telltale_wire::limits::cluster::MAX_SLOW;
/// Ranks of one stage that are named.
const MAX_RANKS: usize = telltale_wire::limits::cluster::MAX_AWAITED_RANKS;

/// All that is known of a job's steps in one epoch.
#[derive(Debug, Clone)]
pub struct StepsView {
    /// The latest steps; none where none was analysed yet.
    pub latest: Analysis,
    /// These themselves, and what their operations are called.
    pub steps: Vec<Step>,
    /// The kinds of their operations.
    pub kinds: Kinds,
    /// Who waits for whom in these, the longest first.
    pub waits: Vec<RankWait>,
    /// All that were analysed.
    pub all: Analysis,
    /// How long single steps took, the oldest first: the latest 4,096.
    pub times: Vec<StepTime>,
    /// Steps that were left out, since operations were missing or made no sense.
    pub left_out: u64,
}

/// How long one step took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTime {
    /// Its number.
    pub step: u64,
    /// From its first operation to its last, in nanoseconds.
    pub time_ns: u64,
}

/// Where the time of some steps goes. Times are of one step on the average, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Analysis {
    /// How many.
    pub steps: u64,
    /// The first of them.
    pub first_step: u64,
    /// The last of them.
    pub last_step: u64,
    /// S: how many times as long a step takes as with each operation at what is typical of its kind over all ranks
    /// and stages, both without the gaps between operations. 1 where nothing is known.
    pub slowdown: f64,
    /// What a step takes.
    pub actual_ns: f64,
    /// What it would take if all ranks computed alike and no communication were slow.
    pub even_ns: f64,
    /// The parts of the difference: the model's stages,
    pub stages_ns: f64,
    /// slow ranks,
    pub ranks_ns: f64,
    /// the data,
    pub data_ns: f64,
    /// noise of the hosts,
    pub noise_ns: f64,
    /// and slow communication.
    pub links_ns: f64,
    /// How the stages differ, slowest first.
    pub stages: Vec<StageWork>,
    /// The slow ranks, costliest first.
    pub ranks: Vec<RankCost>,
    /// The slow links, costliest first.
    pub links: Vec<LinkCost>,
    /// What transfers take from each node to each other one.
    pub(crate) paths: Vec<Path>,
}

/// What transfers from one node to another take, by the numbers of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Path {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The mean of the steps, and what is usual of like transfers elsewhere, in nanoseconds.
    pub(crate) ns: f64,
    pub(crate) usual_ns: f64,
    pub(crate) is_slow: bool,
}

/// What a stage computes in comparison with the others.
#[derive(Debug, Clone, PartialEq)]
pub struct StageWork {
    /// Its place in the flow.
    pub stage: u32,
    /// How many times as long it computes.
    pub ratio: f64,
    /// The same by kind.
    pub kinds: Vec<(Box<str>, f64)>,
    /// How many ranks it has.
    pub rank_count: usize,
    /// The lowest of them.
    pub ranks: Vec<Rank>,
}

/// A rank that computes longer than others of its stage.
#[derive(Debug, Clone, PartialEq)]
pub struct RankCost {
    /// Which.
    pub rank: Rank,
    /// The node that it runs on.
    pub node: Option<NodeName>,
    /// How slow, against ranks of its stage, and what that costs.
    pub slowness: Slowness,
    /// Whether it takes longer between its operations alone: then its node need not be slow.
    pub is_between: bool,
    /// Which part of the time it wanted a processor and had none.
    pub withheld: f64,
}

/// A link whose transfers take longer than like ones.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkCost {
    /// The rank that sends.
    pub from: Rank,
    /// Its node.
    pub from_node: Option<NodeName>,
    /// The rank that receives.
    pub to: Rank,
    /// Its node.
    pub to_node: Option<NodeName>,
    /// How slow, against like transfers, and what that costs.
    pub slowness: Slowness,
}

/// What is kept of all steps.
#[derive(Debug, Clone, Default)]
pub(super) struct StepSummary {
    times: VecDeque<StepTime>,
    left_out: u64,
    all: Analysis,
    /// How many steps were taken, and the means of what they took without gaps and would take.
    taken: f64,
    worked_ns: f64,
    typical_ns: f64,
}

// === impl Analysis ===

impl Analysis {
    /// Where the time of these steps goes; there is one at least.
    pub(super) fn of(
        steps: &[Step],
        kinds: &Kinds,
        processors: &Processors,
        members: &Members,
    ) -> Self {
        let roles = Roles::of(&steps[0], kinds);
        let typical = Typical::of(steps, kinds);
        let slowdown = what_if::slowdown(steps, kinds, &typical).ratio();
        let found = Attribution::of(steps, kinds, &roles, processors);
        let node = |rank| members.of_rank(Rank(rank)).map(|node| members.name(node).clone());
        let stages = found.roles.iter().take(MAX_NAMED).map(|one| StageWork {
            stage: one.role.0,
            ratio: one.ratio,
            kinds: one.kinds.clone(),
            rank_count: roles.ranks(one.role).len(),
            ranks: roles.ranks(one.role).iter().take(MAX_RANKS).map(|rank| Rank(*rank)).collect(),
        });
        let ranks = found.ranks.iter().take(MAX_NAMED).map(|one| RankCost {
            rank: Rank(one.rank),
            node: node(one.rank),
            slowness: one.slowness,
            is_between: one.is_between,
            withheld: one.withheld,
        });
        let links = found.links.iter().take(MAX_NAMED).map(|one| LinkCost {
            from: Rank(one.from),
            from_node: node(one.from),
            to: Rank(one.to),
            to_node: node(one.to),
            slowness: one.slowness,
        });
        Self {
            steps: u64::try_from(steps.len()).unwrap_or(u64::MAX),
            first_step: steps.first().map_or(0, Step::number),
            last_step: steps.last().map_or(0, Step::number),
            slowdown,
            actual_ns: found.actual_ns,
            even_ns: found.even_ns,
            stages_ns: found.roles_ns,
            ranks_ns: found.ranks_ns,
            data_ns: found.data_ns,
            noise_ns: found.noise_ns,
            links_ns: found.links_ns,
            stages: stages.collect(),
            ranks: ranks.collect(),
            links: links.collect(),
            paths: paths(&found, members),
        }
    }
}

/// What transfers between nodes take, of all ranks that they have.
fn paths(found: &Attribution, members: &Members) -> Vec<Path> {
    let mut paths: BTreeMap<(u32, u32), Path> = BTreeMap::new();
    let nodes = |from, to| Some((members.of_rank(Rank(from))?, members.of_rank(Rank(to))?));
    for one in &found.link_times {
        let Some((from, to)) = nodes(one.from, one.to).filter(|(from, to)| from != to) else {
            continue;
        };
        let none = Path { from, to, ns: 0.0, usual_ns: 0.0, is_slow: false };
        let path = paths.entry((from, to)).or_insert(none);
        path.ns += one.ns;
        path.usual_ns += one.usual_ns;
    }
    for slow in &found.links {
        let path = nodes(slow.from, slow.to).and_then(|ends| paths.get_mut(&ends));
        path.into_iter().for_each(|path| path.is_slow = true);
    }
    paths.into_values().collect()
}

// === impl StepSummary ===

impl StepSummary {
    /// Takes a step. What all steps take together is exact: of durations that are typical of their steps the mean time is that
    /// of durations that are typical of all.
    pub(super) fn took(&mut self, step: &Step, kinds: &Kinds) {
        let typical = Typical::of(std::slice::from_ref(step), kinds);
        let slowdown = what_if::slowdown(std::slice::from_ref(step), kinds, &typical);
        self.taken += 1.0;
        self.worked_ns += (slowdown.actual_ns - self.worked_ns) / self.taken;
        self.typical_ns += (slowdown.typical_ns - self.typical_ns) / self.taken;
    }

    /// Keeps how long a step took.
    pub(super) fn timed(&mut self, step: &Step) {
        let time_ns = u64::try_from(step.time_ns()).unwrap_or(0);
        self.times.push_back(StepTime { step: step.number(), time_ns });
        if self.times.len() > MAX_TIMES {
            self.times.pop_front();
        }
    }

    pub(super) const fn left_out(&mut self) {
        self.left_out = self.left_out.saturating_add(1);
    }

    /// Adds what is known of `fresh` steps, which are the last of those analysed: they count as these do on the
    /// average.
    pub(super) fn add(&mut self, latest: &Analysis, fresh: u64) {
        let all = &mut self.all;
        let first_step = if all.steps == 0 { latest.first_step } else { all.first_step };
        let part = fresh as f64 / (all.steps + fresh).max(1) as f64;
        let mix = |before: f64, now: f64| before + (now - before) * part;
        *all = Analysis {
            steps: all.steps + fresh,
            first_step,
            last_step: latest.last_step,
            slowdown: if self.typical_ns > 0.0 { self.worked_ns / self.typical_ns } else { 1.0 },
            actual_ns: mix(all.actual_ns, latest.actual_ns),
            even_ns: mix(all.even_ns, latest.even_ns),
            stages_ns: mix(all.stages_ns, latest.stages_ns),
            ranks_ns: mix(all.ranks_ns, latest.ranks_ns),
            data_ns: mix(all.data_ns, latest.data_ns),
            noise_ns: mix(all.noise_ns, latest.noise_ns),
            links_ns: mix(all.links_ns, latest.links_ns),
            stages: latest.stages.clone(),
            paths: Vec::new(),
            ranks: std::mem::take(&mut all.ranks),
            links: std::mem::take(&mut all.links),
        };
        for one in &latest.ranks {
            let known = all.ranks.iter().position(|known| known.rank == one.rank);
            match known {
                Some(place) => {
                    let known = &mut all.ranks[place];
                    add(&mut known.slowness, &one.slowness, fresh);
                    (known.is_between, known.withheld) = (one.is_between, one.withheld);
                }
                None if all.ranks.len() < MAX_NAMED => all.ranks.push(one.clone()),
                None => {}
            }
        }
        for one in &latest.links {
            let known =
                all.links.iter().position(|known| (known.from, known.to) == (one.from, one.to));
            match known {
                Some(place) => add(&mut all.links[place].slowness, &one.slowness, fresh),
                None if all.links.len() < MAX_NAMED => all.links.push(one.clone()),
                None => {}
            }
        }
        let costlier = |one: &Slowness, other: &Slowness| other.alone_ns.total_cmp(&one.alone_ns);
        all.ranks.sort_by(|one, other| costlier(&one.slowness, &other.slowness));
        all.links.sort_by(|one, other| costlier(&one.slowness, &other.slowness));
    }

    /// What is known, with these latest steps.
    pub(super) fn view(
        &self,
        latest: Analysis,
        (steps, kinds): (&[Step], &Kinds),
        waits: Vec<RankWait>,
    ) -> StepsView {
        StepsView {
            latest,
            steps: steps.to_vec(),
            kinds: kinds.clone(),
            waits,
            all: self.all.clone(),
            times: self.times.iter().copied().collect(),
            left_out: self.left_out,
        }
    }
}

/// Adds some steps to those in which something was slow.
fn add(all: &mut Slowness, latest: &Slowness, fresh: u64) {
    let fresh = u32::try_from(fresh).unwrap_or(u32::MAX);
    let (slow, steps) = added(latest.slow_steps, latest.steps, fresh);
    let part = f64::from(steps) / f64::from(all.steps.saturating_add(steps).max(1));
    all.ratio += (latest.ratio - all.ratio) * part;
    all.cost_ns += (latest.cost_ns - all.cost_ns) * part;
    all.alone_ns += (latest.alone_ns - all.alone_ns) * part;
    all.slow_steps = all.slow_steps.saturating_add(slow);
    all.steps = all.steps.saturating_add(steps);
}

/// How many of the fresh steps were slow, as far as those analysed show.
fn added(slow: u32, steps: u32, fresh: u32) -> (u32, u32) {
    let fresh = fresh.min(steps);
    let not_slow = (steps - slow).min(fresh);
    (fresh - not_slow, fresh)
}
