//! The application's own counters, gauges and histograms.
//!
//! Registering takes the runtime's cold lock; updating takes none and makes no allocation. The
//! number of series is bounded: one beyond the limit works for its holder and is shown to no
//! reader.

use std::sync::Arc;

use crate::cold;
use crate::problem::ProblemStep;
use crate::registered::{Counter, Gauge, Histogram, RegisterError, Series, SeriesValue};
use crate::shared::RuntimeShared;

/// Registers metrics of a runtime. Cheap to clone.
///
/// ```
/// # use telltale_runtime::{Options, Runtime};
/// # let runtime = Runtime::start(Options::new("an example 1.0"));
/// let metrics = runtime.registry();
/// let jobs = metrics.counter("jobs_total").label("queue", "a").register();
/// jobs.increment();
/// let seconds = metrics
///     .histogram("job_seconds", [0.01, 0.1, 1.0])
///     .help("Time from a job's start to its end.")
///     .unit("seconds")
///     .register();
/// seconds.observe(0.25);
/// ```
#[derive(Clone)]
pub struct Registry {
    shared: Arc<RuntimeShared>,
}

/// A metric that is described and not registered yet.
#[must_use = "a metric is shown once it is registered"]
pub struct Registration<'r, M> {
    registry: &'r Registry,
    series: Series,
    handle: fn(Arc<Series>) -> M,
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(shared: Arc<RuntimeShared>) -> Self {
        Self { shared }
    }

    /// A count that only grows. The same name and labels give the same counter.
    pub fn counter(&self, name: impl Into<String>) -> Registration<'_, Counter> {
        self.describe(name.into(), SeriesValue::counter(), Counter)
    }

    /// A value that goes up and down. The same name and labels give the same gauge.
    pub fn gauge(&self, name: impl Into<String>) -> Registration<'_, Gauge> {
        self.describe(name.into(), SeriesValue::gauge(), Gauge)
    }

    /// Counts of observations up to each of `bounds`, which ascend. The same name, labels and
    /// bounds give the same histogram.
    pub fn histogram(
        &self,
        name: impl Into<String>,
        bounds: impl AsRef<[f64]>,
    ) -> Registration<'_, Histogram> {
        self.describe(name.into(), SeriesValue::histogram(bounds.as_ref()), Histogram)
    }

    fn describe<M>(
        &self,
        name: String,
        value: SeriesValue,
        handle: fn(Arc<Series>) -> M,
    ) -> Registration<'_, M> {
        Registration { registry: self, series: Series::new(name, value), handle }
    }
}

// === impl Registration ===

impl<M> Registration<'_, M> {
    /// What it counts or measures, in a sentence.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.series.help = help.into();
        self
    }

    /// The unit, as OpenMetrics writes it: `seconds`, `bytes`. Readers see it where the name ends with it.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.series.unit = unit.into();
        self
    }

    /// Adds a label.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.series.labels.push((name.into(), value.into()));
        self
    }

    /// Registers it. Where that is not possible, the metric works for its holder, is shown to no reader, and the
    /// reason is a [`Problem`](crate::Problem).
    pub fn register(self) -> M {
        self.registered().0
    }

    /// The same, and says why it is shown to no reader.
    ///
    /// # Errors
    /// When the name, a label or the bounds are not allowed, another metric has the name, or there are too many.
    pub fn try_register(self) -> Result<M, RegisterError> {
        match self.registered() {
            (_, Some(error)) => Err(error),
            (metric, None) => Ok(metric),
        }
    }

    /// A metric that works in any case, and why it is shown to no reader.
    pub fn registered(self) -> (M, Option<RegisterError>) {
        let Self { registry, mut series, handle } = self;
        series.labels.sort();
        let series = Arc::new(series);
        let shared = &registry.shared;
        let found = series.check().and_then(|()| match shared.is_enabled() {
            true => cold::lock().runtime(shared.id).registered.find_or_add(&series),
            false => Ok(Arc::clone(&series)),
        });
        match found {
            Ok(found) => (handle(found), None),
            Err(error) => {
                let remedy =
                    "the metric works for its owner but is not shown; correct its registration";
                shared.problems.tell(ProblemStep::Metric, &error, remedy);
                (handle(series), Some(error))
            }
        }
    }
}
