//! The fault suite: the cases, their scores, and the table of both.

use std::collections::BTreeSet;
use std::fmt;

use telltale_cluster::detection::Rule;
use telltale_cluster::verdict::Suspect;

use crate::faults::machine::{Noise, SimulatedFault, Topology};
use crate::faults::run::{Case, CaseOutcome, Knowable, WINDOWS_ALLOWED, knowable, run};
use crate::random::Random;

/// What is broken in a group of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Nothing.
    Nothing,
    /// Nodes.
    Nodes,
    /// Links, both ways.
    Links,
}

/// A group of cases that are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuiteGroup {
    /// Who talks to whom.
    pub topology: Topology,
    /// How many nodes.
    pub nodes: u32,
    /// What is broken.
    pub broken: Broken,
}

/// The groups of the suite with at most `most` nodes.
#[must_use]
pub fn groups(most: u32) -> Vec<SuiteGroup> {
    let mut groups = Vec::new();
    for topology in [Topology::Mesh, Topology::Ring, Topology::OneWayRing] {
        for broken in [Broken::Nothing, Broken::Nodes, Broken::Links] {
            for nodes in [2, 3, 4, 6, 8, 16, 32, 64].into_iter().filter(|nodes| *nodes <= most) {
                groups.push(SuiteGroup { topology, nodes, broken });
            }
        }
    }
    groups
}

/// The cases of a group: every share of broken parts up to a quarter (one at least), every factor,
/// every noise, `rounds` times.
#[must_use]
pub fn cases(group: SuiteGroup, rounds: u64) -> Vec<Case> {
    let SuiteGroup { topology, nodes, broken } = group;
    let pairs = topology.edges(0, nodes);
    let parts: Vec<SimulatedFault> = match broken {
        Broken::Nothing => Vec::new(),
        Broken::Nodes => (0..nodes).map(SimulatedFault::Node).collect(),
        Broken::Links => links(&pairs),
    };
    let quarter = (parts.len() / 4).max(1);
    let counts: BTreeSet<usize> = match broken {
        Broken::Nothing => BTreeSet::from([0]),
        _ => BTreeSet::from([1, quarter.div_ceil(2), quarter]),
    };
    let mut cases = Vec::new();
    for round in 0..rounds {
        for (number, count) in (0..).zip(&counts) {
            for (ratio, noise) in [
                (1.5_f64, Noise::CALM),
                (1.5, Noise::ROUGH),
                (3.0, Noise::CALM),
                (3.0, Noise::ROUGH),
            ] {
                let seed = 1_000_003 * round + 101 * u64::from(nodes) + number;
                let mut random = Random::new(seed ^ ratio.to_bits());
                let faults = draw(&parts, *count, &mut random);
                let faults = faults.into_iter().map(|fault| (fault, ratio)).collect();
                cases.push(Case { topology, nodes, faults, noise, seed: random.bits() });
            }
        }
    }
    cases
}

/// The links: both ways where there are two.
fn links(pairs: &[(u32, u32)]) -> Vec<SimulatedFault> {
    let all: BTreeSet<(u32, u32)> = pairs.iter().copied().collect();
    let link = |(from, to): &(u32, u32)| match all.contains(&(*to, *from)) {
        true => SimulatedFault::BothWays(*from.min(to), *from.max(to)),
        false => SimulatedFault::OneWay(*from, *to),
    };
    let links: BTreeSet<SimulatedFault> = all.iter().map(link).collect();
    links.into_iter().collect()
}

fn draw(parts: &[SimulatedFault], count: usize, random: &mut Random) -> Vec<SimulatedFault> {
    let mut left = parts.to_vec();
    let mut drawn = Vec::new();
    while let (true, Some(index)) = (drawn.len() < count, random.index(left.len())) {
        drawn.push(left.swap_remove(index));
    }
    drawn
}

