//! The application's own counters, gauges and histograms.
//!
//! Registering takes the runtime's cold lock; updating takes none and makes no allocation. The
//! number of series is bounded: one beyond the limit works for its holder and is shown to no
//! reader.

use std::sync::Arc;

use crate::cold;
use crate::problem::ProblemStep;
use crate::registered::{Counter, Gauge, Histogram, Series};
use crate::shared::RuntimeShared;

/// Registers metrics of a runtime. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<RuntimeShared>,
}

impl Registry {
    pub(crate) fn new(shared: Arc<RuntimeShared>) -> Self {
        Self { shared }
    }

    /// A count that only grows. The same name and labels give the same counter.
    pub fn counter(&self, name: &str, help: &str, unit: &str, labels: &[(&str, &str)]) -> Counter {
        Counter(self.register(Series::counter(name, help, unit, labels)))
    }

    /// A value that goes up and down. The same name and labels give the same gauge.
    pub fn gauge(&self, name: &str, help: &str, unit: &str, labels: &[(&str, &str)]) -> Gauge {
        Gauge(self.register(Series::gauge(name, help, unit, labels)))
    }

    /// Counts of observations up to each of `bounds`, which ascend. The same name, labels and
    /// bounds give the same histogram.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        unit: &str,
        labels: &[(&str, &str)],
        bounds: &[f64],
    ) -> Histogram {
        Histogram(self.register(Series::histogram(name, help, unit, labels, bounds)))
    }

    fn register(&self, series: Series) -> Arc<Series> {
        let series = Arc::new(series);
        let found = series.check().and_then(|()| match self.shared.is_enabled() {
            true => cold::lock().runtime(self.shared.id).registered.find_or_add(&series),
            false => Ok(Arc::clone(&series)),
        });
        found.unwrap_or_else(|error| {
            let remedy =
                "the metric works for its owner but is not shown; correct its registration";
            self.shared.problems.tell(ProblemStep::Metric, &error, remedy);
            series
        })
    }
}
