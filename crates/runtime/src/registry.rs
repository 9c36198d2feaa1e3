//! The application's own counters, gauges and histograms.
//!
//! Registering takes the runtime's cold lock; updating takes none and makes no allocation. The
//! number of series is bounded: one beyond the limit works for its holder and is shown to nobody.

mod naming;
mod series;

pub(crate) use series::Series;
pub use series::{Counter, Gauge, Histogram};

use std::collections::HashMap;
use std::sync::Arc;

use telltale_schema::snapshot::MetricSample;

use crate::problem::Step;
use crate::process_hooks;
use crate::runtime::Inner;

/// Series that one runtime keeps.
pub const MAX_SERIES: usize = 2048;

/// Registers metrics of a runtime. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

/// Why a metric is not kept. Its handle works, but nobody sees its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegisterError {
    #[error("{what} {text:?} is not a name of letters, digits and underscores")]
    Name { what: &'static str, text: String },
    #[error("metric {metric} begins like telltale's own")]
    Reserved { metric: String },
    #[error("{what} of metric {metric} is longer than {limit_bytes} bytes")]
    TooLong { metric: String, what: &'static str, limit_bytes: usize },
    #[error("metric {metric} has more than {limit} labels")]
    Labels { metric: String, limit: usize },
    #[error("label {label} of metric {metric} is given twice")]
    LabelTwice { metric: String, label: String },
    #[error("the bounds of histogram {metric} are not ascending numbers, at most {limit} of them")]
    Bounds { metric: String, limit: usize },
    #[error("metric {metric} is registered already, as something else")]
    Conflict { metric: String },
    #[error("there are {MAX_SERIES} series already; {metric} is one too many")]
    Full { metric: String },
}

/// What a series is known by.
pub(crate) type SeriesKey = (String, Vec<(String, String)>);

/// The series of one runtime, as they lie behind the cold lock.
#[derive(Default)]
pub(crate) struct Registered {
    by_key: HashMap<SeriesKey, usize>,
    series: Vec<Arc<Series>>,
}

impl Registered {
    /// The series with the name and labels of `fresh`, which becomes it if there is none.
    fn find_or_add(&mut self, fresh: &Arc<Series>) -> Result<Arc<Series>, RegisterError> {
        let metric = || fresh.name.clone();
        let key = (fresh.name.clone(), fresh.labels.clone());
        if let Some(found) = self.by_key.get(&key).and_then(|place| self.series.get(*place)) {
            return match found.is_like(fresh) {
                true => Ok(Arc::clone(found)),
                false => Err(RegisterError::Conflict { metric: metric() }),
            };
        }
        if self.series.len() >= MAX_SERIES {
            return Err(RegisterError::Full { metric: metric() });
        }
        self.by_key.insert(key, self.series.len());
        self.series.push(Arc::clone(fresh));
        Ok(Arc::clone(fresh))
    }

    /// All series, for reading them without the lock.
    pub(crate) fn all(&self) -> Vec<Arc<Series>> {
        self.series.clone()
    }
}

impl Registry {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
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
        let found = series.check().and_then(|()| match self.inner.is_enabled() {
            true => process_hooks::cold().runtime(self.inner.id).registered.find_or_add(&series),
            false => Ok(Arc::clone(&series)),
        });
        found.unwrap_or_else(|error| {
            let remedy =
                "the metric works for its owner and is shown to nobody; mend its registration";
            self.inner.problems.tell(Step::Metric, &error, remedy);
            series
        })
    }
}

/// The values of `series` now.
pub(crate) fn samples(series: &[Arc<Series>]) -> Vec<MetricSample> {
    series.iter().map(|series| series.sample()).collect()
}
