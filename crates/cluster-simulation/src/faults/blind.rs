//! Jobs of every shape through all that is shipped: who is named for long though nothing is wrong, and who is
//! named when something is.
//!
//! From an agent's intake to the coordinator's decision nothing is left out but the wire format. What detection
//! says for less than ten evaluations is not judged here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fmt, thread};

use telltale_cluster::detection::Rule;
use telltale_cluster::policy::{Mode, Policy};
use telltale_cluster::verdict::{Suspect, Suspects};

use crate::faults::machine::{Noise, SimulatedFault};
use crate::faults::oracle;
use crate::faults::shape::{JobShape, Keys};
pub use crate::faults::week::transfers::Measured;
use crate::faults::week::transfers::Transfers;
use crate::faults::week::{
    LASTING_EVALUATIONS, Lasting, Plan, Reports, Slow, WeekOutcome, check_job,
};
use crate::random::Random;

/// How long a healthy job is watched. The slowest edges, of one transfer in three seconds, are known after 300 s.
const HEALTHY: Duration = Duration::from_secs(600);
/// When a fault begins, and how long it is watched.
const FAULT_AT: Duration = Duration::from_secs(330);
const FAULT_FOR: Duration = Duration::from_secs(150);

/// What is wrong with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Nothing.
    Nothing,
    /// A node is slow.
    Node,
    /// A link is slow, all ways that are used.
    Link,
}

/// Jobs that are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobGroup {
    /// How the jobs are built.
    pub shape: JobShape,
    /// What is wrong.
    pub broken: Broken,
    /// What the times of transfers hold.
    pub measured: Measured,
}

/// One job.
#[derive(Debug, Clone, Copy)]
struct Case {
    group: JobGroup,
    keys: Keys,
    reports: Reports,
    fault: Option<(SimulatedFault, f64)>,
}

impl Case {
    /// Of four seeds in a row, each way of measuring comes with each way of reporting.
    fn new(group: JobGroup, seed: u64, random: &mut Random) -> Self {
        let keys = if seed.is_multiple_of(2) { Keys::One } else { Keys::Many };
        let reports = if seed % 4 < 2 { Reports::InPhase } else { Reports::Spread };
        let fault = draw(group, keys, random);
        Self { group, keys, reports, fault }
    }
}

/// A group of each shape with at most so many nodes.
#[must_use]
pub fn groups(broken: Broken, measured: Measured, most: u32) -> Vec<JobGroup> {
    let shapes = JobShape::ALL.into_iter().filter(|shape| shape.nodes() <= most);
    shapes.map(|shape| JobGroup { shape, broken, measured }).collect()
}

/// What came of the jobs of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Score {
    /// Jobs.
    pub runs: u32,
    /// Jobs with a verdict that lasted for ten evaluations or more and is not exact: it is not of the fault alone where
    /// that can be distinguished, or not of all who are in some smallest explanation and no others.
    pub misjudged: u32,
    /// Nodes that were evicted and had no fault.
    pub evicted: u32,
    /// Verdicts that lasted, in all.
    pub lasting: u32,
    /// Of these, those that are exact.
    pub right: u32,
    /// Jobs with a fault.
    pub faults: u32,
    /// Faults that were named for ten evaluations or more, as exactly as can be.
    pub found: u32,
    /// Faulty nodes that can be distinguished from everything else.
    pub evictable: u32,
    /// Of these, those that were named for as long as it takes to be evicted.
    pub acted_on: u32,
    /// After how many seconds each was named that was found.
    pub seconds: Vec<u64>,
    /// The jobs with something wrong in what was said: what they were, and all verdicts that lasted.
    pub notes: Vec<String>,
}

