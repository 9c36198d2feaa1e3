//! The cases: how each job is built, what is wrong with it, and what of that can be found.

use std::fmt;
use std::time::Duration;

use super::job::{OperationTimes, Traits};
use super::program::StepShape;
use super::run::run;
use crate::faults::machine::SimulatedFault;
use crate::faults::week::{Reports, Slow};
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
pub struct CaseGroup {
    /// How the jobs are built.
    pub shape: StepShape,
    /// What is wrong.
    pub broken: Broken,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    group: CaseGroup,
    /// By which it is known.
    number: u64,
    pub(super) traits: Traits,
    pub(super) slow: Vec<Slow>,
    pub(super) reports: Reports,
    pub(super) seed: u64,
}

/// A fault with what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costly {
    pub(super) slow: Slow,
    /// By which part a step is longer for it.
    pub(super) cost: f64,
    /// Whether it must be named: it costs enough, and what is measured distinguishes it from everything else.
    pub(super) is_due: bool,
}

/// All groups of jobs with at most so many ranks.
#[must_use]
pub fn groups(most: u32) -> Vec<CaseGroup> {
    let broken = [
        Broken::Nothing,
        Broken::Node,
        Broken::Link,
        Broken::Stage,
        Broken::Data,
        Broken::Several,
        Broken::ComesAndGoes,
    ];
    let shapes = StepShape::ALL.into_iter().filter(|shape| shape.ranks() <= most);
    let all = shapes.flat_map(|shape| broken.map(|broken| CaseGroup { shape, broken }));
    let has_stages = |shape| matches!(shape, StepShape::Pipeline(..) | StepShape::Uneven(..));
    all.filter(|one| one.broken != Broken::Stage || has_stages(one.shape)).collect()
}

/// The case of each seed.
#[must_use]
pub fn cases(group: CaseGroup, seeds: std::ops::Range<u64>) -> Vec<Case> {
    seeds.map(|seed| Case::new(group, seed)).collect()
}

// === impl CaseGroup ===

impl fmt::Display for CaseGroup {
    /// `ring-8.node`
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = match self.broken {
            Broken::Nothing => "nothing",
            Broken::Node => "node",
            Broken::Link => "link",
            Broken::Stage => "stage",
            Broken::Data => "data",
            Broken::Several => "several",
            Broken::ComesAndGoes => "comes-and-goes",
        };
        write!(to, "{}.{broken}", self.shape.to_string().replace(' ', "-"))
    }
}

// === impl Case ===

impl fmt::Display for Case {
    /// `ring-8.node.500000`
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}", self.group, self.number)
    }
}

impl Case {
    fn new(group: CaseGroup, seed: u64) -> Self {
        let CaseGroup { shape, broken } = group;
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
        Self { group, number: seed, traits, slow, reports, seed: random.bits() }
    }

    /// The case that has this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (group, seed) = name.rsplit_once('.')?;
        let seed = seed.parse().ok()?;
        let group = groups(u32::MAX).into_iter().find(|one| one.to_string() == group)?;
        Some(Self::new(group, seed))
    }

    /// For how long it is watched.
    pub(super) fn time(&self) -> Duration {
        if self.slow.iter().any(|one| one.turns.is_some()) { LONG_TIME } else { TIME }
    }

    /// The faults with what they cost.
    pub(super) fn faults(&self) -> Vec<Costly> {
        let costly = |(slow, cost): (&Slow, f64)| {
            let is_due = cost >= MUST_COST && self.can_be_identified(slow.fault);
            Costly { slow: *slow, cost, is_due }
        };
        self.slow.iter().zip(self.costs()).map(costly).collect()
    }

    /// By which part a step is longer for each fault, beside the others: they may hide it.
    fn costs(&self) -> Vec<f64> {
        let all: Vec<(SimulatedFault, f64)> =
            self.slow.iter().map(|one| (one.fault, one.ratio)).collect();
        let with = self.step_us(&all);
        let costs = (0..all.len()).map(|place| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != place);
            let without = self.step_us(&others.map(|(_, one)| *one).collect::<Vec<_>>());
            (with - without) / with
        });
        costs.collect()
    }

    fn step_us(&self, faults: &[(SimulatedFault, f64)]) -> f64 {
        let program = self.traits.shape.program();
        let mut machine = OperationTimes::even(self.traits, &program);
        machine.break_down(faults);
        let mut clocks = vec![0.0; program.actions.len()];
        (0..STEPS_OF_COST).for_each(|_| drop(run(&program, &mut clocks, &mut machine)));
        clocks.into_iter().fold(0.0, f64::max) / STEPS_OF_COST as f64
    }

    /// Whether what is measured can distinguish a fault from everything else.
    fn can_be_identified(&self, fault: SimulatedFault) -> bool {
        let shape = self.traits.shape;
        match fault {
            SimulatedFault::Node(rank) => {
                let alike = shape.program().alike;
                let own = alike[rank as usize];
                let healthy = (0..).zip(&alike).filter(|(other, kind)| {
                    let is_faulty =
                        self.slow.iter().any(|one| one.fault == SimulatedFault::Node(*other));
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
    fn like(&self, link: SimulatedFault) -> Vec<(u32, u32)> {
        let alike = self.traits.shape.program().alike;
        let ends = |(from, to): (u32, u32)| (alike[from as usize], alike[to as usize]);
        let links = self.traits.shape.links();
        let own: Vec<_> =
            links.iter().filter(|one| link.touches(**one)).map(|one| ends(*one)).collect();
        links.into_iter().filter(|one| own.contains(&ends(*one))).collect()
    }

    fn is_slow(&self, link: (u32, u32)) -> bool {
        let faults = self.slow.iter().map(|one| one.fault);
        faults
            .into_iter()
            .any(|fault| !matches!(fault, SimulatedFault::Node(_)) && fault.touches(link))
    }

    /// Whether a link is one of a slow node of which most links are slow: then it is the node that is.
    fn is_of_a_slow_node(&self, link: SimulatedFault) -> bool {
        let links = self.traits.shape.links();
        let nodes = self.slow.iter().filter_map(|one| match one.fault {
            SimulatedFault::Node(node) => Some(node),
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
}

/// Whether both are links between the same two ranks.
fn is_one_link(one: SimulatedFault, other: SimulatedFault) -> bool {
    let ends = |fault| match fault {
        SimulatedFault::OneWay(from, to) | SimulatedFault::BothWays(from, to) => {
            Some((from.min(to), from.max(to)))
        }
        _ => None,
    };
    ends(one).is_some_and(|link| ends(other) == Some(link))
}

fn node(shape: StepShape, random: &mut Random) -> SimulatedFault {
    SimulatedFault::Node(u32::try_from(random.below(u64::from(shape.ranks()))).unwrap_or(0))
}

fn link(shape: StepShape, random: &mut Random) -> SimulatedFault {
    let links = shape.links();
    let (from, to) = links[random.index(links.len()).unwrap_or(0)];
    match links.contains(&(to, from)) && random.happens(0.5) {
        true => SimulatedFault::BothWays(from.min(to), from.max(to)),
        false => SimulatedFault::OneWay(from, to),
    }
}
