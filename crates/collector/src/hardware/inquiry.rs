//! What every source of files has: the machine, a clock, and timeout with tasks that may hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_schema::clock::Clock;
use telltale_schema::snapshot::SourceStatus;

use crate::report::SourceReport;
use crate::timeout::{CallLimits, TaskName, Timeout};
use crate::tree::Tree;

use super::descriptors::Walk;
use crate::source::{DeviceReading, SourceReading};

/// A source's way to its machine.
pub(super) struct Inquiry {
    pub(super) tree: Arc<Tree>,
    pub(super) clock: Arc<dyn Clock>,
    limits: CallLimits,
    timeout: Timeout,
}

/// One look of a source, which ends with what it says.
pub(super) struct SourceInquiry {
    started_ns: u64,
    pub(super) report: SourceReport,
}

// === impl Inquiry ===

impl Inquiry {
    /// Of the machine under `tree`: one task may take the first of `limits`, all of one call the
    /// second.
    pub(super) fn new(
        tree: Arc<Tree>,
        clock: Arc<dyn Clock>,
        (task, all): (Duration, Duration),
    ) -> Self {
        Self { tree, clock, limits: CallLimits { task, all }, timeout: Timeout::default() }
    }

    /// The same for a source that calls foreign code.
    pub(super) fn with_foreign_code(self) -> Self {
        Self { timeout: Timeout::with_foreign_code(), ..self }
    }

    /// Does `work` for each task, see [`Timeout::run`].
    pub(super) fn run<T, R>(&self, tasks: Vec<(TaskName, T)>, work: fn(&T) -> R) -> Vec<Option<R>>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
    {
        self.timeout.run(tasks, work, self.limits)
    }

    /// When all of what begins now must be done.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.limits.all
    }

    /// As [`Self::run`], until this moment: what is read in several steps has one time for all of them.
    pub(super) fn run_until<T, R>(
        &self,
        deadline: Instant,
        tasks: Vec<(TaskName, T)>,
        work: fn(&T) -> R,
    ) -> Vec<Option<R>>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
    {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return tasks.iter().map(|_| None).collect();
        }
        self.timeout.run(tasks, work, CallLimits { all: left, ..self.limits })
    }

    /// Does one task that may take as long as all others together.
    pub(super) fn run_long<T, R>(&self, task: (TaskName, T), work: fn(&T) -> R) -> Option<R>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
    {
        let limits = CallLimits { task: self.limits.all, all: self.limits.all };
        self.timeout.run(vec![task], work, limits).pop().flatten()
    }

    /// A check of who has nodes open, which ends by itself before the timeout with its task does.
    pub(super) fn walk(&self, node_of: fn(&str) -> Option<&str>) -> Walk {
        let most_ns = u64::try_from(self.limits.task.as_nanos() / 2).unwrap_or(u64::MAX);
        Walk::new(Arc::clone(&self.tree), Arc::clone(&self.clock), most_ns, node_of)
    }

    /// Begins a scan.
    pub(super) fn begin(&self) -> SourceInquiry {
        SourceInquiry { started_ns: self.clock.monotonic_ns(), report: SourceReport::default() }
    }

    /// Ends it.
    pub(super) fn reported(
        &self,
        inquiry: SourceInquiry,
        source: &str,
        devices: Vec<DeviceReading>,
        absent: Option<String>,
    ) -> SourceReading {
        SourceReading { devices, status: self.status(inquiry, source), absent }
    }

    /// Ends one that is of no devices.
    pub(super) fn status(&self, inquiry: SourceInquiry, source: &str) -> SourceStatus {
        inquiry.report.finish(source, &*self.clock, inquiry.started_ns)
    }
}
