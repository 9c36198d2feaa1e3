//! The smallest explanations of what is slow, all of them: an exact search.
//!
//! A suspect can account for at most the slowness that all of its edges share. An explanation is a
//! set of suspects who together account for every slow edge; of two, the smaller is better. Whether
//! there are several equally small ones is the question that decides over ambiguity, so all are
//! listed. The search is bounded by work done, and says when it was cut short. It knows nothing of
//! nodes and links, only numbers.

/// Edge visits that one search may make: some ten milliseconds.
const MAX_WORK: usize = 4_000_000;
/// Equally small explanations that are listed.
pub(super) const MAX_EXPLANATIONS: usize = 64;

/// One edge that must be accounted for.
#[derive(Debug, Clone)]
pub(super) struct Slow {
    /// How much there is to account for.
    pub(super) demand: f32,
    /// The suspects that can contribute, by number, each once.
    pub(super) suspects: Vec<u32>,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Explanations {
    /// The smallest explanations: sorted numbers of suspects. Never empty when there is an edge.
    pub(super) smallest: Vec<Vec<u32>>,
    /// Whether there may be more, or smaller ones.
    pub(super) cut_short: bool,
}

/// All smallest sets of suspects that account for every edge of `slow`, where suspect `number` can
/// contribute `supplies[number]`. Suspects that cannot account for an edge even together are taken
/// as doing so: the data has no better.
pub(super) fn smallest(slow: &[Slow], supplies: &[f32]) -> Explanations {
    let greedy = greedy(slow, supplies);
    let mut search = Search {
        slow,
        supplies,
        open: vec![true; supplies.len()],
        chosen: Vec::new(),
        best: greedy.len(),
        found: Vec::new(),
        work_left: MAX_WORK,
        cut_short: false,
        marks: vec![0; supplies.len()],
        mark: 0,
    };
    search.descend();
    let (mut found, cut_short) = (search.found, search.cut_short);
    if found.is_empty() {
        found.push(greedy);
    }
    found.iter_mut().for_each(|one| one.sort_unstable());
    found.sort_unstable();
    Explanations { smallest: found, cut_short }
}

/// An explanation that is small, though maybe not smallest: the suspect with most open edges first.
fn greedy(slow: &[Slow], supplies: &[f32]) -> Vec<u32> {
    let mut chosen: Vec<u32> = Vec::new();
    loop {
        let mut gains = vec![0_usize; supplies.len()];
        for edge in slow.iter().filter(|edge| !is_met(edge, &chosen, supplies)) {
            for suspect in edge.suspects.iter().filter(|one| !chosen.contains(one)) {
                gains[index(*suspect)] += 1;
            }
        }
        // The first of equals, so that the same data gives the same answer.
        let best = (0..).zip(&gains).max_by_key(|(number, gain)| (**gain, u32::MAX - *number));
        match best {
            Some((number, gain)) if *gain > 0 => chosen.push(number),
            _ => return chosen,
        }
    }
}

/// Whether the chosen suspects account for the edge, or no other can.
fn is_met(edge: &Slow, chosen: &[u32], supplies: &[f32]) -> bool {
    let mut given = 0.0;
    let mut left = false;
    for suspect in &edge.suspects {
        if chosen.contains(suspect) {
            given += supplies[index(*suspect)];
        } else {
            left = true;
        }
    }
    given >= edge.demand || !left
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("a number of a suspect fits in a usize")
}

struct Search<'a> {
    slow: &'a [Slow],
    supplies: &'a [f32],
    /// Suspects that may still be chosen: neither chosen nor ruled out further up.
    open: Vec<bool>,
    chosen: Vec<u32>,
    best: usize,
    found: Vec<Vec<u32>>,
    work_left: usize,
    cut_short: bool,
    /// Suspects that the present bound has used are those whose mark is `mark`.
    marks: Vec<u32>,
    mark: u32,
}

/// What is left to do at one point of the search.
struct Outlook {
    /// The unmet edge with the fewest open suspects, if one is unmet.
    narrowest: Option<usize>,
    /// Suspects that must be added at least; `None` when an edge cannot be met any more.
    bound: Option<usize>,
}

