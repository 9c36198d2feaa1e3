//! What is published, as families of samples by the definitions of the schema: the one thing from
//! which the texts of Prometheus and the messages of OpenTelemetry are made.
//!
//! What is not known has no sample. Processes that have name, user and container in common share
//! a row, and those beyond the limit share the row [`OTHER`], so that the number of series is
//! bounded and sums over rows stay exact. Nothing here does I/O or changes what it reads.

mod alerts;
mod applications;
mod carry;
mod device;
mod entry;
mod health;
mod holders;
mod label_sets;
mod process;
mod rows;
mod service;
mod total;
mod writing;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use telltale_schema::clock::Timestamp;
use telltale_schema::metric::{DEFINITIONS, MetricDefinition, MetricKind};
use telltale_schema::snapshot::Snapshot;
use telltale_wire::exposition::{Format, Head, Number};

use crate::service::Published;
use carry::Carry;
use label_sets::{LabelSets, SetId};

pub use applications::PREFIX as APPLICATION_PREFIX;
pub use service::HttpMetrics;
pub use total::Total;
pub use writing::Writing;

/// The name in the label `process` of the row that stands for all processes beyond the limit. It
/// has no user, which every other row has.
pub const OTHER: &str = "_other";

/// How many series there may be, and which labels those of processes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SampleOptions {
    /// Series of processes, the row `_other` apart. Those with most memory have them.
    pub process_series: usize,
    /// Series that processes themselves register, all together.
    pub application_series: usize,
    /// Series that a row may have of these, for each of its processes.
    pub application_series_per_process: usize,
    /// Whether processes have the label `pid`, and a row each. Every process that ever ran is then
    /// a set of series of its own in whatever keeps them.
    pub process_pids: bool,
    /// Holders of a device that have series of their own with a pid, whatever [`Self::process_pids`]
    /// says: those with most memory. With 0 there are no series of holders.
    pub holders_per_device: usize,
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            process_series: 20_000,
            application_series: 2_000,
            application_series_per_process: 200,
            process_pids: false,
            holders_per_device: 20,
        }
    }
}

/// Makes samples, for one reader or for several that may see the same. It remembers what counters
/// of ended processes had, so that no row's counter goes down while the row is there.
#[derive(Debug, Default)]
pub struct Sampler {
    options: SampleOptions,
    carry: Carry,
}

/// Families of samples.
#[derive(Debug)]
pub struct Samples<'a> {
    sets: LabelSets<'a>,
    /// One for each definition, in their order, then those that processes register.
    families: Vec<Family<'a>>,
    dropped: Dropped,
}

/// A family of samples.
#[derive(Debug)]
pub struct Family<'a> {
    name: Cow<'a, str>,
    help: Cow<'a, str>,
    kind: MetricKind,
    unit: Option<Cow<'a, str>>,
    definition: Option<&'static MetricDefinition>,
    created: Option<Timestamp>,
    samples: Vec<Sample<'a>>,
}

/// A value with its labels.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    sets: [SetId; 3],
    value: SampleValue<'a>,
}

/// A sample's value.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleValue<'a> {
    /// A counter's, gauge's or info's.
    Number(Number),
    /// A histogram's.
    Buckets(Box<BucketCounts<'a>>),
}

/// What a histogram has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketCounts<'a> {
    /// Upper bounds, ascending; the infinite one is left out.
    pub bounds: Cow<'a, [f64]>,
    /// Observations in each bucket, one more than bounds; not cumulative.
    pub counts: Cow<'a, [u64]>,
    /// The sum of all observations.
    pub sum: Total,
}

/// Series that were left out, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Of processes beyond the limit; [`OTHER`] has their sums.
    pub process: u64,
    /// Registered by processes, beyond a limit or of processes in [`OTHER`].
    pub application: u64,
    /// With a name, a label or a value that cannot be, or that belongs to another metric.
    pub malformed: u64,
}

// === impl Sampler ===

impl Sampler {
    /// A sampler that has seen nothing.
    pub fn new(options: SampleOptions) -> Self {
        Self { options, carry: Carry::default() }
    }

