//! One case: a machine learns what is usual, breaks down, and the detector looks each window.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use telltale_cluster::detection::{DetectionSettings, Detector, Rule};
use telltale_cluster::observation::Observation;
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects};

use crate::faults::machine::{Noise, SimulatedFault, SyntheticMachine, Topology, name, ranks};
use crate::faults::oracle::{self, Smallest};

/// Windows before anything breaks down: more than a baseline is made from.
pub const HEALTHY_WINDOWS: u32 = 45;
/// Windows in which a fault must be named.
pub const WINDOWS_ALLOWED: u32 = 10;
/// Windows that are checked after the fault begins.
pub const FAULTY_WINDOWS: u32 = 20;

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Who talks to whom.
    pub topology: Topology,
    /// How many nodes.
    pub nodes: u32,
    /// What breaks down, and by which factors.
    pub faults: Vec<(SimulatedFault, f64)>,
    /// The noise.
    pub noise: Noise,
    /// The machine's seed.
    pub seed: u64,
}

/// What the detector said of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseOutcome {
    /// Each suspect that was named alone, and in which window of the fault it was first; 0 if before.
    pub named: BTreeMap<Suspect, u32>,
    /// Each set that was named because the data could not tell.
    pub ambiguous: BTreeSet<Vec<Suspect>>,
}

/// What could be known of a case at best.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knowable {
    /// Suspects in every smallest explanation.
    pub certain: BTreeSet<Suspect>,
    /// Suspects in some, by part.
    pub unsure: Vec<BTreeSet<Suspect>>,
}

/// A mistake in what detection is given, to see that it would be found.
pub type Distortion = fn(&[Observation]) -> Vec<Observation>;

/// Lets the detector look at a case.
#[must_use]
pub fn run(case: &Case, rule: Rule) -> CaseOutcome {
    run_distorted(case, rule, None)
}

/// The same, with a mistake in what the nodes report.
#[must_use]
pub fn run_distorted(case: &Case, rule: Rule, distortion: Option<Distortion>) -> CaseOutcome {
    let pairs = case.topology.edges(0, case.nodes);
    let mut machine = SyntheticMachine::new(case.nodes, &[pairs], case.noise, case.seed);
    let mut detector = Detector::new(DetectionSettings { rule, ..DetectionSettings::default() });
    let mut now = Moment::default();
    detector.set_ranks(now, &ranks(case.nodes));
    let mut outcome = CaseOutcome::default();
    for window in 0..HEALTHY_WINDOWS + FAULTY_WINDOWS {
        if window == HEALTHY_WINDOWS {
            machine.break_down(&case.faults);
        }
        now = now.after(Duration::from_secs(1));
        let reports = machine.window();
        let distorted = distortion.map(|distort| distort(reports));
        for (node, observation) in (0..).zip(distorted.as_deref().unwrap_or(reports)) {
            detector.observe(now, &name(node), observation);
        }
        let of_fault = (window + 1).saturating_sub(HEALTHY_WINDOWS);
        for verdict in detector.evaluate(now) {
            match verdict.suspects {
                Suspects::One(suspect) => drop(outcome.named.entry(suspect).or_insert(of_fault)),
                Suspects::Ambiguous(suspects) => drop(outcome.ambiguous.insert(suspects)),
            }
        }
    }
    outcome
}

/// What could be known of a case at best; `None` when that is too much to try.
#[must_use]
pub fn knowable(case: &Case) -> Option<Knowable> {
    let pairs: BTreeSet<(u32, u32)> = case.topology.edges(0, case.nodes).into_iter().collect();
    let parts = oracle::explanations(&pairs, &case.faults)?;
    let mut knowable = Knowable::default();
    for part in parts {
        let (certain, unsure) = split(&part);
        knowable.certain.extend(certain.into_iter().map(SimulatedFault::suspect));
        for apart in apart(unsure, &pairs, &case.faults) {
            knowable.unsure.push(apart.into_iter().map(SimulatedFault::suspect).collect());
        }
    }
    Some(knowable)
}

/// What is in all explanations of a part, and what is in some.
fn split(part: &Smallest) -> (BTreeSet<SimulatedFault>, BTreeSet<SimulatedFault>) {
    let all: BTreeSet<SimulatedFault> = part.iter().flatten().copied().collect();
    all.into_iter().partition(|fault| part.iter().all(|set| set.contains(fault)))
}

/// Sets of suspects that share no slow edge: what is unsure about one says nothing of the other.
fn apart(
    unsure: BTreeSet<SimulatedFault>,
    pairs: &BTreeSet<(u32, u32)>,
    faults: &[(SimulatedFault, f64)],
) -> Vec<BTreeSet<SimulatedFault>> {
    let mut sets: Vec<BTreeSet<SimulatedFault>> =
        unsure.into_iter().map(|fault| BTreeSet::from([fault])).collect();
    let is_slow = |pair: &&(u32, u32)| faults.iter().any(|(fault, _)| fault.touches(**pair));
    for pair in pairs.iter().filter(is_slow) {
        let (touching, mut others): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|set| set.iter().any(|fault| fault.touches(*pair)));
        others.extend(touching.into_iter().reduce(|joined, one| &joined | &one));
        sets = others;
    }
    sets
}
