//! What is known of the processors of ranks: how much of the time each wanted one and had none.

use std::collections::BTreeMap;

use crate::spread::{average, middle};

/// Fewer reports of a rank tell nothing.
const ENOUGH_REPORTS: usize = 3;

/// Of each rank of which there are reports, which part of the time a processor was withheld from it.
#[derive(Debug, Clone, Default)]
pub struct Processors {
    of_ranks: BTreeMap<u32, Option<Withheld>>,
}

/// Which part of the time a processor is withheld from a rank.
#[derive(Debug, Clone, Copy)]
struct Withheld {
    /// Nearly always so much at least: what is withheld for a moment is no fault.
    lasting: f64,
    mean: f64,
}

impl Processors {
    /// Adds a rank, with the parts that its latest reports tell, each from 0 to 1.
    pub fn add(&mut self, rank: u32, mut parts: Vec<f64>) {
        let known = (parts.len() >= ENOUGH_REPORTS).then(|| {
            let mean = average(&parts);
            parts.sort_unstable_by(f64::total_cmp);
            Withheld { lasting: parts[1], mean }
        });
        self.of_ranks.insert(rank, known);
    }

    /// Which part of the time at least a processor is nearly always withheld from a rank; nothing where too little is
    /// known.
    pub(crate) fn lasting(&self, rank: u32) -> Option<f64> {
        self.of_ranks.get(&rank)?.map(|one| one.lasting)
    }

    /// By how much that is more than of the rank in the middle, of all that are known: on hosts that are busy for all
    /// ranks none is at fault. Empty where there is nothing to compare with.
    pub(crate) fn lasting_excess(&self) -> impl Iterator<Item = (u32, f64)> {
        let all = self.known(|one| one.lasting);
        let usual = usual(&all);
        all.into_iter().filter_map(move |(rank, part)| Some((rank, part - usual?)))
    }

    /// Whether what a rank sends and receives may be slow since it lacks a processor at times: one of which too little is
    /// known yet, or from which `part` more of the time is withheld than from the rank in the middle. Of a rank without
    /// reports that will not be known.
    pub(crate) fn may_lack(&self, rank: u32, part: f64) -> bool {
        match self.of_ranks.get(&rank) {
            None => false,
            Some(None) => true,
            Some(Some(own)) => {
                usual(&self.known(|one| one.mean)).is_some_and(|usual| own.mean - usual >= part)
            }
        }
    }

    fn known(&self, of: impl Fn(&Withheld) -> f64) -> Vec<(u32, f64)> {
        self.of_ranks.iter().filter_map(|(rank, one)| Some((*rank, of(one.as_ref()?)))).collect()
    }
}

/// The part of the rank in the middle; nothing where there are fewer than two.
fn usual(all: &[(u32, f64)]) -> Option<f64> {
    let mut parts: Vec<f64> = all.iter().map(|(_, part)| *part).collect();
    (parts.len() >= 2).then(|| middle(&mut parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[&[f64]]) -> Processors {
        let mut processors = Processors::default();
        (0..).zip(all).for_each(|(rank, parts)| processors.add(rank, parts.to_vec()));
        processors
    }

    #[test]
    fn what_is_withheld_for_a_moment_does_not_last() {
        let all = of(&[&[0.0, 0.0, 0.9], &[0.5, 0.4, 0.0], &[0.0; 3], &[0.0; 3], &[0.0; 3]]);
        assert_eq!([0, 1, 2].map(|rank| all.lasting(rank)), [Some(0.0), Some(0.4), Some(0.0)]);
        let excess: Vec<(u32, f64)> = all.lasting_excess().collect();
        assert_eq!(excess, [(0, 0.0), (1, 0.4), (2, 0.0), (3, 0.0), (4, 0.0)]);
        // But may be why a transfer is slow.
        assert_eq!([0, 1, 2].map(|rank| all.may_lack(rank, 0.1)), [true, true, false]);
    }

    #[test]
    fn ranks_that_lack_as_much_as_all_are_compared_with_these() {
        let all = of(&[&[0.4; 3], &[0.4; 3], &[0.45; 3], &[0.8; 3]]);
        assert_eq!([0, 1, 2, 3].map(|rank| all.may_lack(rank, 0.1)), [false, false, false, true]);
    }

    #[test]
    fn a_rank_may_lack_a_processor_until_enough_is_known() {
        let all = of(&[&[0.0; 3], &[0.0; 3], &[0.0; 2]]);
        assert_eq!([0, 1, 2, 3].map(|rank| all.may_lack(rank, 0.1)), [false, false, true, false]);
        assert_eq!(all.lasting(2), None);
    }
}
