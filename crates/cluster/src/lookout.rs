//! Detection as a coordinator has it beside itself: what it is given of a report, which epoch it
//! follows, and what it has seen.
//!
//! A machine without I/O. It decides nothing; its driver carries what it has seen to the
//! coordinator.

use std::sync::Arc;

use crate::coordinator::Coordinator;
use crate::detection::steps::StepsView;
use crate::detection::{DetectionCounts, DetectionSettings, Detector, LatencyMatrix, Standstill};
use crate::epoch::Epoch;
use crate::incident::IncidentId;
use crate::message::{FromNode, FromNodeBody};
use crate::node::NodeName;
use crate::observation::Observation;
use crate::rank::RankMap;
use crate::stored::Phase;
use crate::time::Moment;
use crate::verdict::{Suspect, Verdict};

/// What a lookout receives.
#[derive(Debug)]
pub enum Work {
    /// An epoch runs with these ranks.
    Ranks {
        /// When that was received.
        now: Moment,
        /// The epoch.
        epoch: Epoch,
        /// Who runs what.
        map: Box<RankMap>,
    },
    /// A report of that epoch.
    Observed {
        /// When it came in.
        now: Moment,
        /// Whose.
        node: NodeName,
        /// What it reports.
        observation: Box<Observation>,
    },
    /// A node's connection was closed at its end.
    Closed {
        /// Whose.
        node: NodeName,
    },
    /// See what is wrong, and add the evidence if they are wanted or something is.
    Evaluate {
        /// When.
        now: Moment,
        /// Whether evidence is wanted.
        metrics: bool,
    },
    /// See a last time what is wrong, before the epoch is over, for this incident.
    LastSample {
        /// When.
        now: Moment,
        /// The incident.
        incident: IncidentId,
    },
}

/// What a lookout has seen.
#[derive(Debug)]
pub struct LookoutState {
    /// In which epoch.
    pub epoch: Epoch,
    /// When.
    pub at: Moment,
    /// For which incident it was asked to look; none, if it was time to.
    pub incident: Option<IncidentId>,
    /// Everything that is wrong.
    pub verdicts: Vec<Verdict>,
    /// How far the job is from hanging.
    pub standstill: Standstill,
    /// The evidence.
    pub matrix: Option<LatencyMatrix>,
    /// What was not taken, since the start.
    pub counts: DetectionCounts,
    /// Where the time of the job's training steps goes, where it reports any.
    pub steps: Option<Arc<StepsView>>,
}

/// Detection, and the epoch that it checks.
#[derive(Debug, Clone)]
pub struct Lookout {
    detector: Detector,
    current: Option<Epoch>,
}

impl Lookout {
    /// A lookout that knows no node.
    #[must_use]
    pub fn new(settings: DetectionSettings) -> Self {
        Self { detector: Detector::new(settings), current: None }
    }

    /// Takes an input. Returns what it has seen, if it was asked to and knows an epoch.
    pub fn take(&mut self, work: &Work) -> Option<LookoutState> {
        let (at, incident, metrics) = match work {
            Work::Ranks { now, epoch, map } => {
                self.detector.set_ranks(*now, map);
                self.current = Some(*epoch);
                return None;
            }
            Work::Observed { now, node, observation } => {
                self.detector.observe(*now, node, observation);
                return None;
            }
            Work::Closed { node } => {
                self.detector.closed(node);
                return None;
            }
            Work::Evaluate { now, metrics } => (*now, None, *metrics),
            Work::LastSample { now, incident } => (*now, Some(*incident), true),
        };
        let epoch = self.current?;
        let verdicts = match incident {
            None => self.detector.evaluate(at),
            Some(_) => self.detector.evaluate_last(at),
        };
        let metrics = metrics || !verdicts.is_empty();
        let matrix = metrics.then(|| self.detector.matrix(&suspects(&verdicts)));
        Some(LookoutState {
            epoch,
            at,
            incident,
            standstill: self.detector.standstill(at, &verdicts),
            verdicts,
            matrix,
            counts: self.detector.counts(),
            steps: self.detector.steps(),
        })
    }
}

/// Everybody who is suspected, the surest first.
fn suspects(verdicts: &[Verdict]) -> Vec<NodeName> {
    let mut sorted: Vec<&Verdict> = verdicts.iter().collect();
    sorted.sort_by(|left, right| right.confidence.total_cmp(&left.confidence));
    let all = sorted.into_iter().flat_map(|verdict| verdict.suspects.all());
    all.flat_map(Suspect::nodes).cloned().collect()
}

/// What a lookout is given of a message that the coordinator takes ([`Coordinator::accepts`]); the
/// coordinator, to which the message goes next, needs only how the workers are and what those that failed left.
pub fn observed(now: Moment, message: &mut FromNode) -> Option<Work> {
    let FromNodeBody::Report(report) = &mut message.body else { return None };
    let workers = report.observation.workers.clone();
    let mut whole = std::mem::take(&mut report.observation);
    let failures = std::mem::take(&mut whole.failures);
    report.observation =
        Observation { workers: workers.clone(), failures, ..Observation::default() };
    let observation = Box::new(Observation { workers, ..whole });
    Some(Work::Observed { now, node: message.node.clone(), observation })
}

/// Which epoch a lookout received, while that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Followed(Option<Epoch>);

impl Followed {
    /// Has a lookout receive the coordinator's epoch once that is committed; again with the next call
    /// when `tell` says that there was no room.
    pub fn follow(
        &mut self,
        now: Moment,
        coordinator: &Coordinator,
        submit: impl FnOnce(Work) -> bool,
    ) {
        let state = coordinator.state();
        let committed = state.filter(|state| matches!(state.phase, Phase::Committed(_)));
        let Some(state) = committed else {
            self.0 = None;
            return;
        };
        if self.0 == Some(state.epoch) {
            return;
        }
        let (epoch, map) = (state.epoch, Box::new(state.map.clone()));
        if submit(Work::Ranks { now, epoch, map }) {
            self.0 = Some(epoch);
        }
    }

    /// Whether there is one, so that it makes sense to look.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.0.is_some()
    }
}
