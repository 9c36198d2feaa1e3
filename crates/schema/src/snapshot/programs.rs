//! What a process reports about its program cache, put together from its metrics. Derived here, once,
//! so that code that shows it computes nothing.

use super::{MetricValue, Process};
use crate::metric::MetricDefinition;
use crate::metric::definitions::{
    PROCESS_PROGRAM_CACHE_HITS_TOTAL, PROCESS_PROGRAM_CACHE_MISSES_TOTAL, PROCESS_PROGRAMS_CACHED,
};

/// How a process's program cache did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramUse {
    /// Programs in the cache.
    pub cached: u64,
    /// Dispatches that found their program in it.
    pub hits: u64,
    /// Dispatches, those that had to compile included.
    pub dispatches: u64,
}

impl ProgramUse {
    /// The metrics that it is put together from.
    pub const METRICS: [&MetricDefinition; 3] = [
        PROCESS_PROGRAMS_CACHED,
        PROCESS_PROGRAM_CACHE_HITS_TOTAL,
        PROCESS_PROGRAM_CACHE_MISSES_TOTAL,
    ];

    /// The share of dispatches that found their program, from 0 to 1; none before the first.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.dispatches > 0).then(|| self.hits as f64 / self.dispatches as f64)
    }
}

impl Process {
    /// How its program cache did; none where it reports none.
    #[must_use]
    pub fn programs(&self) -> Option<ProgramUse> {
        let hits = self.reported(PROCESS_PROGRAM_CACHE_HITS_TOTAL)?;
        let misses = self.reported(PROCESS_PROGRAM_CACHE_MISSES_TOTAL)?;
        let cached = self.reported(PROCESS_PROGRAMS_CACHED)?;
        Some(ProgramUse { cached, hits, dispatches: hits.saturating_add(misses) })
    }

    /// A whole number that the process reports once.
    fn reported(&self, definition: &MetricDefinition) -> Option<u64> {
        let sample = self.metrics.iter().find(|sample| sample.name == definition.name)?;
        match sample.value {
            MetricValue::Counter(count) => Some(count),
            // What is no number of things becomes the nearest one.
            MetricValue::Gauge(value) => (value >= 0.0).then_some(value as u64),
            MetricValue::Histogram { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProgramUse;

    #[test]
    fn there_is_no_ratio_before_the_first_dispatch() {
        let cases = [(0, 0, None), (0, 4, Some(0.0)), (3, 4, Some(0.75)), (4, 4, Some(1.0))];
        for (hits, dispatches, ratio) in cases {
            assert_eq!(ProgramUse { cached: 1, hits, dispatches }.hit_ratio(), ratio);
        }
    }
}
