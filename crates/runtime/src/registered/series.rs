//! One series and the handles that update it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telltale_schema::metric::MetricKind;
use telltale_schema::snapshot::{MetricSample, MetricValue};

use super::{RegisterError, naming};

/// One metric with one set of labels, and its value.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) unit: String,
    pub(crate) labels: Vec<(String, String)>,
    cell: SeriesValue,
}

/// A value that any thread may change.
pub(crate) enum SeriesValue {
    Counter(AtomicU64),
    /// The bits of an `f64`.
    Gauge(AtomicU64),
    Histogram {
        bounds: Box<[f64]>,
        counts: Box<[AtomicU64]>,
        sum: AtomicU64,
    },
}

/// A count that only grows. Adding is one relaxed atomic addition.
#[derive(Clone)]
pub struct Counter(pub(crate) Arc<Series>);

/// A value that goes up and down.
#[derive(Clone)]
pub struct Gauge(pub(crate) Arc<Series>);

/// Counts of observations in buckets.
#[derive(Clone)]
pub struct Histogram(pub(crate) Arc<Series>);

impl Counter {
    /// Adds `count`; past 2⁶⁴ − 1 it starts again from 0, as readers of counters expect.
    #[inline]
    pub fn add(&self, count: u64) {
        if let SeriesValue::Counter(value) = &self.0.cell {
            value.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }
}

impl Gauge {
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: f64) {
        if let SeriesValue::Gauge(bits) = &self.0.cell {
            bits.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Adds to the value; a negative number takes away.
    #[inline]
    pub fn add(&self, change: f64) {
        if let SeriesValue::Gauge(bits) = &self.0.cell {
            add_float(bits, change);
        }
    }
}

impl Histogram {
    /// Counts one observation. NaN belongs to no bucket and is not counted.
    #[inline]
    pub fn observe(&self, value: f64) {
        let SeriesValue::Histogram { bounds, counts, sum } = &self.0.cell else { return };
        if value.is_nan() {
            return;
        }
        let bucket = bounds.partition_point(|bound| *bound < value);
        if let Some(count) = counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
            add_float(sum, value);
        }
    }
}

/// Retries only when another thread got in between, so some thread always gets on.
fn add_float(bits: &AtomicU64, change: f64) {
    let mut seen = bits.load(Ordering::Relaxed);
    loop {
        let changed = (f64::from_bits(seen) + change).to_bits();
        match bits.compare_exchange_weak(seen, changed, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => seen = other,
        }
    }
}

impl Series {
    /// One without help, unit and labels.
    pub(crate) const fn new(name: String, cell: SeriesValue) -> Self {
        Self { name, help: String::new(), unit: String::new(), labels: Vec::new(), cell }
    }

    pub(crate) fn check(&self) -> Result<(), RegisterError> {
        naming::check(self)
    }

    /// Whether `other` may share this one's value.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let same_form = std::mem::discriminant(&self.cell) == std::mem::discriminant(&other.cell);
        same_form && self.unit == other.unit && self.bounds() == other.bounds()
    }

    /// The names that its lines may have on `/metrics`, and its own.
    pub(super) fn shown_names(&self) -> Vec<String> {
        let kind = self.kind();
        let stem = match kind {
            MetricKind::Counter => self.name.strip_suffix("_total").unwrap_or(&self.name),
            _ => &self.name,
        };
        kind.endings().iter().map(|ending| format!("{stem}{ending}")).collect()
    }

    pub(super) const fn kind(&self) -> MetricKind {
        match &self.cell {
            SeriesValue::Counter(_) => MetricKind::Counter,
            SeriesValue::Gauge(_) => MetricKind::Gauge,
            SeriesValue::Histogram { .. } => MetricKind::Histogram,
        }
    }

    pub(crate) fn bounds(&self) -> &[f64] {
        match &self.cell {
            SeriesValue::Histogram { bounds, .. } => bounds,
            SeriesValue::Counter(_) | SeriesValue::Gauge(_) => &[],
        }
    }

    /// A counter or histogram starts at 0; a gauge keeps its value.
    pub(super) fn restart_counts(&self) {
        match &self.cell {
            SeriesValue::Counter(value) => value.store(0, Ordering::Relaxed),
            SeriesValue::Gauge(_) => {}
            SeriesValue::Histogram { counts, sum, .. } => {
                counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
                sum.store(0.0f64.to_bits(), Ordering::Relaxed);
            }
        }
    }

    /// The value now. Buckets and sum of a histogram are read one after the other.
    pub(crate) fn sample(&self) -> MetricSample {
        let value = match &self.cell {
            SeriesValue::Counter(value) => MetricValue::Counter(value.load(Ordering::Relaxed)),
            SeriesValue::Gauge(bits) => {
                MetricValue::Gauge(f64::from_bits(bits.load(Ordering::Relaxed)))
            }
            SeriesValue::Histogram { bounds, counts, sum } => MetricValue::Histogram {
                bounds: bounds.to_vec(),
                counts: counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
                sum: f64::from_bits(sum.load(Ordering::Relaxed)),
            },
        };
        MetricSample {
            name: self.name.clone(),
            help: self.help.clone(),
            unit: self.unit.clone(),
            labels: self.labels.clone(),
            value,
        }
    }
}

impl SeriesValue {
    pub(crate) const fn counter() -> Self {
        Self::Counter(AtomicU64::new(0))
    }

    pub(crate) const fn gauge() -> Self {
        // The bits of 0.0.
        Self::Gauge(AtomicU64::new(0))
    }

    pub(crate) fn histogram(bounds: &[f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self::Histogram { bounds: bounds.into(), counts, sum: AtomicU64::new(0.0f64.to_bits()) }
    }
}
