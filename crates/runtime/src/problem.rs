//! What the runtime could not do: reported once for each step to a person, of metrics 16 times, counted always,
//! never the workload's problem.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telltale_schema::text::with_causes;

use crate::process_hooks;

/// What was being done when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemStep {
    /// Finding out which process this is.
    Identity,
    /// Opening the runtime directory.
    Directory,
    /// Creating the ledger.
    Ledger,
    /// Publishing the metrics endpoint.
    Endpoint,
    /// Publishing the endpoint under its plain name, which someone else holds.
    EndpointName,
    /// Answering at the endpoint.
    Answering,
    /// Opening a device.
    Device,
    /// Keeping a tt-metal region up to date.
    Region,
    /// Reading the environment's variables.
    Environment,
    /// Registering a metric.
    Metric,
    /// Registering what is to happen at fork and exit.
    ProcessHooks,
}

/// Something that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// When.
    pub step: ProblemStep,
    /// Why: the error and its causes.
    pub cause: String,
    /// What a person can do about it.
    pub remedy: &'static str,
}

/// Something that went wrong while the cold lock was held, to report once it is released.
pub(crate) struct DeferredProblem {
    pub(crate) step: ProblemStep,
    pub(crate) error: Box<dyn Error>,
    pub(crate) remedy: &'static str,
}

/// Where problems go instead of standard error.
pub type OnProblem = Arc<dyn Fn(&Problem) + Send + Sync>;

impl DeferredProblem {
    pub(crate) fn new(
        step: ProblemStep,
        error: impl Error + 'static,
        remedy: &'static str,
    ) -> Self {
        Self { step, error: Box::new(error), remedy }
    }
}

impl ProblemStep {
    /// All steps, in the order of their declaration.
    pub const ALL: [Self; 11] = [
        Self::Identity,
        Self::Directory,
        Self::Ledger,
        Self::Endpoint,
        Self::EndpointName,
        Self::Answering,
        Self::Device,
        Self::Region,
        Self::Environment,
        Self::Metric,
        Self::ProcessHooks,
    ];

    /// The name in a counter's label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Directory => "directory",
            Self::Ledger => "ledger",
            Self::Endpoint => "endpoint",
            Self::EndpointName => "endpoint_name",
            Self::Answering => "answering",
            Self::Device => "device",
            Self::Region => "region",
            Self::Environment => "environment",
            Self::Metric => "metric",
            Self::ProcessHooks => "process_hooks",
        }
    }

    /// How many problems of it are passed on: metrics are registered wrongly for reasons of their own.
    const fn reports(self) -> u64 {
        if matches!(self, Self::Metric) { 16 } else { 1 }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Identity => "cannot find out which process this is",
            Self::Directory => "no runtime directory",
            Self::Ledger => "memory is not recorded",
            Self::Endpoint => "this process has no metrics endpoint",
            Self::EndpointName => "the metrics endpoint has its second name",
            Self::Answering => "a query was not answered",
            Self::Device => "a device is not recorded",
            Self::Region => "a tt-metal region is not kept",
            Self::Environment => "a setting is not understood",
            Self::Metric => "a metric is not kept",
            Self::ProcessHooks => "a fork or an exit will leave files behind",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "telltale: {}: {}; {}", self.step.words(), self.cause, self.remedy)
    }
}

/// Counts problems and passes on the first ones of each step.
pub(crate) struct Problems {
    counts: [ProcessCount; ProblemStep::ALL.len()],
    /// Those of the processes that this one was forked from included: a child does not repeat them.
    with_parents: [AtomicU64; ProblemStep::ALL.len()],
    hook: Option<OnProblem>,
}

/// A count that starts at 0 in a forked child: the process in the upper bits, by the forks before it, and the count.
#[derive(Default)]
struct ProcessCount(AtomicU64);

impl ProcessCount {
    const COUNT_BITS: u32 = 48;
    const COUNT: u64 = (1 << Self::COUNT_BITS) - 1;

    fn add_one(&self) {
        let own = process_hooks::epoch() << Self::COUNT_BITS;
        let more = |before: u64| {
            let is_own = before & !Self::COUNT == own;
            let count = if is_own { before & Self::COUNT } else { 0 };
            Some(own | (count + 1).min(Self::COUNT))
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    fn get(&self) -> u64 {
        let found = self.0.load(Ordering::Relaxed);
        let is_own = found & !Self::COUNT == process_hooks::epoch() << Self::COUNT_BITS;
        if is_own { found & Self::COUNT } else { 0 }
    }
}

impl Problems {
    pub(crate) fn new(hook: Option<OnProblem>) -> Self {
        Self { counts: Default::default(), with_parents: Default::default(), hook }
    }

    pub(crate) fn tell(
        &self,
        step: ProblemStep,
        cause: &dyn std::error::Error,
        remedy: &'static str,
    ) {
        self.counts[step as usize].add_one();
        if self.with_parents[step as usize].fetch_add(1, Ordering::Relaxed) >= step.reports() {
            return;
        }
        let problem = Problem { step, cause: with_causes(cause), remedy };
        match &self.hook {
            Some(hook) => hook(&problem),
            None => eprintln_or_nothing(&problem),
        }
    }

    /// How often something went wrong in each step that had any trouble.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (ProblemStep, u64)> {
        ProblemStep::ALL
            .into_iter()
            .zip(&self.counts)
            .map(|(step, count)| (step, count.get()))
            .filter(|(_, count)| *count > 0)
    }
}

/// `eprintln!` panics when standard error is closed, and a workload must not die of that.
fn eprintln_or_nothing(problem: &Problem) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(format!("{problem}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{ProblemStep, Problems};
    use std::sync::{Arc, Mutex};

    #[test]
    fn each_step_is_reported_once_and_counted_always() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reported);
        let problems = Problems::new(Some(Arc::new(move |problem| {
            sink.lock().unwrap().push(problem.to_string());
        })));
        let full = std::io::Error::other("no space left");
        for _ in 0..3 {
            problems.tell(ProblemStep::Ledger, &full, "free some memory");
        }
        problems.tell(ProblemStep::Region, &full, "free some memory");
        assert_eq!(
            *reported.lock().unwrap(),
            [
                "telltale: memory is not recorded: no space left; free some memory",
                "telltale: a tt-metal region is not kept: no space left; free some memory"
            ]
        );
        let counts: Vec<_> = problems.counts().collect();
        assert_eq!(counts, [(ProblemStep::Ledger, 3), (ProblemStep::Region, 1)]);
    }

    #[test]
    fn steps_are_counted_in_their_own_place() {
        for (place, step) in ProblemStep::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, place);
        }
    }
}