impl Search<'_> {
    fn descend(&mut self) {
        let outlook = self.outlook();
        let Some(edge) = outlook.narrowest else {
            self.keep();
            return;
        };
        let Some(bound) = outlook.bound else { return };
        if self.chosen.len() + bound > self.best || self.cut_short {
            return;
        }
        let slow = self.slow;
        let branches: Vec<u32> =
            slow[edge].suspects.iter().copied().filter(|one| self.open[index(*one)]).collect();
        // Who was tried is ruled out for the branches after it, so no set is found twice.
        for suspect in &branches {
            self.open[index(*suspect)] = false;
            self.chosen.push(*suspect);
            self.descend();
            self.chosen.pop();
        }
        for suspect in branches {
            self.open[index(suspect)] = true;
        }
    }

    fn keep(&mut self) {
        if self.chosen.len() < self.best {
            self.best = self.chosen.len();
            self.found.clear();
        }
        if self.chosen.len() == self.best {
            if self.found.len() < MAX_EXPLANATIONS {
                self.found.push(self.chosen.clone());
            } else {
                self.cut_short = true;
            }
        }
    }

    /// Edges that share no open suspect each need one of their own: their number bounds the rest.
    fn outlook(&mut self) -> Outlook {
        let slow = self.slow;
        if self.work_left < slow.len() {
            self.cut_short = true;
        }
        self.work_left = self.work_left.saturating_sub(slow.len());
        self.mark += 1;
        let (mut bound, mut narrowest, mut fewest) = (0, None, usize::MAX);
        let mut possible = true;
        for (number, edge) in slow.iter().enumerate() {
            if self.is_edge_met(edge) {
                continue;
            }
            let open = edge.suspects.iter().filter(|one| self.open[index(**one)]).count();
            possible &= open > 0;
            if open < fewest {
                (fewest, narrowest) = (open, Some(number));
            }
            let mark = self.mark;
            let shares = |one: &&u32| self.open[index(**one)] && self.marks[index(**one)] == mark;
            if edge.suspects.iter().find(shares).is_none() {
                bound += 1;
                edge.suspects.iter().for_each(|one| self.marks[index(*one)] = mark);
            }
        }
        Outlook { narrowest, bound: possible.then_some(bound) }
    }

    fn is_edge_met(&self, edge: &Slow) -> bool {
        let chosen = edge.suspects.iter().filter(|one| self.chosen.contains(one));
        let given: f32 = chosen.map(|one| self.supplies[index(*one)]).sum();
        given >= edge.demand
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(demand: f32, suspects: &[u32]) -> Slow {
        Slow { demand, suspects: suspects.to_vec() }
    }

    fn check(slow: &[Slow], supplies: &[f32], expected: &[&[u32]]) {
        let found = smallest(slow, supplies);
        assert_eq!(found.smallest, expected);
        assert!(!found.cut_short);
    }

    #[test]
    fn one_suspect_for_two_edges_is_smaller_than_one_each() {
        check(&[edge(1.0, &[0, 1]), edge(1.0, &[0, 2])], &[1.0; 3], &[&[0]]);
    }

    #[test]
    fn three_edges_in_a_row_have_two_smallest_explanations() {
        // Nodes 0 and 1 between edges a, b, c; links 2, 3, 4.
        let slow = [edge(1.0, &[0, 2]), edge(1.0, &[0, 1, 3]), edge(1.0, &[1, 4])];
        check(&slow, &[1.0; 5], &[&[0, 1], &[0, 4], &[1, 2]]);
    }

    #[test]
    fn an_edge_may_need_two() {
        let slow = [edge(1.0, &[0]), edge(2.0, &[0, 1]), edge(1.0, &[1])];
        check(&slow, &[1.0, 1.0], &[&[0, 1]]);
    }

    #[test]
    fn nothing_slow_needs_nobody() {
        check(&[], &[1.0], &[&[]]);
    }

    #[test]
    fn a_search_that_is_too_large_reports_it() {
        // Each edge has two suspects of its own, so there are 2^20 smallest explanations.
        let slow: Vec<Slow> = (0..20).map(|pair| edge(1.0, &[2 * pair, 2 * pair + 1])).collect();
        let found = smallest(&slow, &[1.0; 40]);
        assert!(found.cut_short);
        assert_eq!(found.smallest.len(), MAX_EXPLANATIONS);
    }
}
