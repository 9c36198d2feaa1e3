//! Series filled with what a service recorded before the view was opened.

use std::collections::HashMap;
use std::time::Duration;

use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, Series};
use telltale_schema::metric::definitions::PROCESS_MEMORY_LIVE_BYTES;
use telltale_schema::snapshot::Snapshot;

use super::{GraphSeries, History, SAMPLES};
use crate::screen::row::Who;
use crate::screen::settings::GraphValue;

impl History {
    /// Fills the samples from before the view's first one with what the history has, a period apart.
    /// A sample that is there already stays, and a gap in the history is one here.
    pub(in crate::screen) fn fill(
        &mut self,
        answer: &HistoryAnswer,
        snapshot: &Snapshot,
        period: Duration,
    ) {
        let Some(first) = self.times.front().copied() else { return };
        let live_from = *self.live_from.get_or_insert(first);
        self.reach_back(answer.from, period);
        let places = |at: Timestamp| {
            let span_ns = answer.step_ms.saturating_mul(1_000_000);
            usize::try_from(at.0.checked_sub(answer.from.0)?.checked_div(span_ns)?).ok()
        };
        // The place in the answer of each sample that is older than the view.
        let old = self.times.iter().take_while(|time| **time < live_from);
        let places: Vec<Option<usize>> = old.map(|time| places(*time)).collect();
        let mut processes: HashMap<Who, Vec<Option<f64>>> = HashMap::new();
        let length = self.times.len();
        for series in &answer.series {
            let values = places.iter().map(|place| *series.mean.get((*place)?)?);
            if let Some(process) = &series.process {
                if self.is_of_processes(series) {
                    let who = Who::Known(process.identity);
                    let sums = processes.entry(who).or_insert_with(|| vec![None; places.len()]);
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = plus(*sum, value));
                }
                continue;
            }
            let device = series.device.as_ref();
            let device = device.and_then(|id| snapshot.devices.iter().find(|it| it.id == *id));
            let Some((device, value)) = device.zip(GraphValue::of_series(series)) else { continue };
            let Some(full) = value.unit(device) else { continue };
            let known = self.devices.get_mut(&device.id);
            if let Some(known) = known.and_then(|all| all.get_mut(value.place())) {
                known.fill(length, values.map(|value| Some(value? / full)));
            }
        }
        for (who, values) in processes {
            if let Some(known) = self.processes.get_mut(&who) {
                known.fill(length, values.into_iter());
            }
        }
    }

    /// Has times from before the first sample, back to this one, as many as series keep.
    fn reach_back(&mut self, to: Timestamp, period: Duration) {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        while self.times.len() < SAMPLES {
            let earlier = self.times.front().and_then(|first| first.0.checked_sub(period_ns));
            let Some(earlier) = earlier.filter(|earlier| *earlier >= to.0) else { return };
            self.times.push_front(Timestamp(earlier));
        }
    }

    /// Whether it is one of those that are kept of processes.
    fn is_of_processes(&self, series: &Series) -> bool {
        let label = series.label.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
        series.metric == PROCESS_MEMORY_LIVE_BYTES.name
            && label == Some(("space", self.space.name()))
    }
}

impl GraphSeries {
    /// Puts these in the place of the oldest of `length` samples, where there are none.
    fn fill(&mut self, length: usize, values: impl Iterator<Item = Option<f64>>) {
        while self.0.len() < length {
            self.0.push_front(Self::packed(None));
        }
        for (known, value) in self.0.iter_mut().zip(values) {
            if known.is_nan() {
                *known = Self::packed(value.filter(|value| value.is_finite()));
            }
        }
    }
}

/// Both added up, as far as they are known.
fn plus(one: Option<f64>, two: Option<f64>) -> Option<f64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one + two),
        (one, two) => one.or(two),
    }
}