/// The score of a group of cases, of one rule.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// Cases.
    pub cases: u32,
    /// Faults.
    pub faults: u32,
    /// Faults that could be known: they are in every smallest explanation.
    pub knowable: u32,
    /// Of these, those that were named in time.
    pub named: u32,
    /// Of these, those that were named too late or not at all.
    pub missed: u32,
    /// Faults that are in some smallest explanation and not in all.
    pub unsure: u32,
    /// Faults that could not be known, and were named alone in time all the same.
    pub guessed: u32,
    /// Suspects that were named, are healthy, and are in no way the smallest explanation.
    pub wrong: u32,
    /// Suspects that were named, are healthy, and are in every smallest explanation: several faults
    /// that look like fewer others.
    pub misled: u32,
    /// All healthy suspects who are in every smallest explanation, named or not.
    pub misled_at_best: u32,
    /// Parts of machines for which there are several smallest explanations.
    pub ambiguous_at_best: u32,
    /// Sets that were named because the data could not tell.
    pub ambiguous: u32,
    /// Of these, those that are not within such a part.
    pub ambiguous_beyond: u32,
    /// Cases with more explanations than can be tried; all faults count as knowable there.
    pub untried: u32,
    /// After how many windows faults were named, each.
    pub windows: Vec<u32>,
}

impl Score {
    /// Of those named, the share that is at fault (or looks so by every smallest explanation).
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.named + self.misled, self.named + self.misled + self.wrong)
    }

    /// Of the faults that could be known, the share that was named in time.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.named, self.named + self.missed)
    }

    /// Of those named, the share that is at fault, with nothing set apart.
    #[must_use]
    pub fn plain_precision(&self) -> f64 {
        let named = self.named + self.guessed;
        share(named, named + self.misled + self.wrong)
    }

    /// Of all faults, the share that was named in time, with nothing set apart.
    #[must_use]
    pub fn plain_recall(&self) -> f64 {
        share(self.named + self.guessed, self.faults)
    }

    /// The same of faults that are in no ambiguity set at best.
    #[must_use]
    pub fn recall_of_sure(&self) -> f64 {
        share(self.named, self.faults - self.unsure)
    }

    /// What these three would be for a detector that names every node in every smallest explanation of latencies
    /// without noise, and no others.
    #[must_use]
    pub fn at_best(&self) -> [f64; 3] {
        let named = self.knowable;
        let precision = share(named, named + self.misled_at_best);
        [precision, share(named, self.faults), share(named, self.faults - self.unsure)]
    }

    /// The number of windows after which `part` of 100 of the named faults were named.
    #[must_use]
    pub fn windows_for(&self, part: usize) -> Option<u32> {
        let mut windows = self.windows.clone();
        windows.sort_unstable();
        windows.get((windows.len() * part).div_ceil(100).checked_sub(1)?).copied()
    }

    /// Adds another score.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.faults += other.faults;
        self.knowable += other.knowable;
        self.named += other.named;
        self.missed += other.missed;
        self.unsure += other.unsure;
        self.guessed += other.guessed;
        self.wrong += other.wrong;
        self.misled += other.misled;
        self.misled_at_best += other.misled_at_best;
        self.ambiguous_at_best += other.ambiguous_at_best;
        self.ambiguous += other.ambiguous;
        self.ambiguous_beyond += other.ambiguous_beyond;
        self.untried += other.untried;
        self.windows.extend(&other.windows);
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

/// Runs and scores one case.
#[must_use]
pub fn score_case(case: &Case, rule: Rule, best: Option<&Knowable>) -> Score {
    let outcome = run(case, rule);
    let mut score = judge(case, &outcome, best);
    score.cases = 1;
    score
}

