//! Detection: from what nodes report to verdicts.
//!
//! A machine without I/O: reports go in as they come, and a check of any moment says what is wrong
//! then. It commands nothing, and evicts no node.

mod bandwidth;
mod cadence;
mod cold_start;
mod crash;
mod explanation;
mod extract;
mod finding;
mod hang;
mod held_back;
mod held_up;
mod history;
mod late;
mod matrix;
mod members;
mod outliers;
mod sharing;
mod silence;
mod slowness;
pub mod steps;
mod stuck;
mod suspicion;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use crate::detection::bandwidth::Links;
use crate::detection::crash::Crashes;
pub use crate::detection::extract::{LatencyCell, LatencyMatrix, MAX_EXTRACT_NODES};
use crate::detection::finding::{Continuity, DetectorFinding, Settling};
use crate::detection::hang::{HangTimeout, Hangs};
use crate::detection::held_back::HeldBack;
pub use crate::detection::matrix::MatrixCounts;
use crate::detection::matrix::{Matrix, SlowFrom};
use crate::detection::members::Members;
use crate::detection::silence::Silence;
use crate::detection::steps::{Steps, StepsView};
use crate::detection::waiting::WaitingTimes;
use crate::node::NodeName;
use crate::observation::{MAX_WINDOWS_PER_REPORT, Observation, WorkerState};
use crate::policy::overdue_after;
use crate::rank::RankMap;
use crate::time::Moment;
use crate::verdict::{Verdict, VerdictKind};

/// How slow nodes and links are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Each edge against its own history, and the smallest explanation of what is slow.
    OwnHistory,
    /// The original's: the average of a node's latencies is more than two standard deviations above
    /// the mean of all. Never names a link.
    MeanTwoSigma,
}

/// When something counts as wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectionSettings {
    /// How slow nodes and links are found.
    pub rule: Rule,
    /// A node that has not reported for longer is silent.
    pub keep_alive: Duration,
    /// How long the failures of workers are collected before time alone tells the cause.
    pub crash_settling: Duration,
    /// A group that has not moved for this long, and for three times its longest pause of late, hangs.
    pub hang_after: Duration,
    /// The same before a group has finished its first collective.
    pub hang_at_start: Duration,
    /// The time between two reports of a node: how long one window of the slow verdicts is.
    pub window: Duration,
    /// What is slower by less than this factor is not slow.
    pub meaningful_ratio: f32,
    /// A transfer between two nodes that takes less is not slow, whatever is usual for it; none for
    /// [`Duration::ZERO`]. The seed's latency threshold, to which it gave no number.
    pub latency_threshold: Duration,
    /// In how many windows in a row a node or link must be suspected before it is reported; twice as many
    /// before "the data cannot distinguish them" is reported.
    pub settling_windows: u32,
}

impl Default for DetectionSettings {
    fn default() -> Self {
        Self {
            rule: Rule::OwnHistory,
            keep_alive: Duration::from_secs(5),
            crash_settling: Duration::from_millis(250),
            hang_after: Duration::from_secs(5),
            hang_at_start: Duration::from_secs(120),
            window: Duration::from_secs(1),
            meaningful_ratio: 1.25,
            latency_threshold: Duration::ZERO,
            settling_windows: 3,
        }
    }
}

/// How far a job is from hanging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Standstill {
    /// It moves.
    #[default]
    Moves,
    /// A group has stood still for half of what makes it hang.
    Suspected,
    /// It hangs.
    Hangs,
}

/// What was not taken, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DetectionCounts {
    /// Reports of nodes that hold no slot.
    pub strangers: u64,
    /// Windows of one report beyond [`MAX_WINDOWS_PER_REPORT`].
    pub too_many_windows: u64,
    /// Latencies of transfers.
    pub edges: MatrixCounts,
    /// Times in collectives that had no place or were not the node's.
    pub waits: u64,
    /// Progress that had no place or was not the node's.
    pub progress: u64,
}

/// Finds what is wrong with the nodes of one job.
#[derive(Debug, Clone)]
pub struct Detector {
    settings: DetectionSettings,
    members: Members,
    silence: Silence,
    crashes: Crashes,
    hangs: Hangs,
    /// What hung when the first worker failed; what hangs now while none has.
    hanging: Vec<DetectorFinding>,
    matrix: Matrix,
    waiting: WaitingTimes,
    steps: Steps,
    links: Links,
    held_back: HeldBack,
    at_once: Continuity,
    settled: Continuity,
    by_steps: Continuity,
    last_window: Option<Moment>,
    slow: Vec<Verdict>,
    counts: DetectionCounts,
}