impl Score {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.misjudged += other.misjudged;
        self.evicted += other.evicted;
        self.lasting += other.lasting;
        self.right += other.right;
        self.faults += other.faults;
        self.found += other.found;
        self.evictable += other.evictable;
        self.acted_on += other.acted_on;
        self.seconds.extend(&other.seconds);
        self.notes.extend_from_slice(&other.notes);
    }

    /// Of the verdicts that lasted, the share that was right.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.right, self.lasting)
    }

    /// Of the faults, the share that was found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.found, self.faults)
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

/// Runs jobs of each group with `runs` seeds, on all processors.
///
/// # Panics
/// When a job does.
#[must_use]
pub fn scores(groups: &[JobGroup], runs: u64) -> Vec<(JobGroup, Score)> {
    let next = AtomicUsize::new(0);
    let all: Vec<(usize, u64)> =
        (0..groups.len()).flat_map(|group| (0..runs).map(move |seed| (group, seed))).collect();
    let work = || {
        let mut done = vec![Score::default(); groups.len()];
        while let Some((group, seed)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            done[*group].add(&run(groups[*group], *seed));
        }
        done
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut scores: Vec<(JobGroup, Score)> =
        groups.iter().map(|group| (*group, Score::default())).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let done = thread.join().expect("no job panics");
            scores.iter_mut().zip(&done).for_each(|((_, score), one)| score.add(one));
        }
    });
    scores
}

/// Runs and judges one job.
#[must_use]
pub fn run(group: JobGroup, seed: u64) -> Score {
    let mut random = Random::new(seed.wrapping_mul(1_000_003) ^ 0x5eed);
    let case = Case::new(group, seed, &mut random);
    let Case { keys, reports, fault, .. } = case;
    let job = Transfers::new(group.shape, (keys, group.measured), reports, random.bits());
    let pace = job.pace();
    let outcome = watch(&case, job, random.bits());
    let mut score = judge(&outcome, &case);
    if score.misjudged + score.evicted > 0 || score.found < score.faults {
        let said = outcome.lasting.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let case = format!("seed {seed}: {keys:?}, {reports:?}, {pace}, {fault:?}");
        score.notes.push(format!("{case}: {said}"));
    }
    score
}

/// What came of one job.
fn watch(case: &Case, job: Transfers, seed: u64) -> WeekOutcome {
    let Case { group, reports, fault, .. } = *case;
    // One that must be evicted would end its own observation.
    let (time, mode) = match fault {
        None => (HEALTHY, Mode::Act),
        Some(_) => (FAULT_AT + FAULT_FOR, Mode::Observe),
    };
    let plan = Plan {
        nodes: group.shape.nodes(),
        spares: 1,
        time,
        reports,
        noise: Noise::CALM,
        rule: Rule::OwnHistory,
        mode,
        continuity_windows: Policy::default().continuity_windows,
        seed,
        slow: fault
            .map(|(fault, ratio)| Slow { fault, ratio, from: FAULT_AT, turns: None })
            .into_iter()
            .collect(),
        kept_evaluations: LASTING_EVALUATIONS,
    };
    check_job(&plan, job)
}

/// The fault of a job, with its factor.
fn draw(group: JobGroup, keys: Keys, random: &mut Random) -> Option<(SimulatedFault, f64)> {
    let JobGroup { shape, broken, .. } = group;
    let ratio = if random.happens(0.5) { 1.6 } else { 3.0 };
    let pairs: Vec<(u32, u32)> = shape.pairs(keys).into_iter().collect();
    let fault = match broken {
        Broken::Nothing => return None,
        Broken::Node => {
            SimulatedFault::Node(u32::try_from(random.below(u64::from(shape.nodes()))).ok()?)
        }
        Broken::Link => {
            let (from, to) = pairs[random.index(pairs.len())?];
            match pairs.contains(&(to, from)) {
                true => SimulatedFault::BothWays(from.min(to), from.max(to)),
                false => SimulatedFault::OneWay(from, to),
            }
        }
    };
    Some((fault, ratio))
}

