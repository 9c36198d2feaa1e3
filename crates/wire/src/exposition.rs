//! Metrics as text: Prometheus' format 0.0.4 and OpenMetrics 1.0.0.
//!
//! [`Encoder`] writes families of samples into a buffer that its owner reuses. What
//! it writes can be parsed whatever the values are: names are checked, texts are escaped, a family
//! is announced once and only when it has a sample. It writes no time of a sample, for a sample is
//! of the moment at which it is read. Nothing here does I/O.
//!
//! Callers must not begin a family twice, nor write two samples of a family with the same
//! labels: it does not remember what it wrote.

mod accept;
mod family;
mod labels;
mod number;

pub use accept::{Offer, choose};
pub use family::{Buckets, FamilyEncoder};
pub use labels::{LabelError, Labels, is_label_name, is_metric_name};
pub use number::Number;

use telltale_schema::metric::{MetricDefinition, MetricKind};

/// Which of the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4
    /// (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
    Text,
    /// OpenMetrics, version 1.0.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
    OpenMetrics,
}

/// What a family of samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The full name, with the unit and `_total` or `_info` where these belong to it; one that
    /// [`is_metric_name`] accepts.
    pub name: &'a str,
    /// What it means, in any characters.
    pub help: &'a str,
    /// How its values behave.
    pub kind: MetricKind,
    /// The unit, where it is the end of the name (before `_total`).
    pub unit: Option<&'a str>,
}

/// Writes one exposition.
#[derive(Debug)]
pub struct Encoder<'b> {
    format: Format,
    text: &'b mut String,
}

// === impl Format ===

impl Format {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Text, Self::OpenMetrics];

    /// The value of the header `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

// === impl Head ===

impl<'a> Head<'a> {
    /// The head of a metric of ours.
    pub fn of(definition: &MetricDefinition) -> Head<'static> {
        let MetricDefinition { name, help, kind, unit, .. } = *definition;
        Head { name, help, kind, unit: unit.suffix() }
    }

    /// The name without the ending that belongs to the kind: the name of the family in OpenMetrics.
    pub fn stem(&self) -> &'a str {
        let ending = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        self.name.strip_suffix(ending).unwrap_or(self.name)
    }

    /// The unit, if OpenMetrics lets this family have it: the name must end in it.
    fn announced_unit(&self) -> Option<&'a str> {
        let stem = self.stem();
        let fits = |unit: &&str| {
            is_metric_name(unit)
                && stem.strip_suffix(unit).is_some_and(|rest| rest.len() > 1 && rest.ends_with('_'))
        };
        self.unit.filter(fits)
    }
}

// === impl Encoder ===

impl<'b> Encoder<'b> {
    /// Begins an exposition in `text`, whose old contents go and whose room is used again.
    pub fn new(format: Format, text: &'b mut String) -> Self {
        text.clear();
        Self { format, text }
    }

    /// Begins a family. Nothing is written before its first sample.
    ///
    /// # Panics
    /// If its name is none: callers that take names from outside check them with [`is_metric_name`].
    pub fn family<'e>(&'e mut self, head: &Head<'e>) -> FamilyEncoder<'e> {
        assert!(is_metric_name(head.name), "{:?} is not a metric's name", head.name);
        FamilyEncoder::new(self.format, self.text, *head)
    }

    /// Goes on with a family of which the part before has a sample already.
    ///
    /// # Panics
    /// As [`Self::family`].
    pub fn rest_of_family<'e>(&'e mut self, head: &Head<'e>) -> FamilyEncoder<'e> {
        let mut family = self.family(head);
        family.was_announced();
        family
    }

    /// Ends the exposition.
    pub fn finish(self) {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
    }
}