    /// The samples of what is published. Processes are those of `visible`, which is the
    /// published snapshot as its reader may see it; devices are reported in full.
    pub fn sample<'a>(
        &mut self,
        published: &'a Published,
        visible: &'a Arc<Snapshot>,
        http: Option<&HttpMetrics>,
    ) -> Samples<'a> {
        let mut samples = Samples::empty();
        device::add(&mut samples, &published.snapshot);
        rows::add(&mut samples, visible, &self.options, &mut self.carry);
        holders::add(&mut samples, visible, self.options.holders_per_device);
        service::add(&mut samples, published, http);
        health::add(&mut samples, &published.snapshot);
        alerts::add(&mut samples, published);
        samples
    }
}

// === impl Samples ===

impl<'a> Samples<'a> {
    fn empty() -> Self {
        let families = DEFINITIONS.iter().map(|definition| Family::defined(definition)).collect();
        Self { sets: LabelSets::default(), families, dropped: Dropped::default() }
    }

    /// The families that have samples.
    pub fn families(&self) -> impl Iterator<Item = &Family<'a>> {
        self.families.iter().filter(|family| !family.samples.is_empty())
    }

    /// A sample's labels with their values.
    pub fn labels(&self, sample: &Sample<'a>) -> impl Iterator<Item = (&str, &str)> {
        sample.sets.into_iter().flat_map(|set| self.sets.pairs(set))
    }

    /// How many samples there are.
    pub fn count(&self) -> usize {
        self.families.iter().map(|family| family.samples.len()).sum()
    }

    /// What was left out.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Writes all of them as text into `text`, whose room is used again.
    pub fn encode(&self, format: Format, text: &mut String) {
        let mut writing = Writing::new(self, format);
        writing.next_part(usize::MAX, text);
    }

    /// Adds a sample of a metric of ours.
    fn put(&mut self, definition: &MetricDefinition, sets: [SetId; 3], value: Number) {
        let family = place(definition);
        self.families[family].samples.push(Sample { sets, value: SampleValue::Number(value) });
    }
}

/// Where a definition is among all, which is where its family is.
fn place(definition: &MetricDefinition) -> usize {
    let found = DEFINITIONS.binary_search_by(|other| other.name.cmp(definition.name));
    found.expect("every definition is in the list, which is sorted by name")
}

// === impl Family ===

impl<'a> Family<'a> {
    fn defined(definition: &'static MetricDefinition) -> Self {
        Self {
            name: Cow::Borrowed(definition.name),
            help: Cow::Borrowed(definition.help),
            kind: definition.kind,
            unit: definition.unit.suffix().map(Cow::Borrowed),
            definition: Some(definition),
            created: None,
            samples: Vec::new(),
        }
    }

    /// What it is.
    pub fn head(&self) -> Head<'_> {
        let Self { name, help, kind, unit, .. } = self;
        Head { name, help, kind: *kind, unit: unit.as_deref() }
    }

    /// Its definition; none where a process registered it.
    pub fn definition(&self) -> Option<&'static MetricDefinition> {
        self.definition
    }

    /// When its counters began to count, where that is known.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
    }

    /// Its samples.
    pub fn samples(&self) -> &[Sample<'a>] {
        &self.samples
    }
}

// === impl Sample ===

impl<'a> Sample<'a> {
    /// Its value.
    pub fn value(&self) -> &SampleValue<'a> {
        &self.value
    }
}

// === impl Dropped ===

impl Dropped {
    /// With the names of the reasons.
    pub fn by_reason(self) -> [(&'static str, u64); 3] {
        [
            ("process", self.process),
            ("application", self.application),
            ("malformed", self.malformed),
        ]
    }

    /// Adds those of another making.
    pub fn add(&mut self, other: Self) {
        let Self { process, application, malformed } = other;
        self.process = self.process.saturating_add(process);
        self.application = self.application.saturating_add(application);
        self.malformed = self.malformed.saturating_add(malformed);
    }
}

#[cfg(test)]
pub(crate) mod tests;
