//! Failed workers: who failed first, and who only because of it.
//!
//! When one worker dies, the collectives of all others raise, and they fail within milliseconds. So
//! failures are collected for a moment. How a worker ended may tell that it is a cause
//! ([`WorkerEnd::is_cause`]); among all others only time can tell.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::observation::WorkerEnd;
use crate::rank::Rank;
use crate::time::Moment;
use crate::verdict::{Evidence, MAX_EVIDENCE, VerdictKind};

/// How much earlier than all others a failure must be to count as the cause: what the network does
/// to the time of a report is less, and a survivor needs longer to notice, raise and end.
const LEAD: Duration = Duration::from_millis(20);
/// The confidence of a cause that only time reports.
const CONFIDENCE_BY_TIME: f64 = 0.7;

#[derive(Debug, Clone, Copy)]
struct WorkerFailure {
    node: u32,
    end: WorkerEnd,
    at: Moment,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Crashes {
    failures: BTreeMap<Rank, WorkerFailure>,
    first_heard: Option<Moment>,
}

impl Crashes {
    /// A new epoch begins.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// A worker failed `age` before `now`. Later reports of the same failure change nothing.
    pub(super) fn failed(
        &mut self,
        now: Moment,
        node: u32,
        rank: Rank,
        end: WorkerEnd,
        age: Duration,
    ) {
        let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        let at = Moment::from_ns(now.as_ns().saturating_sub(age_ns));
        self.failures.entry(rank).or_insert(WorkerFailure { node, end, at });
        self.first_heard.get_or_insert(now);
    }

    /// When the first worker failed, by the age that its node gives.
    pub(super) fn first(&self) -> Option<Moment> {
        self.failures.values().map(|one| one.at).min()
    }

    /// The causes: at once where the way of ending reports, else when `settling` has passed.
    pub(super) fn findings(&self, now: Moment, settling: Duration) -> Vec<DetectorFinding> {
        let causes = self.certain();
        if causes.is_empty() { self.by_time(now, settling).into_iter().collect() } else { causes }
    }

    /// The causes that the way of ending reports.
    pub(super) fn certain(&self) -> Vec<DetectorFinding> {
        let Some(first) = self.first() else { return Vec::new() };
        let causes = self.nodes_of(self.failures.values().filter(|one| one.end.is_cause()));
        let finding = |node: &u32| {
            let evidence = self.evidence(first, &[*node]);
            DetectorFinding::of_node(VerdictKind::Crash, *node, 1.0, evidence)
        };
        causes.iter().map(finding).collect()
    }

    fn by_time(&self, now: Moment, settling: Duration) -> Option<DetectorFinding> {
        let (first, first_heard) = (self.first()?, self.first_heard?);
        if now.since(first_heard) < settling {
            return None;
        }
        let early = self.failures.values().filter(|one| one.at.since(first) < LEAD);
        let early = self.nodes_of(early);
        let evidence = self.evidence(first, &early);
        let mut finding = DetectorFinding::of_one_among(VerdictKind::Crash, early, evidence);
        if finding.is_certain {
            finding.confidence = CONFIDENCE_BY_TIME;
        }
        Some(finding)
    }

    fn nodes_of<'a>(&self, failures: impl Iterator<Item = &'a WorkerFailure>) -> Vec<u32> {
        let mut nodes: Vec<u32> = failures.map(|failure| failure.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// How the workers of `nodes` ended, and how many others did.
    fn evidence(&self, first: Moment, nodes: &[u32]) -> Vec<Evidence> {
        let (of_nodes, others): (Vec<_>, Vec<_>) =
            self.failures.iter().partition(|(_, failure)| nodes.contains(&failure.node));
        let mut exits: Vec<(Duration, Rank, WorkerEnd)> = of_nodes
            .into_iter()
            .map(|(rank, failure)| (failure.at.since(first), *rank, failure.end))
            .collect();
        exits.sort_unstable_by_key(|(after, rank, end)| (!end.is_cause(), *after, *rank));
        let exits = exits.into_iter().take(MAX_EVIDENCE - 1);
        let mut evidence: Vec<Evidence> =
            exits.map(|(after, rank, end)| Evidence::Exit { rank, end, after }).collect();
        if !others.is_empty() {
            let workers = u32::try_from(others.len()).unwrap_or(u32::MAX);
            evidence.push(Evidence::Echoes { workers });
        }
        evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detection::suspicion::Culprit;

    const SETTLING: Duration = Duration::from_millis(250);

    /// Failures as (node and rank, end, milliseconds), heard at 1 s; suspects after `later_ms`.
    fn suspects(failures: &[(u32, WorkerEnd, u64)], later_ms: u64) -> Vec<(Vec<u32>, bool)> {
        let mut crashes = Crashes::default();
        let heard = Moment::from_ns(1_000_000_000);
        for (rank, end, at_ms) in failures {
            let age = Duration::from_millis(1000 - at_ms);
            crashes.failed(heard, *rank, Rank(*rank), *end, age);
        }
        let findings = crashes.findings(heard.after(Duration::from_millis(later_ms)), SETTLING);
        let node = |culprit: &Culprit| match culprit {
            Culprit::Node(node) => *node,
            other => panic!("{other:?} is no node"),
        };
        findings
            .iter()
            .map(|one| (one.culprits.iter().map(node).collect(), one.is_certain))
            .collect()
    }

    #[test]
    fn a_killed_worker_is_the_cause_at_once_and_its_echoes_are_not() {
        use WorkerEnd::{Code, NotStarted, Signal};
        let echoes =
            [(0, Code(1), 900), (1, Signal(9), 925), (2, Code(1), 901), (3, Signal(6), 930)];
        assert_eq!(suspects(&echoes, 0), [(vec![1], true)]);
        assert_eq!(suspects(&[(0, Code(1), 900), (2, Code(139), 930)], 0), [(vec![2], true)]);
        assert_eq!(suspects(&[(0, NotStarted, 900), (2, Code(1), 930)], 0), [(vec![0], true)]);
        let two = [(0, Signal(9), 900), (1, Code(1), 910), (2, Signal(11), 930)];
        assert_eq!(suspects(&two, 0), [(vec![0], true), (vec![2], true)]);
    }

    #[test]
    fn among_exit_codes_only_time_reports_and_sometimes_not() {
        use WorkerEnd::{Code, Signal};
        let clear = [(0, Code(1), 930), (1, Code(1), 900), (2, Signal(6), 925)];
        assert_eq!(suspects(&clear, 249), []);
        assert_eq!(suspects(&clear, 250), [(vec![1], true)]);
        let close = [(0, Code(1), 910), (1, Code(1), 900), (2, Signal(15), 925)];
        assert_eq!(suspects(&close, 250), [(vec![0, 1], false)]);
    }

    #[test]
    fn no_failure_is_no_finding() {
        assert_eq!(suspects(&[], 9000), []);
        let extremes = [(0, WorkerEnd::Code(i32::MIN), 1000), (1, WorkerEnd::Code(i32::MAX), 1000)];
        assert_eq!(suspects(&extremes, 250), [(vec![0, 1], false)]);
    }
}
