//! The cases, what must be said of each, and the scores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use telltale_cluster::detection::Rule;
use telltale_cluster::policy::{Mode, Policy};
use telltale_cluster::verdict::{Suspect, Suspects, VerdictKind};

use super::baselines::Baseline;
use super::job::{Machine, Steps, Traits};
use super::program::Shape;
use super::run::run;
use crate::faults::machine::{Fault, Noise};
use crate::faults::week::{Lasting, Outcome, Plan, Reports, Slow, look_after_job};
use crate::random::Random;

/// How long a job is watched, and how long one whose faults come and go.
const TIME: Duration = Duration::from_secs(60);
const LONG_TIME: Duration = Duration::from_secs(150);
/// For how long a fault is there, and then not.
const TURNS: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(20)];
/// What makes a step longer by this part must be named.
const MUST_COST: f64 = 0.08;
/// Steps without chance by which costs are known.
const STEPS_OF_COST: usize = 4;

/// What is wrong with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Nothing.
    Nothing,
    /// A node computes slowly.
    Node,
    /// A link is slow, one way or both.
    Link,
    /// A stage of the model has more to do.
    Stage,
    /// What ranks compute differs with their data.
    Data,
    /// Up to three nodes and links.
    Several,
    /// A node or a link, for half a minute at a time.
    ComesAndGoes,
}

/// Cases that are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// How the jobs are built.
    pub shape: Shape,
    /// What is wrong.
    pub broken: Broken,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    traits: Traits,
    slow: Vec<Slow>,
    reports: Reports,
    seed: u64,
}

/// All groups of jobs with at most so many ranks.
#[must_use]
pub fn groups(most: u32) -> Vec<Group> {
    let broken = [
        Broken::Nothing,
        Broken::Node,
        Broken::Link,
        Broken::Stage,
        Broken::Data,
        Broken::Several,
        Broken::ComesAndGoes,
    ];
    let shapes = Shape::ALL.into_iter().filter(|shape| shape.ranks() <= most);
    let all = shapes.flat_map(|shape| broken.map(|broken| Group { shape, broken }));
    let has_stages = |shape| matches!(shape, Shape::Pipeline(..) | Shape::Uneven(..));
    all.filter(|one| one.broken != Broken::Stage || has_stages(one.shape)).collect()
}

/// The case of each seed.
#[must_use]
pub fn cases(group: Group, seeds: std::ops::Range<u64>) -> Vec<Case> {
    seeds.map(|seed| Case::new(group, seed)).collect()
}

// === impl Case ===

impl Case {
    fn new(group: Group, seed: u64) -> Self {
        let Group { shape, broken } = group;
        let mut random = Random::new(seed.wrapping_mul(1_000_003) ^ 0xfau64.rotate_left(8));
        let reports = if random.happens(0.5) { Reports::InPhase } else { Reports::Spread };
        let has_tcp = random.happens(0.5);
        let ratio = |random: &mut Random| [1.2, 1.5, 2.0, 3.0][random.index(4).unwrap_or(0)];
        let stage = (broken == Broken::Stage).then(|| {
            let stages = shape.program().alike.into_iter().max().unwrap_or(0) + 1;
            (u32::try_from(random.below(u64::from(stages))).unwrap_or(0), ratio(&mut random))
        });
        let data = if broken == Broken::Data { 0.1 + 0.4 * random.unit() } else { 0.0 };
        let count = match broken {
            Broken::Nothing | Broken::Stage | Broken::Data => 0,
            Broken::Node | Broken::Link | Broken::ComesAndGoes => 1,
            Broken::Several => 2 + random.below(2),
        };
        let mut slow: Vec<Slow> = Vec::new();
        while (slow.len() as u64) < count {
            let is_node = match broken {
                Broken::Node => true,
                Broken::Link => false,
                _ => random.happens(0.5),
            };
            let fault = if is_node { node(shape, &mut random) } else { link(shape, &mut random) };
            // From the first step, or the tenth.
            let from = Duration::from_secs(if random.happens(0.5) { 0 } else { 10 });
            // Of a link, up to what makes as long a transfer of what is computed.
            let ratio = if is_node { ratio(&mut random) } else { 3.0 * ratio(&mut random) };
            let turns = (broken == Broken::ComesAndGoes).then_some(TURNS);
            if slow.iter().all(|one| !is_one_link(one.fault, fault) && one.fault != fault) {
                slow.push(Slow { fault, ratio, from, turns });
            }
        }
        let traits = Traits { shape, stage, data, has_tcp };
        Self { traits, slow, reports, seed: random.bits() }
    }

