//! Metrics that processes register themselves. Their names, labels and values are whatever a
//! process chooses, so each is checked, names get a prefix of ours, and labels that mean something
//! to us or to Prometheus another one.
//!
//! What is beyond the limits is left out by the series of a row, with all its processes: a part of them
//! would look like a counter that fell. Rows come in an order in which nothing but their labels counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use telltale_schema::metric::{MetricKind, Scope};
use telltale_schema::snapshot::{MetricSample, MetricValue, Process, ProcessState};
use telltale_wire::exposition::{Number, is_label_name, is_metric_name};
use telltale_wire::limits::{MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_NAME_BYTES, MAX_TEXT_BYTES};

use super::entry::{Joining, SampleEntry};
use super::label_sets::SetId;
use super::process::is_ours;
use super::{BucketCounts, Family, SampleOptions, SampleValue, Samples, Total};

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

/// A sample as a process registers it. Those of one series are equal by all but the sample.
struct Registered<'a> {
    name: &'a str,
    kind: u8,
    labels: Cow<'a, [(String, String)]>,
    sample: &'a MetricSample,
}

impl<'a> Registered<'a> {
    fn of(sample: &'a MetricSample) -> Self {
        let kind = match sample.value {
            MetricValue::Counter(_) => 0,
            MetricValue::Gauge(_) => 1,
            MetricValue::Histogram { .. } => 2,
        };
        let mut labels = Cow::Borrowed(sample.labels.as_slice());
        if !labels.is_sorted() {
            labels.to_mut().sort();
        }
        Self { name: &sample.name, kind, labels, sample }
    }

    fn series(&self) -> (&str, u8, &[(String, String)]) {
        (self.name, self.kind, &self.labels)
    }

    /// How many series of Prometheus it is.
    fn size(&self) -> usize {
        match &self.sample.value {
            MetricValue::Histogram { counts, .. } => counts.len() + 2,
            MetricValue::Counter(_) | MetricValue::Gauge(_) => 1,
        }
    }
}

impl<'a> Applications<'a> {
    /// Adds what the processes of one row have registered, each series with all of them or with none, as
    /// far as the limits allow. Returns whether they left nothing out.
    pub(super) fn entries(
        &mut self,
        samples: &mut Samples<'a>,
        members: &[&'a Process],
        options: &SampleOptions,
        entries: &mut Vec<SampleEntry<'a>>,
    ) -> bool {
        let living = || members.iter().filter(|process| process.state != ProcessState::Dead);
        let own = living().flat_map(|process| process.metrics.iter());
        let own = own.filter(|sample| !is_ours(&sample.name));
        let mut registered: Vec<Registered<'a>> = own.map(Registered::of).collect();
        registered.sort_by(|one, other| one.series().cmp(&other.series()));
        let mut room = options.application_series_per_process.saturating_mul(living().count());
        let mut is_whole = true;
        for same in registered.chunk_by(|one, other| one.series() == other.series()) {
            let size = same.iter().map(Registered::size).max().unwrap_or_default();
            let number = u64::try_from(same.len()).unwrap_or(u64::MAX);
            if size > room || !self.has_room(size, options) {
                samples.dropped.application += number;
                is_whole = false;
            } else if let Some((family, third)) = self.place(samples, same[0].sample) {
                room -= size;
                self.series += size;
                entries.extend(same.iter().map(|one| entry(family, third, one.sample)));
            } else {
                samples.dropped.malformed += number;
            }
        }
        is_whole
    }

    fn has_room(&self, size: usize, options: &SampleOptions) -> bool {
        self.series.saturating_add(size) <= options.application_series
    }

    /// Takes room for a series of this size that no living process has. Returns whether there was any.
    pub(super) fn take_room(&mut self, size: usize, options: &SampleOptions) -> bool {
        let has_room = self.has_room(size, options);
        if has_room {
            self.series += size;
        }
        has_room
    }

    /// The family and the labels of a series; none where it is malformed, or its name is another metric's.
    fn place(
        &mut self,
        samples: &mut Samples<'a>,
        sample: &'a MetricSample,
    ) -> Option<(usize, SetId)> {
        let third = labels(samples, sample)?;
        Some((self.family(samples, sample)?, third))
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
        let claims = || kind.endings().iter().map(|ending| format!("{stem}{ending}"));
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

/// The entry of one process's sample in its series.
fn entry(family: usize, third: SetId, sample: &MetricSample) -> SampleEntry<'_> {
    let value = match &sample.value {
        MetricValue::Counter(count) => SampleValue::Number(Number::Whole(*count)),
        MetricValue::Gauge(value) => SampleValue::Number(Number::Float(*value)),
        MetricValue::Histogram { bounds, counts, sum } => {
            let bounds = Cow::Borrowed(bounds.as_slice());
            let counts = Cow::Borrowed(counts.as_slice());
            SampleValue::Buckets(Box::new(BucketCounts { bounds, counts, sum: Total::of(*sum) }))
        }
    };
    let (second, joining) = (SetId::default(), Joining::Sum);
    SampleEntry { family, second, third, value: Some(value), joining }
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
