//! A rank whose records are not true: of others nothing wrong may come.

use serde_json::{Value, json};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::Observation;
use telltale_cluster::policy::Mode;

use super::case::Case;
use super::job::Steps;
use crate::faults::machine::{SimulatedFault, name};
use crate::faults::week::{Workload, check_job};
use crate::random::Random;

/// How the records of a rank are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Its operations began long before they did.
    Longer,
    /// Its operations began when they ended.
    Shorter,
    /// In some seconds it is an hour ahead.
    Future,
    /// Its steps have numbers that jump.
    Steps,
    /// They are said to be of other ranks.
    OtherRanks,
    /// Half of them are missing.
    Fewer,
    /// Lines that are no records stand between them.
    Garbage,
}

impl Lie {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Longer,
        Self::Shorter,
        Self::Future,
        Self::Steps,
        Self::OtherRanks,
        Self::Fewer,
        Self::Garbage,
    ];
}

const HOUR_US: i64 = 3_600_000_000;
/// How much longer operations are said to have taken.
const LONGER_US: i64 = 500_000;

/// Lets the coordinator act on a job in which one rank lies, with spares at hand. Gives the nodes of other ranks that were
/// replaced, and how many records were refused.
#[must_use]
pub fn replaced_by_lies(case: &Case, liar: u32, lie: Lie) -> (Vec<NodeName>, usize) {
    let ranks = case.traits.shape.ranks();
    let job = Steps::new(case.traits, false, case.seed);
    let mut refused = 0;
    let lying = Lying { job, liar, lie, random: Random::new(case.seed ^ 9), refused: &mut refused };
    let outcome = check_job(&case.plan(case.time(), Mode::Act, ranks), lying);
    // Spares are said to lie too, once they have the liar's place.
    let is_other = |node: &NodeName| (0..ranks).any(|rank| rank != liar && name(rank) == *node);
    (outcome.barred.into_iter().filter(is_other).collect(), refused)
}

#[derive(Debug)]
struct Lying<'a> {
    job: Steps,
    liar: u32,
    lie: Lie,
    random: Random,
    refused: &'a mut usize,
}

impl Lying<'_> {
    fn falsified(&mut self, records: Vec<String>) -> Vec<String> {
        let is_ahead = self.random.happens(0.2);
        let mut falsified = Vec::new();
        for text in records {
            let mut record: Value = serde_json::from_str(&text).expect("a record is JSON");
            let times = [record["startTime"].as_i64(), record["endTime"].as_i64()];
            match (self.lie, times) {
                (Lie::Longer, [Some(start), _]) => record["startTime"] = json!(start - LONGER_US),
                (Lie::Shorter, [_, Some(end)]) => record["startTime"] = json!(end - 1),
                (Lie::Future, [Some(start), Some(end)]) if is_ahead => {
                    record["startTime"] = json!(start + HOUR_US);
                    record["endTime"] = json!(end + HOUR_US);
                }
                (Lie::Steps, _) if self.random.happens(0.1) && record["step"].is_u64() => {
                    record["step"] = json!(self.random.below(1 << 40));
                }
                (Lie::OtherRanks, _) if self.random.happens(0.5) => {
                    record["global_rank"] = json!(self.random.below(64));
                }
                (Lie::Fewer, _) if self.random.happens(0.5) => continue,
                (Lie::Garbage, _) if self.random.happens(0.1) => {
                    falsified.push(text.chars().rev().collect());
                }
                _ => {}
            }
            falsified.push(record.to_string());
        }
        falsified
    }
}

impl Workload for Lying<'_> {
    fn restart(&mut self) {
        self.job.restart();
    }

    fn break_down(&mut self, faults: &[(SimulatedFault, f64)]) {
        self.job.break_down(faults);
    }

    fn go_on(&mut self, step: u64) {
        self.job.go_on(step);
    }

    fn report(&mut self, rank: u32) -> Observation {
        if rank != self.liar {
            return self.job.report(rank);
        }
        let mut second = self.job.second(rank);
        second.records = self.falsified(second.records);
        let intake = self.job.intake(rank);
        *self.refused += second.post(intake);
        second.seen(rank..rank + 1, intake)
    }
}