    /// By which part a step is longer for each fault, beside the others: they may hide it.
    fn costs(&self) -> Vec<f64> {
        let all: Vec<(Fault, f64)> = self.slow.iter().map(|one| (one.fault, one.ratio)).collect();
        let with = self.step_us(&all);
        let costs = (0..all.len()).map(|place| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != place);
            let without = self.step_us(&others.map(|(_, one)| *one).collect::<Vec<_>>());
            (with - without) / with
        });
        costs.collect()
    }

    fn step_us(&self, faults: &[(Fault, f64)]) -> f64 {
        let program = self.traits.shape.program();
        let mut machine = Machine::even(self.traits, &program);
        machine.break_down(faults);
        let mut clocks = vec![0.0; program.actions.len()];
        (0..STEPS_OF_COST).for_each(|_| drop(run(&program, &mut clocks, &mut machine)));
        clocks.into_iter().fold(0.0, f64::max) / STEPS_OF_COST as f64
    }

    /// Whether what is measured can tell a fault from everything else.
    fn can_be_told(&self, fault: Fault) -> bool {
        let shape = self.traits.shape;
        match fault {
            Fault::Node(rank) => {
                let alike = shape.program().alike;
                let own = alike[rank as usize];
                let healthy = (0..).zip(&alike).filter(|(other, kind)| {
                    let is_faulty = self.slow.iter().any(|one| one.fault == Fault::Node(*other));
                    **kind == own && !is_faulty
                });
                healthy.count() > alike.iter().filter(|kind| **kind == own).count() / 2
                    || (alike.iter().filter(|kind| **kind == own).count() == 2)
            }
            _ => {
                let hidden = shape.hidden_links();
                let is_measured = !hidden.iter().any(|link| fault.touches(*link));
                let like = if is_measured { self.like(fault) } else { hidden };
                let slow = like.iter().filter(|ends| self.is_slow(**ends)).count();
                (is_measured || self.traits.has_tcp)
                    && 2 * slow < like.len()
                    && !self.is_of_a_slow_node(fault)
            }
        }
    }

    /// The links whose ends do the same work as those of a link.
    fn like(&self, link: Fault) -> Vec<(u32, u32)> {
        let alike = self.traits.shape.program().alike;
        let ends = |(from, to): (u32, u32)| (alike[from as usize], alike[to as usize]);
        let links = self.traits.shape.links();
        let own: Vec<_> =
            links.iter().filter(|one| link.touches(**one)).map(|one| ends(*one)).collect();
        links.into_iter().filter(|one| own.contains(&ends(*one))).collect()
    }

    fn is_slow(&self, link: (u32, u32)) -> bool {
        let faults = self.slow.iter().map(|one| one.fault);
        faults.into_iter().any(|fault| !matches!(fault, Fault::Node(_)) && fault.touches(link))
    }

    /// Whether a link is one of a slow node of which most links are slow: then it is the node that is.
    fn is_of_a_slow_node(&self, link: Fault) -> bool {
        let links = self.traits.shape.links();
        let nodes = self.slow.iter().filter_map(|one| match one.fault {
            Fault::Node(node) => Some(node),
            _ => None,
        });
        nodes.into_iter().any(|node| {
            let is_own = |(from, to): &&(u32, u32)| *from == node || *to == node;
            let own: Vec<(u32, u32)> = links.iter().filter(is_own).copied().collect();
            let slow: Vec<(u32, u32)> =
                own.iter().copied().filter(|one| self.is_slow(*one)).collect();
            slow.iter().any(|ends| link.touches(*ends)) && 2 * slow.len() > own.len()
        })
    }

    fn watch(&self) -> (Outcome, BTreeMap<Baseline, BTreeSet<Fault>>) {
        let turns = self.slow.iter().any(|one| one.turns.is_some());
        let plan = Plan {
            nodes: self.traits.shape.ranks(),
            spares: 0,
            time: if turns { LONG_TIME } else { TIME },
            reports: self.reports,
            noise: Noise::CALM,
            rule: Rule::OwnHistory,
            mode: Mode::Observe,
            continuity_windows: Policy::default().continuity_windows,
            seed: self.seed,
            slow: self.slow.clone(),
            kept_looks: 1,
        };
        let job = Steps::new(self.traits, false, self.seed);
        let outcome = look_after_job(&plan, job);
        (outcome, self.by_baselines(plan.time))
    }

    /// What the usual rules say of a job of the same chance.
    fn by_baselines(&self, time: Duration) -> BTreeMap<Baseline, BTreeSet<Fault>> {
        use crate::faults::week::Workload as _;
        let mut job = Steps::new(self.traits, true, self.seed);
        for second in 0..time.as_secs() {
            let slow = self.slow.iter().filter(|one| one.is_now(Duration::from_secs(second)));
            job.break_down(&slow.map(|one| (one.fault, one.ratio)).collect::<Vec<_>>());
            job.go_on(10 * second);
        }
        Baseline::ALL.into_iter().map(|one| (one, one.named(&job.all))).collect()
    }
}

