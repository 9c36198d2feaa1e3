//! Whether those who were named are at fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use telltale_cluster::verdict::Suspect;

use super::case::{Case, Costly};
use super::score::{Score, Tally};
use crate::faults::machine::SimulatedFault;

/// What was said of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedSuspects {
    /// When, in seconds of the job.
    pub at_seconds: f64,
    /// Who is suspected; several where it is not known which.
    pub suspects: Vec<Suspect>,
    /// How sure it is, where it is said.
    pub confidence: Option<f64>,
}

/// Whether a suspect is one side of a node whose links that way are all at fault.
fn is_slow_side(suspect: &Suspect, case: &Case) -> bool {
    let links = case.traits.shape.links();
    let faults: Vec<SimulatedFault> = case.slow.iter().map(|one| one.fault).collect();
    (0..case.traits.shape.ranks()).any(|rank| {
        let sides = [
            (
                SimulatedFault::Sender(rank),
                links.iter().filter(|ends| ends.0 == rank).collect::<Vec<_>>(),
            ),
            (SimulatedFault::Receiver(rank), links.iter().filter(|ends| ends.1 == rank).collect()),
        ];
        sides.iter().any(|(side, links)| {
            let is_slow = |ends: &&(u32, u32)| faults.iter().any(|fault| fault.touches(**ends));
            *suspect == side.suspect() && links.len() > 1 && links.iter().all(is_slow)
        })
    })
}

/// Whether a suspect is such a side, and a link is one of its.
fn is_side_with(suspect: &Suspect, link: SimulatedFault, case: &Case) -> bool {
    let ends = match link {
        SimulatedFault::OneWay(from, to) | SimulatedFault::BothWays(from, to) => [from, to],
        _ => return false,
    };
    let sides = ends
        .into_iter()
        .flat_map(|node| [SimulatedFault::Sender(node), SimulatedFault::Receiver(node)]);
    sides.into_iter().any(|side| *suspect == side.suspect()) && is_slow_side(suspect, case)
}

/// Whether a suspect is at fault, or a part of it.
fn is_of(suspect: &Suspect, fault: SimulatedFault) -> bool {
    let one_way = match fault {
        SimulatedFault::BothWays(one, other) => [(one, other), (other, one)]
            .map(|(from, to)| SimulatedFault::OneWay(from, to).suspect())
            .contains(suspect),
        _ => false,
    };
    one_way || *suspect == fault.suspect()
}

/// The score of one job, by what was said of it.
pub(super) fn judge(case: &Case, said: &[NamedSuspects]) -> Score {
    let faults = case.faults();
    let mut score = Score { jobs: 1, ..Score::default() };
    let mut wrong = Vec::new();
    let mut right_said: BTreeMap<&[Suspect], bool> = BTreeMap::new();
    for one in said {
        let right = one.suspects.iter().any(|suspect| is_right(suspect, &faults, case));
        if let Some(confidence) = one.confidence {
            let tenth = (confidence * 10.0).floor().clamp(0.0, 9.0) as u32;
            let (all, of_them) = score.confidence.entry(tenth).or_default();
            *all += 1;
            *of_them += u32::from(right);
        }
        if !right {
            wrong.push(one.to_string());
        }
        right_said.insert(&one.suspects, right);
    }
    score.ours.named = right_said.len() as u32;
    score.ours.right = right_said.values().filter(|right| **right).count() as u32;
    let mut missed = Vec::new();
    for Costly { slow, cost, .. } in faults.iter().filter(|one| one.is_due) {
        score.ours.due += 1;
        let naming = said.iter().filter(|one| {
            matches!(&one.suspects[..], [suspect]
                if is_of(suspect, slow.fault) || is_side_with(suspect, slow.fault, case))
        });
        match naming.map(|one| one.at_seconds).reduce(f64::min) {
            Some(at) => {
                score.ours.found += 1;
                score.seconds.push((at - slow.from.as_secs_f64()).max(0.0));
            }
            None => missed.push(format!("{:?} costs {:.0} %", slow.fault, 100.0 * cost)),
        }
    }
    if !wrong.is_empty() || !missed.is_empty() {
        let faults: Vec<String> = faults
            .iter()
            .map(|one| {
                let Costly { slow, cost, .. } = one;
                format!("{:?} {} times, {:.0} %", slow.fault, slow.ratio, 100.0 * cost)
            })
            .collect();
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        score.notes.push(format!(
            "{case}: {faults:?}, tcp {}; missed {missed:?}; wrong {wrong:?}; all {said:?}",
            case.traits.has_tcp
        ));
    }
    score
}

/// The same of a rule that names faults, without a time.
pub(super) fn tally(case: &Case, named: &BTreeSet<SimulatedFault>) -> Tally {
    let faults = case.faults();
    let is_right = |fault: &&SimulatedFault| is_right(&fault.suspect(), &faults, case);
    let due: Vec<&Costly> = faults.iter().filter(|one| one.is_due).collect();
    let is_found =
        |one: &&&Costly| named.iter().any(|fault| is_of(&fault.suspect(), one.slow.fault));
    Tally {
        named: named.len() as u32,
        right: named.iter().filter(is_right).count() as u32,
        due: due.len() as u32,
        found: due.iter().filter(is_found).count() as u32,
    }
}

fn is_right(suspect: &Suspect, faults: &[Costly], case: &Case) -> bool {
    faults.iter().any(|one| is_of(suspect, one.slow.fault)) || is_slow_side(suspect, case)
}

impl fmt::Display for NamedSuspects {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.suspects.iter().map(ToString::to_string).collect();
        write!(to, "[{}] at {:.0} s", names.join(" or "), self.at_seconds)
    }
}