impl Detector {
    /// A detector that knows no node.
    #[must_use]
    pub fn new(settings: DetectionSettings) -> Self {
        Self {
            settings,
            members: Members::default(),
            silence: Silence::default(),
            crashes: Crashes::default(),
            hangs: Hangs::default(),
            hanging: Vec::new(),
            matrix: Matrix::default(),
            waiting: WaitingTimes::default(),
            steps: Steps::default(),
            links: Links::default(),
            held_back: HeldBack::default(),
            at_once: Continuity::default(),
            settled: Continuity::default(),
            by_steps: Continuity::default(),
            last_window: None,
            slow: Vec::new(),
            counts: DetectionCounts::default(),
        }
    }

    /// A new epoch begins with these ranks. Failures and progress are forgotten; what is usual
    /// between two nodes is kept, so that a slow one is not taken for usual after a restart.
    pub fn set_ranks(&mut self, now: Moment, map: &RankMap) {
        self.members.set_ranks(map);
        self.silence.set_ranks(now, &self.members);
        self.crashes.forget();
        self.hangs.forget();
        self.hanging.clear();
        self.matrix.forget_idle();
        self.waiting.forget();
        self.steps.forget();
        self.links.forget();
        self.held_back.forget();
        self.at_once = Continuity::default();
        self.settled = Continuity::default();
        self.by_steps = Continuity::default();
        self.slow.clear();
    }

    /// Takes the report of a node, of the present epoch. Says whether it was taken: not when the
    /// node holds no slot.
    pub fn observe(&mut self, now: Moment, node: &NodeName, observation: &Observation) -> bool {
        let holder = self.members.number(node).filter(|number| self.members.holds_slot(*number));
        let Some(number) = holder else {
            self.counts.strangers += 1;
            return false;
        };
        self.silence.heard(now, number);
        let workers = &observation.workers;
        if !workers.is_empty() && workers.iter().all(|one| one.state == WorkerState::Finished) {
            self.silence.finished(number);
        }
        for worker in &observation.workers {
            let is_its_own = self.members.of_rank(worker.rank) == Some(number);
            if let (WorkerState::Failed { end, age }, true) = (worker.state, is_its_own) {
                self.crashes.failed(now, number, worker.rank, end, age);
            }
        }
        self.hangs.observe(now, number, observation, &self.members);
        self.steps.observe(now, number, observation, &self.members);
        if !observation.excused {
            self.links.observe(number, &observation.traffic);
            let edges = self.bounded(&observation.edges);
            self.matrix.observe(number, edges, &self.members);
            let waits = self.bounded(&observation.waits);
            self.waiting.observe(number, waits, &self.members);
        }
        true
    }

    /// A node's connection was closed at its end: its agent is gone, or comes back by another.
    pub fn closed(&mut self, node: &NodeName) {
        if let Some(number) = self.members.number(node) {
            self.silence.closed(number);
        }
    }

