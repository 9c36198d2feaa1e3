//! The node's workers: which were started, which have ended and how.
//!
//! All of them are of one epoch. Those of the next are put in only when none of the last is alive.

use std::collections::BTreeMap;
use std::fmt;

use crate::epoch::Epoch;
use crate::observation::{FailureDetail, Observation, WorkerEnd, WorkerObservation, WorkerState};
use crate::rank::{Rank, WorkersPerNode};
use crate::time::Moment;

/// The number of a worker on its node (PyTorch's `LOCAL_RANK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalRank(pub u32);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

/// How far one worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerPhase {
    Starting,
    Running,
    Finished,
    /// It ended because it was ordered to.
    Stopped,
    Failed {
        end: WorkerEnd,
        at: Moment,
    },
}

/// The workers of one epoch, by their local rank.
#[derive(Debug, Clone, Default)]
pub(super) struct Workers {
    epoch: Option<Epoch>,
    states: Vec<WorkerPhase>,
    /// What those that failed left.
    failures: BTreeMap<LocalRank, FailureDetail>,
    /// Set once they were ordered to stop: they are killed then, and again while that does not help.
    pub(super) kill_at: Option<Moment>,
}

impl Workers {
    /// The workers of a new epoch, all on their way.
    pub(super) fn starting(epoch: Epoch, workers: WorkersPerNode) -> Self {
        let count = usize::try_from(workers.get()).expect("at most MAX_WORKERS");
        Self { epoch: Some(epoch), states: vec![WorkerPhase::Starting; count], ..Self::default() }
    }

    /// The epoch of the workers that are alive.
    pub(super) const fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    pub(super) fn any_alive(&self) -> bool {
        self.alive().next().is_some()
    }

    pub(super) fn any_starting(&self) -> bool {
        self.states.contains(&WorkerPhase::Starting)
    }

    pub(super) fn any_failed(&self) -> bool {
        self.states.iter().any(|state| matches!(state, WorkerPhase::Failed { .. }))
    }

    /// Those that are running or on their way.
    pub(super) fn alive(&self) -> impl Iterator<Item = LocalRank> {
        let alive =
            |state: &WorkerPhase| matches!(state, WorkerPhase::Starting | WorkerPhase::Running);
        (0..).map(LocalRank).zip(&self.states).filter(move |one| alive(one.1)).map(|one| one.0)
    }

    /// Marks a worker as running. Says whether it was on its way.
    pub(super) fn started(&mut self, epoch: Epoch, local: LocalRank) -> bool {
        match self.state(epoch, local) {
            Some(state) if *state == WorkerPhase::Starting => {
                *state = WorkerPhase::Running;
                true
            }
            _ => false,
        }
    }

    /// Marks a worker as ended; without an exit, it could not be started. Says whether it was alive.
    pub(super) fn ended(
        &mut self,
        now: Moment,
        (epoch, local): (Epoch, LocalRank),
        exit: Option<Exit>,
        detail: FailureDetail,
    ) -> bool {
        let stopping = self.kill_at.is_some();
        let Some(state) = self.state(epoch, local) else { return false };
        if !matches!(state, WorkerPhase::Starting | WorkerPhase::Running) {
            return false;
        }
        let failed = |end| WorkerPhase::Failed { end, at: now };
        *state = match exit {
            Some(Exit::Code(0)) => WorkerPhase::Finished,
            _ if stopping => WorkerPhase::Stopped,
            Some(Exit::Code(code)) => failed(WorkerEnd::Code(code)),
            Some(Exit::Signal(signal)) => failed(WorkerEnd::Signal(signal)),
            None => failed(WorkerEnd::NotStarted),
        };
        if matches!(state, WorkerPhase::Failed { .. }) && detail != FailureDetail::default() {
            self.failures.insert(local, detail);
        }
        true
    }

    /// What workers that failed left, for a report.
    pub(super) fn failures(&self, first: Rank) -> Vec<(Rank, FailureDetail)> {
        let ranks = self.failures.iter();
        ranks.map(|(local, detail)| (Rank(first.0 + local.0), detail.clone())).collect()
    }

    /// How each worker is, for a report. `observation` may know that one is stopped.
    pub(super) fn reported(
        &self,
        now: Moment,
        first: Rank,
        observation: &Observation,
    ) -> Vec<WorkerObservation> {
        let stopped = |rank: Rank| {
            let is_it = |worker: &&WorkerObservation| worker.rank == rank;
            let seen = observation.workers.iter().find(is_it);
            seen.is_some_and(|worker| worker.state == WorkerState::Stopped)
        };
        let reported = |(local, state): (u32, &WorkerPhase)| {
            let rank = Rank(first.0 + local);
            let state = match *state {
                WorkerPhase::Starting | WorkerPhase::Running if stopped(rank) => {
                    WorkerState::Stopped
                }
                WorkerPhase::Starting | WorkerPhase::Running => WorkerState::Running,
                WorkerPhase::Finished => WorkerState::Finished,
                WorkerPhase::Stopped => WorkerState::Ended,
                WorkerPhase::Failed { end, at } => WorkerState::Failed { end, age: now.since(at) },
            };
            WorkerObservation { rank, state }
        };
        (0..).zip(&self.states).map(reported).collect()
    }

    fn state(&mut self, epoch: Epoch, local: LocalRank) -> Option<&mut WorkerPhase> {
        let index = usize::try_from(local.0).ok()?;
        if self.epoch == Some(epoch) { self.states.get_mut(index) } else { None }
    }
}
