//! What one detector says at one evaluation, and how findings of several evaluations become verdicts.

use std::collections::BTreeMap;

use crate::detection::matrix::Matrix;
use crate::detection::members::Members;
use crate::detection::suspicion::Culprit;
use crate::time::Moment;
use crate::verdict::{
    Evidence, MAX_EVIDENCE, MAX_SUSPECTS, Side, Suspect, Suspects, Verdict, VerdictKind,
};

/// What one detector says at one evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DetectorFinding {
    pub(super) kind: VerdictKind,
    /// Sorted; never empty.
    pub(super) culprits: Vec<Culprit>,
    /// Whether the data can tell that it is the one culprit.
    pub(super) is_certain: bool,
    pub(super) confidence: f64,
    pub(super) evidence: Vec<Evidence>,
    /// Whether something that came since the last evaluation says so, and not only what came before.
    pub(super) is_news: bool,
}

impl DetectorFinding {
    /// A finding about one node.
    pub(super) fn of_node(
        kind: VerdictKind,
        node: u32,
        confidence: f64,
        evidence: Vec<Evidence>,
    ) -> Self {
        let culprits = vec![Culprit::Node(node)];
        Self { kind, culprits, is_certain: true, confidence, evidence, is_news: true }
    }

    /// A finding about one of several nodes, sorted, where the data cannot tell which.
    pub(super) fn of_one_among(
        kind: VerdictKind,
        nodes: impl IntoIterator<Item = u32>,
        evidence: Vec<Evidence>,
    ) -> Self {
        Self::of_culprits(kind, nodes.into_iter().map(Culprit::Node).collect(), evidence)
    }

    /// A finding about one of several culprits, sorted, where the data cannot tell which.
    pub(super) fn of_culprits(
        kind: VerdictKind,
        culprits: Vec<Culprit>,
        evidence: Vec<Evidence>,
    ) -> Self {
        let confidence = 1.0 / culprits.len() as f64;
        let is_certain = culprits.len() == 1;
        Self { kind, culprits, is_certain, confidence, evidence, is_news: true }
    }

    /// Whether all culprits of another are among those of this one.
    pub(super) fn holds(&self, other: &Self) -> bool {
        other.culprits.iter().all(|culprit| self.culprits.contains(culprit))
    }

    /// Whether another than a node has a hand in transfers of this node: it may have waited for a slow one.
    pub(super) fn has_slowed(&self, node: u32, matrix: &Matrix) -> bool {
        let others = self.culprits.iter().filter(|culprit| !culprit.is_of(node));
        others
            .copied()
            .any(|culprit| matrix.cells_of(node).any(|cell| culprit.touches(cell.from, cell.to)))
    }
}

type Identity = (VerdictKind, Vec<Culprit>);

/// In how many windows in a row a finding must be made, each with something new, before it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settling {
    /// One that names a single node.
    pub(super) certain: u32,
    /// One that cannot tell among several.
    pub(super) ambiguous: u32,
}

impl Settling {
    /// Everything is reported at once.
    pub(super) const NONE: Self = Self { certain: 1, ambiguous: 1 };
}

/// Since when each finding is made without a break.
#[derive(Debug, Clone, Default)]
pub(super) struct Continuity {
    seen: BTreeMap<Identity, FindingAge>,
}

/// How long one finding is made.
#[derive(Debug, Clone, Copy)]
struct FindingAge {
    first: Moment,
    evaluations: u32,
    /// Looks that had something new to say so.
    news: u32,
}

impl Continuity {
    /// Takes the findings of one evaluation, and returns the verdicts of those that have settled.
    pub(super) fn step(
        &mut self,
        now: Moment,
        findings: Vec<DetectorFinding>,
        settling: Settling,
        members: &Members,
    ) -> Vec<Verdict> {
        let before = std::mem::take(&mut self.seen);
        let mut joined: BTreeMap<Identity, DetectorFinding> = BTreeMap::new();
        for finding in findings {
            let identity = (finding.kind, finding.culprits.clone());
            match joined.get_mut(&identity) {
                Some(held) => {
                    held.confidence = held.confidence.max(finding.confidence);
                    held.is_certain |= finding.is_certain;
                    held.is_news |= finding.is_news;
                    held.evidence.extend(finding.evidence);
                }
                None => {
                    joined.insert(identity, finding);
                }
            }
        }
        let mut verdicts = Vec::new();
        for (identity, finding) in joined {
            let begins = FindingAge { first: now, evaluations: 0, news: 0 };
            let mut seen = before.get(&identity).copied().unwrap_or(begins);
            seen.evaluations = seen.evaluations.saturating_add(1);
            seen.news = seen.news.saturating_add(u32::from(finding.is_news));
            self.seen.insert(identity, seen);
            let needed = if finding.is_certain { settling.certain } else { settling.ambiguous };
            if seen.news >= needed {
                verdicts.push(verdict(finding, seen.first, seen.evaluations, members));
            }
        }
        verdicts
    }
}

fn verdict(
    finding: DetectorFinding,
    first_seen: Moment,
    windows: u32,
    members: &Members,
) -> Verdict {
    let DetectorFinding { kind, culprits, is_certain, confidence, mut evidence, is_news: _ } =
        finding;
    evidence.truncate(MAX_EVIDENCE);
    let mut suspects: Vec<Suspect> =
        culprits.iter().take(MAX_SUSPECTS).map(|one| suspect(*one, members)).collect();
    suspects.sort_unstable();
    let suspects = match suspects.pop() {
        Some(one) if is_certain && suspects.is_empty() => Suspects::One(one),
        last => {
            suspects.extend(last);
            Suspects::Ambiguous(suspects)
        }
    };
    Verdict { kind, suspects, confidence, evidence, first_seen, windows }
}

fn suspect(culprit: Culprit, members: &Members) -> Suspect {
    let name = |number| members.name(number).clone();
    match culprit {
        Culprit::Node(node) => Suspect::Node(name(node)),
        Culprit::Sender(node) => Suspect::Side { node: name(node), side: Side::Sender },
        Culprit::Receiver(node) => Suspect::Side { node: name(node), side: Side::Receiver },
        Culprit::OneWay(from, to) => {
            Suspect::Link { from: name(from), to: name(to), both_ways: false }
        }
        Culprit::BothWays(one, other) => {
            let (from, to) = (name(one).min(name(other)), name(one).max(name(other)));
            Suspect::Link { from, to, both_ways: true }
        }
    }
}