    fn bounded<'a, T>(&mut self, windows: &'a [T]) -> &'a [T] {
        let (taken, left) = windows.split_at(windows.len().min(MAX_WINDOWS_PER_REPORT));
        self.counts.too_many_windows += u64::try_from(left.len()).unwrap_or(u64::MAX);
        taken
    }

    /// What is wrong now. To be called at least once a window; slow nodes and links are searched for
    /// once a window however often it is called.
    pub fn evaluate(&mut self, now: Moment) -> Vec<Verdict> {
        self.evaluate_crashes(now, self.settings.crash_settling)
    }

    /// What is wrong with an epoch that is about to be stopped: no failure is waited for any more.
    pub fn evaluate_last(&mut self, now: Moment) -> Vec<Verdict> {
        self.evaluate_crashes(now, Duration::ZERO)
    }

    fn evaluate_crashes(&mut self, now: Moment, crash_settling: Duration) -> Vec<Verdict> {
        let settings = self.settings;
        let is_due = self.last_window.is_none_or(|last| now.since(last) >= settings.window);
        if is_due {
            let elapsed = self.last_window.map_or(settings.window, |last| now.since(last));
            self.last_window = Some(now);
            self.matrix.evaluate();
            self.waiting.evaluate(elapsed);
            self.steps.evaluate(now, &self.members);
            self.links.evaluate();
            let findings = self.slow_findings();
            // What is ambiguous now is often clear in a few windows, and no caller waits for an answer.
            let certain = settings.settling_windows;
            let settling = Settling { certain, ambiguous: certain.saturating_mul(2) };
            self.slow = self.settled.step(now, findings, settling, &self.members);
            // These are of several steps already.
            let mut at_once = self.steps.findings(now);
            // And these of several reports.
            if settings.rule == Rule::OwnHistory {
                at_once.extend(self.links.findings(&self.members));
            }
            let settling = Settling::NONE;
            self.slow.extend(self.by_steps.step(now, at_once, settling, &self.members));
        }
        let mut findings = self.silence.findings(now, settings.keep_alive, &self.members);
        findings.extend(self.failures_and_hangs(now, crash_settling));
        let mut verdicts = self.at_once.step(now, findings, Settling::NONE, &self.members);
        verdicts.extend(self.slow.iter().cloned());
        verdicts
    }

    /// Who is suspected of failures and standstills. Where a hang is known, or a node is missed, survivors fail because
    /// of it, or have waited for too long: none of them is the cause for having been the first.
    fn failures_and_hangs(
        &mut self,
        now: Moment,
        crash_settling: Duration,
    ) -> Vec<DetectorFinding> {
        let settings = self.settings;
        let Some(first) = self.crashes.first() else {
            let timeout = self.hang_timeout();
            // Whose report is overdue may be about to be silent, and what its ranks do is not known.
            let unheard = self.silence.unheard(now, settings.keep_alive / 2, &self.members);
            self.hanging = self.hangs.findings(now, timeout, &unheard, &self.members);
            return self.hanging.clone();
        };
        let overdue = overdue_after(settings.keep_alive);
        let is_any_missed = self.silence.is_any_missed(now, overdue, &self.members, first);
        if self.hanging.is_empty() && !is_any_missed {
            return self.crashes.findings(now, crash_settling);
        }
        let certain = self.crashes.certain();
        if certain.is_empty() { self.hanging.clone() } else { certain }
    }

    fn hang_timeout(&self) -> HangTimeout {
        let settings = self.settings;
        // Once all ranks have ended a training step nothing starts any more.
        let at_start = if self.steps.any() { settings.hang_after } else { settings.hang_at_start };
        HangTimeout { after: settings.hang_after, at_start }
    }

    /// How far the job is from hanging, by the verdicts of now.
    #[must_use]
    pub fn standstill(&self, now: Moment, verdicts: &[Verdict]) -> Standstill {
        let hangs = |kind| {
            matches!(kind, VerdictKind::CommunicationHang | VerdictKind::NonCommunicationHang)
        };
        if verdicts.iter().any(|verdict| hangs(verdict.kind)) {
            Standstill::Hangs
        } else if self.hangs.is_half_stalled(now, self.hang_timeout()) {
            Standstill::Suspected
        } else {
            Standstill::Moves
        }
    }

    fn slow_findings(&mut self) -> Vec<DetectorFinding> {
        match self.settings.rule {
            // Steps say who waited for whom, which latencies alone cannot.
            Rule::OwnHistory if self.steps.any() => Vec::new(),
            Rule::OwnHistory => {
                let limit = self.limit();
                let mut findings = slowness::findings(&self.matrix, &self.members, limit);
                let held_up = held_up::findings(&self.matrix, &self.members, limit);
                let mut late = self.waiting.findings(&self.members, limit.meaningful);
                self.held_back.take_out(&mut late, &findings, &held_up, &self.matrix);
                // What is named for certain may well be what holds the others up.
                if findings.is_empty() {
                    findings.extend(held_up);
                }
                findings.extend(late);
                findings
            }
            Rule::MeanTwoSigma => {
                let threshold = self.settings.latency_threshold;
                outliers::findings(&self.matrix, &self.members, threshold)
            }
        }
    }

    /// From where on an edge is slow.
    fn limit(&self) -> SlowFrom {
        let threshold_ns = self.settings.latency_threshold.as_nanos() as f64;
        SlowFrom {
            meaningful: self.settings.meaningful_ratio.max(1.0).ln(),
            // Of no threshold it is below every number.
            threshold: threshold_ns.ln() as f32,
        }
    }

    /// The latencies between the `wanted` nodes and those around them, for a person to check; of
    /// [`MAX_EXTRACT_NODES`] nodes at most.
    #[must_use]
    pub fn matrix(&self, wanted: &[NodeName]) -> LatencyMatrix {
        match self.steps.paths() {
            Some(paths) => extract::of_paths(paths, &self.members, wanted),
            None => extract::extract(&self.matrix, &self.members, wanted, self.limit()),
        }
    }

    /// Where the time of the job's training steps goes, where it reports any.
    #[must_use]
    pub fn steps(&self) -> Option<Arc<StepsView>> {
        self.steps.view()
    }

    /// What was taken and what was not.
    #[must_use]
    pub const fn counts(&self) -> DetectionCounts {
        DetectionCounts {
            edges: self.matrix.counts(),
            waits: self.waiting.no_place(),
            progress: self.hangs.no_place(),
            ..self.counts
        }
    }
}