fn judge(outcome: &WeekOutcome, case: &Case) -> Score {
    let Case { group, keys, fault, .. } = *case;
    let mut score = Score { runs: 1, ..Score::default() };
    score.evicted = u32::try_from(outcome.barred.len()).unwrap_or(u32::MAX);
    let Some((fault, ratio)) = fault else {
        score.lasting = u32::try_from(outcome.lasting.len()).unwrap_or(u32::MAX);
        score.misjudged = u32::from(score.lasting > 0);
        return score;
    };
    let parts =
        oracle::explanations(&group.shape.pairs(keys), &[(fault, ratio)]).unwrap_or_default();
    let smallest: Vec<&BTreeSet<SimulatedFault>> = parts.iter().flatten().collect();
    let culprits: BTreeSet<Suspect> =
        smallest.iter().copied().flatten().map(|one| one.suspect()).collect();
    let certain = (smallest.len() == 1).then(|| fault.suspect());
    // Of a link, both of its ends are enough: what lies between nodes of a set is suspected with them.
    let has_nodes = |one: &Lasting, of: &Suspect| {
        of.nodes().all(|node| one.suspects.all().contains(&Suspect::Node(node.clone())))
    };
    let holds_the_truth = |one: &Lasting| {
        culprits.iter().any(|of| one.suspects.all().contains(of) || has_nodes(one, of))
    };
    let is_right = |one: &&Lasting| match &one.suspects {
        // Who holds up whom is known in part only.
        _ if group.measured != Measured::Alone => holds_the_truth(one),
        Suspects::One(suspect) => certain.as_ref() == Some(suspect),
        // At best all who are in some explanation, and no others.
        Suspects::Ambiguous(all) => {
            all.len() == culprits.len() && all.iter().all(|suspect| culprits.contains(suspect))
        }
    };
    let (right, wrong): (Vec<&Lasting>, Vec<&Lasting>) = outcome.lasting.iter().partition(is_right);
    score.lasting = u32::try_from(outcome.lasting.len()).unwrap_or(u32::MAX);
    score.right = u32::try_from(right.len()).unwrap_or(u32::MAX);
    score.misjudged = u32::from(!wrong.is_empty());
    score.faults = 1;
    score.found = u32::from(!right.is_empty());
    let begun = right.iter().map(|one| one.first_seen.as_ns() / 1_000_000_000).min();
    score.seconds.extend(begun.map(|at| at.saturating_sub(FAULT_AT.as_secs())));
    let node = Suspects::One(fault.suspect());
    let is_evictable = certain.is_some() && matches!(fault, SimulatedFault::Node(_));
    let long = Policy::default().continuity_windows;
    let is_acted_on = right.iter().any(|one| one.suspects == node && one.evaluations >= long);
    score.evictable = u32::from(is_evictable);
    score.acted_on = u32::from(is_evictable && is_acted_on);
    score
}

/// The head of the table, in Markdown.
pub const HEAD: &str = "\
| jobs | runs | misjudged | evicted | faults | found | precision | recall | seconds, median and most | \
nodes that can be distinguished | named for 30 windows |\n|---|---|---|---|---|---|---|---|---|---|---|";

/// One line of the table.
#[derive(Debug, Clone)]
pub struct TableLine<'a>(pub &'a str, pub &'a Score);

impl fmt::Display for TableLine<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, score) = self;
        let mut seconds = score.seconds.clone();
        seconds.sort_unstable();
        let of = |at: Option<&u64>| at.map_or("-".to_owned(), u64::to_string);
        let (median, most) = (of(seconds.get(seconds.len() / 2)), of(seconds.last()));
        write!(
            formatter,
            "| {name} | {} | {} | {} | {} | {} | {:.3} | {:.3} | {median}, {most} | {} | {} |",
            score.runs,
            score.misjudged,
            score.evicted,
            score.faults,
            score.found,
            score.precision(),
            score.recall(),
            score.evictable,
            score.acted_on,
        )
    }
}