/// Whether both are links between the same two ranks.
fn is_one_link(one: Fault, other: Fault) -> bool {
    let ends = |fault| match fault {
        Fault::OneWay(from, to) | Fault::BothWays(from, to) => Some((from.min(to), from.max(to))),
        _ => None,
    };
    ends(one).is_some_and(|link| ends(other) == Some(link))
}

fn node(shape: Shape, random: &mut Random) -> Fault {
    Fault::Node(u32::try_from(random.below(u64::from(shape.ranks()))).unwrap_or(0))
}

fn link(shape: Shape, random: &mut Random) -> Fault {
    let links = shape.links();
    let (from, to) = links[random.index(links.len()).unwrap_or(0)];
    match links.contains(&(to, from)) && random.happens(0.5) {
        true => Fault::BothWays(from.min(to), from.max(to)),
        false => Fault::OneWay(from, to),
    }
}

/// What came of some jobs, by one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Who was named.
    pub named: u32,
    /// Of these, those that were at fault.
    pub right: u32,
    /// Faults that had to be named.
    pub due: u32,
    /// Of these, those that were.
    pub found: u32,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.named += other.named;
        self.right += other.right;
        self.due += other.due;
        self.found += other.found;
    }

    /// Of those who were named, the part that was at fault.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.right, self.named)
    }

    /// Of the faults that had to be named, the part that was.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.found, self.due)
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

/// What came of some jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// Jobs.
    pub jobs: u32,
    /// What is shipped.
    pub ours: Tally,
    /// The usual rules.
    pub baselines: BTreeMap<Baseline, Tally>,
    /// After how many seconds each fault was named that had to be.
    pub seconds: Vec<f64>,
    /// Verdicts by the tenth of confidence that they had, and how many of them were right.
    pub confidence: BTreeMap<u32, (u32, u32)>,
    /// Jobs with something wrong: what was the case, and what was said.
    pub notes: Vec<String>,
}

impl Score {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.ours.add(other.ours);
        for (baseline, tally) in &other.baselines {
            self.baselines.entry(*baseline).or_default().add(*tally);
        }
        self.seconds.extend(&other.seconds);
        for (tenth, (all, right)) in &other.confidence {
            let known = self.confidence.entry(*tenth).or_default();
            *known = (known.0 + all, known.1 + right);
        }
        self.notes.extend_from_slice(&other.notes);
    }
}

/// Runs all cases, on all processors.
///
/// # Panics
/// When a case does.
#[must_use]
pub fn score(cases: &[Case]) -> Score {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut sum = Score::default();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            sum.add(&judge(case));
        }
        sum
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Score::default();
        threads.into_iter().for_each(|one| all.add(&one.join().expect("no case panics")));
        all
    })
}

/// Whether a suspect is one side of a node whose links that way are all at fault.
fn is_slow_side(suspect: &Suspect, case: &Case) -> bool {
    let links = case.traits.shape.links();
    let faults: Vec<Fault> = case.slow.iter().map(|one| one.fault).collect();
    (0..case.traits.shape.ranks()).any(|rank| {
        let sides = [
            (Fault::Sender(rank), links.iter().filter(|ends| ends.0 == rank).collect::<Vec<_>>()),
            (Fault::Receiver(rank), links.iter().filter(|ends| ends.1 == rank).collect()),
        ];
        sides.iter().any(|(side, links)| {
            let is_slow = |ends: &&(u32, u32)| faults.iter().any(|fault| fault.touches(**ends));
            *suspect == side.suspect() && links.len() > 1 && links.iter().all(is_slow)
        })
    })
}

/// Whether a suspect is such a side, and a link is one of its.
fn is_side_with(suspect: &Suspect, link: Fault, case: &Case) -> bool {
    let ends = match link {
        Fault::OneWay(from, to) | Fault::BothWays(from, to) => [from, to],
        _ => return false,
    };
    let sides = ends.into_iter().flat_map(|node| [Fault::Sender(node), Fault::Receiver(node)]);
    sides.into_iter().any(|side| *suspect == side.suspect()) && is_slow_side(suspect, case)
}

