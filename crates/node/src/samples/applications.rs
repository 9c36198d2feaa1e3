//! Metrics that processes register themselves. Their names, labels and values are whatever a
//! process chooses, so each is checked, names get a prefix of ours, and labels that mean something
//! to us or to Prometheus another one.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use telltale_schema::metric::{MetricKind, Scope};
use telltale_schema::snapshot::{MetricSample, MetricValue, Process, ProcessState};
use telltale_wire::exposition::{Number, is_label_name, is_metric_name};
use telltale_wire::limits::{MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_NAME_BYTES, MAX_TEXT_BYTES};

use super::entry::{Entry, Joining};
use super::label_sets::SetId;
use super::process::is_ours;
use super::{BucketCounts, Family, SampleOptions, Samples, Total, Value};

/// What the names of these metrics begin with here.
pub const PREFIX: &str = "telltale_application_";

/// What is put before a label that has a meaning already.
const LABEL_PREFIX: &str = "application_";

/// Labels that mean something to Prometheus, besides those of a row.
const TAKEN: [&str; 5] = ["pid", "le", "quantile", "job", "instance"];

/// The families that processes have registered, as far as they are known by now.
#[derive(Debug, Default)]
pub(super) struct Applications<'a> {
    by_name: HashMap<Cow<'a, str>, usize>,
    /// Every name that a line may have.
    claimed: HashSet<String>,
    series: usize,
}

/// The endings that lines of a family may have.
fn endings(kind: MetricKind) -> &'static [&'static str] {
    match kind {
        MetricKind::Counter => &["", "_total", "_created"],
        MetricKind::Gauge | MetricKind::Info => &[""],
        MetricKind::Histogram => &["", "_bucket", "_sum", "_count", "_created"],
    }
}

impl<'a> Applications<'a> {
    /// Adds what `process` has registered, as far as the limits allow.
    pub(super) fn entries(
        &mut self,
        samples: &mut Samples<'a>,
        process: &'a Process,
        options: &SampleOptions,
        entries: &mut Vec<Entry<'a>>,
    ) {
        if process.state == ProcessState::Dead {
            return;
        }
        let mut room = options.application_series_per_process;
        for sample in process.metrics.iter().filter(|sample| !is_ours(&sample.name)) {
            let size = match &sample.value {
                MetricValue::Histogram { counts, .. } => counts.len() + 2,
                MetricValue::Counter(_) | MetricValue::Gauge(_) => 1,
            };
            if size > room || self.series.saturating_add(size) > options.application_series {
                samples.dropped.application += 1;
                continue;
            }
            match self.entry(samples, sample) {
                Some(entry) => {
                    room -= size;
                    self.series += size;
                    entries.push(entry);
                }
                None => samples.dropped.malformed += 1,
            }
        }
    }

    /// The entry of one sample; none where it is malformed, or its name is another metric's.
    fn entry(&mut self, samples: &mut Samples<'a>, sample: &'a MetricSample) -> Option<Entry<'a>> {
        let third = labels(samples, sample)?;
        let family = self.family(samples, sample)?;
        let value = match &sample.value {
            MetricValue::Counter(count) => Value::Number(Number::Whole(*count)),
            MetricValue::Gauge(value) => Value::Number(Number::Float(*value)),
            MetricValue::Histogram { bounds, counts, sum } => {
                let bounds = Cow::Borrowed(bounds.as_slice());
                let counts = Cow::Borrowed(counts.as_slice());
                Value::Buckets(Box::new(BucketCounts { bounds, counts, sum: Total::of(*sum) }))
            }
        };
        let (second, joining) = (SetId::default(), Joining::Sum);
        Some(Entry { family, second, third, value: Some(value), joining })
    }

    /// The family of this name and kind, made by the first that registers it.
    fn family(&mut self, samples: &mut Samples<'a>, sample: &'a MetricSample) -> Option<usize> {
        let kind = match sample.value {
            MetricValue::Counter(_) => MetricKind::Counter,
            MetricValue::Gauge(_) => MetricKind::Gauge,
            MetricValue::Histogram { .. } => MetricKind::Histogram,
        };
        if !is_metric_name(&sample.name) || sample.name.len() > MAX_NAME_BYTES {
            return None;
        }
        // Its name would say that it is a counter.
        if kind != MetricKind::Counter && sample.name.ends_with("_total") {
            return None;
        }
        if let Some(known) = self.by_name.get(sample.name.as_str()).copied() {
            return (samples.families[known].kind == kind).then_some(known);
        }
        let stem = match sample.name.strip_suffix("_total") {
            Some(stem) if kind == MetricKind::Counter => stem,
            _ => &sample.name,
        };
        let stem = format!("{PREFIX}{stem}");
        let claims = || endings(kind).iter().map(|ending| format!("{stem}{ending}"));
        if claims().any(|name| self.claimed.contains(&name)) {
            return None;
        }
        self.claimed.extend(claims());
        let place = samples.families.len();
        let help = &sample.help[..sample.help.floor_char_boundary(MAX_TEXT_BYTES)];
        let name = if kind == MetricKind::Counter { format!("{stem}_total") } else { stem };
        samples.families.push(Family {
            name: Cow::Owned(name),
            help: Cow::Borrowed(if help.is_empty() { "Registered by processes." } else { help }),
            kind,
            unit: (!sample.unit.is_empty()).then_some(Cow::Borrowed(sample.unit.as_str())),
            definition: None,
            created: None,
            samples: Vec::new(),
        });
        self.by_name.insert(Cow::Borrowed(sample.name.as_str()), place);
        Some(place)
    }

    /// The place of the family that is shown under this name, where there is one.
    pub(super) fn place_of(samples: &Samples<'_>, shown: &str) -> Option<usize> {
        samples.families.iter().position(|family| family.name == shown)
    }
}

/// The labels of a sample, sorted; none where one of them cannot be.
fn labels<'a>(samples: &mut Samples<'a>, sample: &'a MetricSample) -> Option<SetId> {
    if sample.labels.len() > MAX_LABELS {
        return None;
    }
    let mut sorted: BTreeMap<Cow<'a, str>, Cow<'a, str>> = BTreeMap::new();
    for (name, value) in &sample.labels {
        if !is_label_name(name) || name.len() > MAX_NAME_BYTES {
            return None;
        }
        let taken = TAKEN.contains(&name.as_str())
            || Scope::Process.labels().contains(&name.as_str())
            || name.starts_with(LABEL_PREFIX);
        let name = match taken {
            true => Cow::Owned(format!("{LABEL_PREFIX}{name}")),
            false => Cow::Borrowed(name.as_str()),
        };
        let value = &value[..value.floor_char_boundary(MAX_LABEL_VALUE_BYTES)];
        if sorted.insert(name, Cow::Borrowed(value)).is_some() {
            return None;
        }
    }
    Some(samples.sets.of(sorted))
}
