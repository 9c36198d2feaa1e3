//! Events as lines of JSON: one object each, with every element of a tensor up to a limit.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value as Json;

use super::Shown;
use crate::{Event, EventKind, Next, Statistics, Tensor, Value};

#[derive(Serialize)]
struct Line<'event> {
    kind: &'static str,
    #[serde(rename = "type")]
    code: u32,
    sequence: u64,
    time_ns: u64,
    core: u32,
    pipe: u32,
    prefix: &'event str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<u64>,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dtype: Option<&'event str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'event [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values_left_out: Option<usize>,
}

#[derive(Serialize)]
struct Summary {
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
struct Lost {
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
pub fn write_json_line(out: &mut impl Write, next: &Next, most_values: usize) -> io::Result<Shown> {
    let (mut text, shown) = match next {
        Next::Lost(losses) => {
            let (events, bytes, memory) = (losses.events, losses.bytes, losses.memory);
            (serde_json::to_vec(&Lost { kind: "lost", events, bytes, memory })?, Shown::Whole)
        }
        Next::Event(event) => (serde_json::to_vec(&line(event, most_values))?, Shown::of(event)),
    };
    text.push(b'\n');
    out.write_all(&text)?;
    Ok(shown)
}

fn line(event: &Event, most_values: usize) -> Line<'_> {
    let is_tensor = event.kind == EventKind::Tensor;
    let is_text = matches!(event.kind, EventKind::Text | EventKind::Breakpoint);
    let mut line = Line {
        kind: event.kind.name(),
        code: event.kind.code(),
        sequence: event.sequence,
        time_ns: event.time_ns,
        core: event.core,
        pipe: event.pipe,
        prefix: &event.prefix,
        iteration: event.iteration,
        bytes: event.data.len(),
        text: is_text.then(|| String::from_utf8_lossy(&event.data).into_owned()),
        dtype: is_tensor.then_some(&event.dtype),
        shape: is_tensor.then_some(&event.shape),
        malformed: None,
        statistics: None,
        values: None,
        values_left_out: None,
    };
    if is_tensor {
        match Tensor::of(event) {
            Ok(tensor) => {
                line.statistics = Some(summary(&tensor.statistics()));
                line.values = Some(tensor.values().take(most_values).map(json).collect());
                let left_out = tensor.elements().saturating_sub(most_values);
                line.values_left_out = (left_out > 0).then_some(left_out);
            }
            Err(reason) => line.malformed = Some(reason.to_string()),
        }
    }
    line
}

fn summary(found: &Statistics) -> Summary {
    Summary {
        min: found.min,
        max: found.max,
        mean: found.mean,
        std: found.standard_deviation,
        nan: found.nan,
        inf: found.infinite,
        zero: found.zero,
    }
}

fn json(value: Value) -> Json {
    match value {
        Value::Signed(value) => value.into(),
        Value::Unsigned(value) => value.into(),
        Value::Float(value) if value.is_nan() => "nan".into(),
        Value::Float(f64::INFINITY) => "inf".into(),
        Value::Float(f64::NEG_INFINITY) => "-inf".into(),
        Value::Float(value) => value.into(),
    }
}
