//! When a job that seems to hang is examined, and what the stacks of all its workers say.

use std::collections::BTreeSet;
use std::time::Duration;

use telltale_autopsy::explanation::{Awaited, Explanation, explain};
use telltale_autopsy::standing::ProcessStanding;
use telltale_cluster::detection::Standstill;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::node::NodeName;
use telltale_cluster::policy::Mode;
use telltale_cluster::rank::{Rank, RankMap};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Evidence, Verdict};

use crate::examination::NodeStandings;

/// How long nodes are waited for: what a worker may take, and the pause where it was not examined before.
const TIMEOUT: Duration = Duration::from_secs(6);

/// One standstill, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Examination {
    epoch: Option<Epoch>,
    /// What was asked for last.
    asked: Standstill,
    awaited: Awaited,
    /// Until when answers are waited for.
    deadline: Option<Moment>,
    /// Nodes that have not answered.
    expected: BTreeSet<NodeName>,
    /// Who ran which ranks.
    map: Option<RankMap>,
    standings: Vec<ProcessStanding>,
    missing: Vec<String>,
}

/// Why a job hung.
#[derive(Debug)]
pub(super) struct ExplainedHang {
    pub(super) epoch: Epoch,
    pub(super) explanation: Explanation,
    pub(super) missing: Vec<String>,
}

impl Examination {
    /// Takes in how far a job is from hanging. Returns whether nodes must examine their workers now, and if so
    /// whether they must say where these stand.
    pub(super) fn see(
        &mut self,
        now: Moment,
        (epoch, map): (Epoch, &RankMap),
        standstill: Standstill,
        verdicts: &[Verdict],
    ) -> Option<bool> {
        if self.epoch != Some(epoch) {
            *self = Self { epoch: Some(epoch), ..Self::default() };
        }
        if standstill == Standstill::Moves {
            // The next standstill is another one; what was asked for of this one may still come.
            self.asked = Standstill::Moves;
        }
        if standstill <= self.asked {
            return None;
        }
        self.asked = standstill;
        if standstill == Standstill::Suspected {
            return Some(false);
        }
        self.awaited = awaited(verdicts);
        self.deadline = Some(now.after(TIMEOUT));
        self.map = Some(map.clone());
        self.expected = map.holders().map(|(_, node)| node.clone()).collect();
        (self.standings, self.missing) = (Vec::new(), Vec::new());
        Some(true)
    }

    /// Takes in where the workers of a node stand. Of ranks that are not the node's nothing is taken.
    pub(super) fn take(&mut self, node: &NodeName, standings: NodeStandings) {
        let Some(map) = &self.map else { return };
        if self.epoch != Some(standings.epoch) || !self.expected.remove(node) {
            return;
        }
        let is_its = |rank: u32| map.node_of_rank(Rank(rank)) == Some(node);
        let own = standings.ranks.into_iter().filter(|one| one.rank.is_some_and(is_its));
        self.standings.extend(own);
        let missing = standings.missing.into_iter().map(|why| format!("{node}: {why}"));
        self.missing.extend(missing);
    }

    /// The explanation, once all nodes have answered or their time is over.
    pub(super) fn explained(&mut self, now: Moment) -> Option<ExplainedHang> {
        let (epoch, deadline) = (self.epoch?, self.deadline?);
        if !self.expected.is_empty() && now < deadline {
            return None;
        }
        self.deadline = None;
        let late = std::mem::take(&mut self.expected);
        let late = late.iter().map(|node| format!("{node}: it sent no stacks in time"));
        self.missing.extend(late);
        self.standings.sort_by_key(|one| one.rank);
        let explanation = explain(&self.standings, self.awaited)?;
        let missing = std::mem::take(&mut self.missing);
        Some(ExplainedHang { epoch, explanation, missing })
    }
}

/// What a mode that leaves a hang alone adds to its sentence.
pub(super) const fn left_alone(mode: Mode) -> &'static str {
    match mode {
        Mode::Act => "",
        Mode::Recover => {
            "; in mode recover it is left alone, `telltale cluster mode act` has the job restarted"
        }
        Mode::Observe => {
            "; in mode observe it is left alone, `telltale cluster mode act` has the job restarted"
        }
    }
}

/// Which operation ranks wait in, and for how long nothing has moved.
fn awaited(verdicts: &[Verdict]) -> Awaited {
    let evidence = || verdicts.iter().flat_map(|verdict| &verdict.evidence);
    let sequence = evidence().filter_map(|one| match one {
        Evidence::Behind { awaited, .. } => Some(*awaited),
        Evidence::Inside { sequence, .. } => Some(*sequence),
        _ => None,
    });
    let stalled = evidence().filter_map(|one| match one {
        Evidence::Behind { stalled, .. }
        | Evidence::Inside { stalled, .. }
        | Evidence::Stuck { stalled, .. } => Some(*stalled),
        _ => None,
    });
    Awaited {
        sequence: sequence.max().filter(|number| *number > 0),
        stalled_s: stalled.max().map(|stalled| stalled.as_secs()),
    }
}
