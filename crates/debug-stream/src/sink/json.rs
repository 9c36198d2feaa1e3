//! Events as lines of JSON: one object each, with every element of a tensor up to a limit.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value as Json;

use super::Fidelity;
use crate::{ElementValue, Event, EventKind, Losses, NextEvent, Statistics, Tensor};

/// The version of the lines, which each of them has. It grows when a field changes its meaning or
/// goes away; new fields may come without.
pub(crate) const VERSION: u32 = 1;

/// An event's line; what is not known is left out.
#[derive(Default, Serialize)]
pub(crate) struct EventLine<'event> {
    pub(crate) version: u32,
    pub(crate) kind: &'static str,
    #[serde(rename = "type")]
    pub(crate) code: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) core: Option<u32>,
    pub(crate) pipe: u32,
    pub(crate) prefix: &'event str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iteration: Option<u64>,
    pub(crate) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dtype: Option<&'event str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<&'event [u64]>,
    /// The bytes of what has no values, each as two hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) malformed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statistics: Option<LineSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<Vec<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values_left_out: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct LineSummary {
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    std: Option<f64>,
    nan: u64,
    inf: u64,
    zero: u64,
}

#[derive(Serialize)]
pub(crate) struct Lost {
    version: u32,
    kind: &'static str,
    events: u64,
    bytes: u64,
    memory: u64,
}

/// Writes an event or a loss as one line, with at most so many elements. What is not finite is a
/// text: `"nan"`, `"inf"` or `"-inf"`.
///
/// # Errors
/// When writing fails.
pub fn write_json_line(
    out: &mut impl Write,
    next: &NextEvent,
    most_values: usize,
) -> io::Result<Fidelity> {
    let (mut text, shown) = match next {
        NextEvent::Lost(losses) => (serde_json::to_vec(&Lost::from(losses))?, Fidelity::Whole),
        NextEvent::Event(event) => {
            (serde_json::to_vec(&line(event, most_values))?, Fidelity::of(event))
        }
    };
    text.push(b'\n');
    out.write_all(&text)?;
    Ok(shown)
}

fn line(event: &Event, most_values: usize) -> EventLine<'_> {
    let is_tensor = event.kind == EventKind::Tensor;
    let is_text = matches!(event.kind, EventKind::Text | EventKind::Breakpoint);
    let mut line = EventLine {
        version: VERSION,
        kind: event.kind.name(),
        code: event.kind.code(),
        sequence: Some(event.sequence),
        time_ns: Some(event.time_ns),
        core: Some(event.core),
        pipe: event.pipe,
        prefix: &event.prefix,
        iteration: event.iteration,
        bytes: u64::try_from(event.data.len()).unwrap_or(u64::MAX),
        text: is_text.then(|| String::from_utf8_lossy(&event.data).into_owned()),
        dtype: is_tensor.then_some(&event.dtype),
        shape: is_tensor.then_some(&event.shape),
        ..EventLine::default()
    };
    if is_tensor {
        match Tensor::of(event) {
            Ok(tensor) => {
                line.statistics = Some(LineSummary::from(&tensor.statistics()));
                line.put_values(&tensor, most_values);
            }
            Err(reason) => line.malformed = Some(reason.to_string()),
        }
    }
    line
}

impl EventLine<'_> {
    /// Adds at most so many elements, and how many more there are.
    pub(crate) fn put_values(&mut self, tensor: &Tensor<'_>, most_values: usize) {
        self.values = Some(tensor.values().take(most_values).map(json).collect());
        let left_out = tensor.elements().saturating_sub(most_values);
        self.values_left_out = (left_out > 0).then_some(left_out);
    }
}

impl From<&Statistics> for LineSummary {
    fn from(found: &Statistics) -> Self {
        Self {
            min: found.min,
            max: found.max,
            mean: found.mean,
            std: found.standard_deviation,
            nan: found.nan,
            inf: found.infinite,
            zero: found.zero,
        }
    }
}

impl From<&Losses> for Lost {
    fn from(losses: &Losses) -> Self {
        let (events, bytes, memory) = (losses.events, losses.bytes, losses.memory);
        Self { version: VERSION, kind: "lost", events, bytes, memory }
    }
}

fn json(value: ElementValue) -> Json {
    match value {
        ElementValue::Signed(value) => value.into(),
        ElementValue::Unsigned(value) => value.into(),
        ElementValue::Float(value) if value.is_nan() => "nan".into(),
        ElementValue::Float(f64::INFINITY) => "inf".into(),
        ElementValue::Float(f64::NEG_INFINITY) => "-inf".into(),
        ElementValue::Float(value) => value.into(),
    }
}