fn judge(case: &Case, outcome: &CaseOutcome, best: Option<&Knowable>) -> Score {
    let faults: BTreeSet<Suspect> = case.faults.iter().map(|(fault, _)| fault.suspect()).collect();
    let everything = Knowable { certain: faults.clone(), unsure: Vec::new() };
    let at_best = best.unwrap_or(&everything);
    let mut score = Score {
        faults: count(faults.len()),
        ambiguous_at_best: count(at_best.unsure.len()),
        ambiguous: count(outcome.ambiguous.len()),
        untried: u32::from(best.is_none()),
        ..Score::default()
    };
    let in_time = |fault: &Suspect| {
        let window = outcome.named.get(fault).copied();
        window.filter(|window| (1..=WINDOWS_ALLOWED).contains(window))
    };
    for fault in faults.intersection(&at_best.certain) {
        score.knowable += 1;
        match in_time(fault) {
            Some(window) => {
                score.named += 1;
                score.windows.push(window);
            }
            None => score.missed += 1,
        }
    }
    for fault in faults.difference(&at_best.certain) {
        score.guessed += u32::from(in_time(fault).is_some());
        score.unsure += u32::from(at_best.unsure.iter().any(|part| part.contains(fault)));
    }
    score.misled_at_best = count(at_best.certain.difference(&faults).count());
    for (suspect, _) in outcome.named.iter().filter(|(suspect, _)| !faults.contains(suspect)) {
        if at_best.certain.contains(suspect) {
            score.misled += 1;
        } else {
            score.wrong += 1;
        }
    }
    let is_within = |set: &&Vec<Suspect>| {
        at_best
            .unsure
            .iter()
            .any(|part| set.len() == part.len() && set.iter().all(|suspect| part.contains(suspect)))
    };
    score.ambiguous_beyond = count(outcome.ambiguous.iter().filter(|set| !is_within(set)).count());
    score
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a case has fewer than 2^32 of anything")
}

/// One line of the table: a group by our rule and by the original's.
#[derive(Debug, Clone)]
pub struct SuiteLine {
    /// The group; `None` for the sum of all.
    pub group: Option<SuiteGroup>,
    /// By own history and smallest explanation.
    pub ours: Score,
    /// By mean + 2σ, on the same data.
    pub original: Score,
}

/// Runs groups of cases, and adds a line for all.
#[must_use]
pub fn table(groups: &[SuiteGroup], rounds: u64) -> Vec<SuiteLine> {
    let mut lines = Vec::new();
    let mut sum = SuiteLine { group: None, ours: Score::default(), original: Score::default() };
    for group in groups {
        let mut line =
            SuiteLine { group: Some(*group), ours: Score::default(), original: Score::default() };
        for case in cases(*group, rounds) {
            let best = knowable(&case);
            line.ours.add(&score_case(&case, Rule::OwnHistory, best.as_ref()));
            line.original.add(&score_case(&case, Rule::MeanTwoSigma, best.as_ref()));
        }
        sum.ours.add(&line.ours);
        sum.original.add(&line.original);
        lines.push(line);
    }
    lines.push(sum);
    lines
}

/// The head of the table, in Markdown.
pub const HEAD: &str = "\
| cases | faults | knowable | precision | recall | windows, median and most | wrong | ambiguous: \
named / at best | misled | mean + 2σ: precision | recall | wrong |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|";

impl fmt::Display for SuiteLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, original) = (&self.ours, &self.original);
        match self.group {
            Some(SuiteGroup { topology, nodes, broken }) => {
                let broken = match broken {
                    Broken::Nothing => "healthy",
                    Broken::Nodes => "slow nodes",
                    Broken::Links => "slow links",
                };
                let topology = match topology {
                    Topology::Mesh => "mesh",
                    Topology::Ring => "ring",
                    Topology::OneWayRing => "one-way ring",
                };
                write!(formatter, "| {} of {topology} {nodes}, {broken} ", ours.cases)?;
            }
            None => write!(formatter, "| {} in all ", ours.cases)?,
        }
        let windows = |part| ours.windows_for(part).map_or("-".to_owned(), |one| one.to_string());
        write!(
            formatter,
            "| {} | {} | {:.4} | {:.4} | {}, {} | {} | {} / {} | {} | {:.2} | {:.2} | {} |",
            ours.faults,
            ours.knowable,
            ours.precision(),
            ours.recall(),
            windows(50),
            windows(100),
            ours.wrong,
            ours.ambiguous,
            ours.ambiguous_at_best,
            ours.misled,
            original.precision(),
            original.recall(),
            original.wrong,
        )
    }
}
