//! One family: its announcement, and its samples line by line.

use telltale_schema::clock::Timestamp;
use telltale_schema::metric::MetricKind;

use super::labels::escape;
use super::number::{float, seconds};
use super::{Format, Head, Labels, Number};

/// Writes the samples of one family.
#[derive(Debug)]
pub struct FamilyEncoder<'e> {
    format: Format,
    text: &'e mut String,
    head: Head<'e>,
    announced: bool,
}

/// What a histogram has counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buckets<'a> {
    /// Upper bounds, ascending and finite; the infinite one is left out.
    pub bounds: &'a [f64],
    /// Observations in each bucket, one more than bounds; not cumulative.
    pub counts: &'a [u64],
    /// The sum of all observations.
    pub sum: f64,
}

impl<'e> FamilyEncoder<'e> {
    pub(super) fn new(format: Format, text: &'e mut String, head: Head<'e>) -> Self {
        Self { format, text, head, announced: false }
    }

    pub(super) fn was_announced(&mut self) {
        self.announced = true;
    }

    /// How long the text is by now.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Writes a sample of a counter, a gauge or an info with all of these labels. `created` is when
    /// a counter began to count, where that is known; OpenMetrics alone says it.
    pub fn sample(&mut self, labels: &[&Labels], value: Number, created: Option<Timestamp>) {
        self.announce();
        self.line("", labels, None, value);
        if self.head.kind == MetricKind::Counter {
            self.created(labels, created);
        }
    }

    /// Writes a histogram with all of these labels: its buckets, then how many and how much. What
    /// is no histogram is left out: bounds that do not ascend, or another number of counts.
    pub fn histogram(
        &mut self,
        labels: &[&Labels],
        buckets: Buckets<'_>,
        created: Option<Timestamp>,
    ) {
        let Buckets { bounds, counts, sum } = buckets;
        let ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        let finite = bounds.iter().all(|bound| bound.is_finite());
        if !ascending || !finite || counts.len() != bounds.len() + 1 {
            return;
        }
        self.announce();
        let mut so_far = 0u64;
        for (place, count) in counts.iter().enumerate() {
            so_far = so_far.saturating_add(*count);
            let bound = bounds.get(place).copied().unwrap_or(f64::INFINITY);
            self.line("_bucket", labels, Some(bound), Number::Whole(so_far));
        }
        // A sum is a counter of its own in OpenMetrics, which cannot be where observations may
        // be negative; without it there is no count either, which the last bucket says anyway.
        let only_grows = sum >= 0.0 && sum.is_finite() && bounds.first().is_none_or(|b| *b >= 0.0);
        if only_grows || self.format == Format::Text {
            self.line("_sum", labels, None, Number::Float(sum));
            self.line("_count", labels, None, Number::Whole(so_far));
        }
        self.created(labels, created);
    }

    /// Writes what the family is, before its first sample.
    fn announce(&mut self) {
        if std::mem::replace(&mut self.announced, true) {
            return;
        }
        let (name, kind) = match (self.format, self.head.kind) {
            (Format::Text, MetricKind::Counter) => (self.head.name, "counter"),
            // Format 0.0.4 has no such type.
            (Format::Text, MetricKind::Info) => (self.head.name, "gauge"),
            (_, MetricKind::Counter) => (self.head.stem(), "counter"),
            (_, MetricKind::Info) => (self.head.stem(), "info"),
            (_, MetricKind::Gauge) => (self.head.name, "gauge"),
            (_, MetricKind::Histogram) => (self.head.name, "histogram"),
        };
        self.text.extend(["# HELP ", name, " "]);
        escape(self.head.help, self.format == Format::OpenMetrics, self.text);
        self.text.extend(["\n# TYPE ", name, " ", kind, "\n"]);
        if let (Format::OpenMetrics, Some(unit)) = (self.format, self.head.announced_unit()) {
            self.text.extend(["# UNIT ", name, " ", unit, "\n"]);
        }
    }

    fn created(&mut self, labels: &[&Labels], created: Option<Timestamp>) {
        if let (Format::OpenMetrics, Some(created)) = (self.format, created) {
            self.text.push_str(self.head.stem());
            self.text.push_str("_created");
            self.braces(labels, None);
            seconds(created.0, self.text);
            self.text.push('\n');
        }
    }

    fn line(&mut self, ending: &str, labels: &[&Labels], bound: Option<f64>, value: Number) {
        self.text.push_str(self.head.name);
        self.text.push_str(ending);
        self.braces(labels, bound);
        value.write(self.text);
        self.text.push('\n');
    }

    /// The labels in their braces, if there are any, and the space before the value.
    fn braces(&mut self, labels: &[&Labels], bound: Option<f64>) {
        let mut before = '{';
        for labels in labels.iter().filter(|labels| !labels.is_empty()) {
            self.text.push(before);
            self.text.push_str(labels.as_str());
            before = ',';
        }
        if let Some(bound) = bound {
            self.text.push(before);
            self.text.push_str("le=\"");
            float(bound, self.text);
            self.text.push('"');
            before = ',';
        }
        self.text.push_str(if before == '{' { " " } else { "} " });
    }
}
