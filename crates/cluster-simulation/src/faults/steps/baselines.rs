//! Usual rules for who is slow, for comparison: they know what each rank computed and each transfer took, over all steps.

use std::collections::{BTreeMap, BTreeSet};

use super::run::{Done, RunSubject};
use crate::faults::machine::SimulatedFault;

/// How a number that is too large is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Baseline {
    /// Beyond the mean and two standard deviations, as the original has it.
    MeanTwoSigma,
    /// Beyond the median and three median absolute deviations, scaled to standard deviations.
    MedianDeviation,
    /// The largest, if it is a tenth beyond the median.
    Slowest,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::MeanTwoSigma, Self::MedianDeviation, Self::Slowest];

    /// What the table calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MeanTwoSigma => "mean + 2 sigma",
            Self::MedianDeviation => "median + 3 MAD",
            Self::Slowest => "the slowest",
        }
    }

    /// Nodes by how long they compute, and links by how long their transfers take.
    pub(super) fn named(self, all: &[Done]) -> BTreeSet<SimulatedFault> {
        let (mut nodes, mut links) = (BTreeMap::new(), BTreeMap::new());
        for one in all {
            let us = one.end_us - one.start_us;
            match one.what {
                RunSubject::Compute(_) => add(&mut nodes, one.rank, us),
                RunSubject::Received { from } => add(&mut links, (from, one.rank), us),
                RunSubject::Sent { .. } | RunSubject::Collective(_) => {}
            }
        }
        let nodes = self.outliers(&nodes).into_iter().map(SimulatedFault::Node);
        let links =
            self.outliers(&links).into_iter().map(|(from, to)| SimulatedFault::OneWay(from, to));
        nodes.chain(links).collect()
    }

    fn outliers<Key: Copy + Ord>(self, sums: &BTreeMap<Key, (f64, f64)>) -> Vec<Key> {
        let means: Vec<(Key, f64)> =
            sums.iter().map(|(key, (sum, count))| (*key, sum / count)).collect();
        let values: Vec<f64> = means.iter().map(|one| one.1).collect();
        let Some(median) = median(values.clone()) else { return Vec::new() };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance =
            values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / values.len() as f64;
        let bound = match self {
            Self::MeanTwoSigma => mean + 2.0 * variance.sqrt(),
            Self::MedianDeviation => {
                let deviations = values.iter().map(|one| (one - median).abs()).collect();
                median + 3.0 * 1.4826 * self::median(deviations).unwrap_or(0.0)
            }
            Self::Slowest => {
                let most = values.iter().copied().fold(0.0, f64::max);
                (1.1 * median).max(most * 0.999_999)
            }
        };
        means.into_iter().filter(|one| one.1 > bound).map(|one| one.0).collect()
    }
}

fn add<Key: Ord>(sums: &mut BTreeMap<Key, (f64, f64)>, key: Key, us: f64) {
    let (sum, count) = sums.entry(key).or_default();
    *sum += us;
    *count += 1.0;
}

/// Of an even number the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}