/// Whether a suspect is at fault, or a part of it.
fn is_of(suspect: &Suspect, fault: Fault) -> bool {
    let one_way = match fault {
        Fault::BothWays(one, other) => [(one, other), (other, one)]
            .map(|(from, to)| Fault::OneWay(from, to).suspect())
            .contains(suspect),
        _ => false,
    };
    one_way || *suspect == fault.suspect()
}

fn judge(case: &Case) -> Score {
    let (outcome, by_baselines) = case.watch();
    let costs = case.costs();
    let mut score = Score { jobs: 1, ..Score::default() };
    let faults: Vec<(Slow, f64)> = case.slow.iter().copied().zip(costs).collect();
    let is_due = |(slow, cost): &&(Slow, f64)| *cost >= MUST_COST && case.can_be_told(slow.fault);
    let is_right = |suspect: &Suspect| {
        faults.iter().any(|(slow, _)| is_of(suspect, slow.fault)) || is_slow_side(suspect, case)
    };
    let slow_kinds = [VerdictKind::SlowNode, VerdictKind::SlowLink];
    let said: Vec<&Lasting> =
        outcome.lasting.iter().filter(|one| slow_kinds.contains(&one.kind)).collect();
    let mut wrong = Vec::new();
    let mut right_said: BTreeMap<Vec<Suspect>, bool> = BTreeMap::new();
    for one in &said {
        let right = one.suspects.all().iter().any(is_right);
        let tenth = (one.confidence * 10.0).floor().min(9.0) as u32;
        let (all, of_them) = score.confidence.entry(tenth).or_default();
        *all += 1;
        *of_them += u32::from(right);
        if !right {
            wrong.push(one.to_string());
        }
        right_said.insert(one.suspects.all().to_vec(), right);
    }
    score.ours.named = right_said.len() as u32;
    score.ours.right = right_said.values().filter(|right| **right).count() as u32;
    let mut missed = Vec::new();
    for (slow, cost) in faults.iter().filter(is_due) {
        score.ours.due += 1;
        let naming = said.iter().filter(|one| {
            matches!(&one.suspects, Suspects::One(suspect)
                if is_of(suspect, slow.fault) || is_side_with(suspect, slow.fault, case))
        });
        let first = naming.map(|one| one.first_seen.as_ns() as f64 / 1e9).reduce(f64::min);
        match first {
            Some(at) => {
                score.ours.found += 1;
                score.seconds.push((at - slow.from.as_secs_f64()).max(0.0));
            }
            None => missed.push(format!("{:?} costs {:.0} %", slow.fault, 100.0 * cost)),
        }
    }
    for (baseline, named) in by_baselines {
        let tally = score.baselines.entry(baseline).or_default();
        tally.named = named.len() as u32;
        tally.right = named.iter().filter(|one| is_right(&one.suspect())).count() as u32;
        for (slow, _) in faults.iter().filter(is_due) {
            tally.due += 1;
            tally.found += u32::from(named.iter().any(|one| is_of(&one.suspect(), slow.fault)));
        }
    }
    if !wrong.is_empty() || !missed.is_empty() {
        score.notes.push(format!(
            "{} seed {}: {:?}, tcp {}; missed {missed:?}; wrong {wrong:?}; all {:?}",
            case.traits.shape,
            case.seed,
            faults
                .iter()
                .map(|(slow, cost)| (slow.fault, slow.ratio, (100.0 * cost).round()))
                .collect::<Vec<_>>(),
            case.traits.has_tcp,
            said.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ));
    }
    score
}

/// The scores as a table in Markdown.
#[must_use]
pub fn table(scores: &[(String, Score)]) -> String {
    let mut text =
        String::from("| jobs | runs | faults | precision | recall | seconds, median and most |");
    for baseline in Baseline::ALL {
        let _ = write!(text, " {} |", baseline.name());
    }
    text.push_str("\n|---|---|---|---|---|---|---|---|---|\n");
    for (name, score) in scores {
        let mut seconds = score.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let at = |one: Option<&f64>| one.map_or("-".to_owned(), |one| format!("{one:.0}"));
        let (median, most) = (at(seconds.get(seconds.len() / 2)), at(seconds.last()));
        let ours = score.ours;
        let _ = write!(
            text,
            "| {name} | {} | {} | {:.3} | {:.3} | {median}, {most} |",
            score.jobs,
            ours.due,
            ours.precision(),
            ours.recall()
        );
        for baseline in Baseline::ALL {
            let tally = score.baselines.get(&baseline).copied().unwrap_or_default();
            let _ = write!(text, " {:.2}, {:.2} |", tally.precision(), tally.recall());
        }
        text.push('\n');
    }
    text
}
