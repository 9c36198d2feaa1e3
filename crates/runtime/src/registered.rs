//! The series that a runtime has registered, and what may be registered.

mod naming;
mod series;

pub use series::{Counter, Gauge, Histogram};
pub(crate) use series::{Series, SeriesValue};

use std::collections::HashMap;
use std::sync::Arc;

use telltale_schema::snapshot::MetricSample;

/// Series that one runtime keeps.
pub const MAX_SERIES: usize = 2048;

/// Why a metric is not kept. Its handle works, but its value is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each says what it is as its text, with the metric in it")]
pub enum RegisterError {
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
    #[error("metric {metric} is registered already with another kind, unit or bounds")]
    Conflict { metric: String },
    #[error("metric {metric} ends with _total, which is for counters")]
    Total { metric: String },
    #[error("metric {metric} would be shown as {shown}, which metric {other} is already")]
    ShownTwice { metric: String, shown: String, other: String },
    #[error("there are {MAX_SERIES} series already; {metric} is one too many")]
    Full { metric: String },
}

/// What a series is known by.
pub(crate) type SeriesKey = (String, Vec<(String, String)>);

/// The series of one runtime, as they lie behind the cold lock.
#[derive(Default)]
pub(crate) struct Registered {
    by_key: HashMap<SeriesKey, usize>,
    /// Whose each name on `/metrics` is.
    shown: HashMap<String, Arc<Series>>,
    series: Vec<Arc<Series>>,
}

impl Registered {
    /// The series with the name and labels of `fresh`, which becomes it if there is none.
    pub(crate) fn find_or_add(
        &mut self,
        fresh: &Arc<Series>,
    ) -> Result<Arc<Series>, RegisterError> {
        let metric = || fresh.name.clone();
        let key = (fresh.name.clone(), fresh.labels.clone());
        if let Some(found) = self.by_key.get(&key).and_then(|place| self.series.get(*place)) {
            return match found.is_like(fresh) {
                true => Ok(Arc::clone(found)),
                false => Err(RegisterError::Conflict { metric: metric() }),
            };
        }
        for shown in fresh.shown_names() {
            let Some(other) = self.shown.get(&shown) else { continue };
            if other.name != fresh.name {
                let other = other.name.clone();
                return Err(RegisterError::ShownTwice { metric: metric(), shown, other });
            }
            if !other.is_like(fresh) {
                return Err(RegisterError::Conflict { metric: metric() });
            }
        }
        if self.series.len() >= MAX_SERIES {
            return Err(RegisterError::Full { metric: metric() });
        }
        self.by_key.insert(key, self.series.len());
        self.series.push(Arc::clone(fresh));
        let names = fresh.shown_names();
        self.shown.extend(names.into_iter().map(|name| (name, Arc::clone(fresh))));
        Ok(Arc::clone(fresh))
    }

    /// Counters and histograms start at 0; a gauge keeps its value.
    pub(crate) fn restart_counts(&self) {
        self.series.iter().for_each(|series| series.restart_counts());
    }

    /// All series, for reading them without the lock.
    pub(crate) fn all(&self) -> Vec<Arc<Series>> {
        self.series.clone()
    }
}

/// The values of `series` now.
pub(crate) fn samples(series: &[Arc<Series>]) -> Vec<MetricSample> {
    series.iter().map(|series| series.sample()).collect()
}
