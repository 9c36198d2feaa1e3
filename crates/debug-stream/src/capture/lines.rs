//! Captures as lines of JSON: one object each, as [`crate::sink::write_json_line`] writes them.
//! Numbers become the codes of their type again, so that the tensors are the same.

use std::fmt;
use std::io::{self, Write};

use serde::de::{Deserializer, Error, IgnoredAny, Visitor};
use serde::{Deserialize, Serialize};

use super::{CapturedEvent, Item, Payload, Unreadable};
use crate::sink::json::{EventLine, LineSummary, Lost, VERSION};
use crate::{Dtype, ElementValue, EventKind, Losses, MAX_DIMENSIONS, Statistics};

/// The longest line that is read.
pub const MAX_LINE_BYTES: usize = 64 << 20;
/// The longest prefix and name of a type that are taken from a line; the stream's own are shorter.
const MAX_TEXT_BYTES: usize = 4 << 10;

/// A line as it is read: every field may be missing, others are passed over. What carries data is read
/// as `T` and `V`, or passed over too.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct JsonLine<T, V> {
    version: Option<u32>,
    kind: Option<String>,
    #[serde(rename = "type")]
    code: Option<u32>,
    sequence: Option<u64>,
    time_ns: Option<u64>,
    core: Option<u32>,
    pipe: Option<u32>,
    prefix: Option<String>,
    iteration: Option<u64>,
    bytes: Option<u64>,
    text: Option<T>,
    dtype: Option<String>,
    shape: Option<Vec<u64>>,
    data: Option<T>,
    statistics: Option<FoundStatistics>,
    values: Option<V>,
    events: Option<u64>,
    memory: Option<u64>,
    place: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct FoundStatistics {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    std: Option<f64>,
    #[serde(default)]
    nan: u64,
    #[serde(default)]
    inf: u64,
    #[serde(default)]
    zero: u64,
}

/// A number, or a text that stands for what JSON has no number for.
struct Number(ElementValue);

#[derive(Serialize)]
struct MissingLine {
    version: u32,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<u32>,
    events: u64,
}

#[derive(Serialize)]
struct UnreadableLine<'item> {
    version: u32,
    kind: &'static str,
    place: &'item str,
    reason: &'item str,
}

/// Writes an item as one line; an event with at most so many elements, or with none.
///
/// # Errors
/// When writing fails.
pub fn write_item_line(
    out: &mut impl Write,
    item: &Item,
    most_values: Option<usize>,
) -> io::Result<()> {
    let mut text = match item {
        Item::Event(event) => serde_json::to_vec(&event_line(event, most_values))?,
        other => marker(other)?,
    };
    text.push(b'\n');
    out.write_all(&text)
}

/// Writes what an event file says of an item besides its data.
pub(super) fn write_head(out: &mut Vec<u8>, item: &Item) -> io::Result<()> {
    match item {
        Item::Event(event) => {
            let mut line = facts(event);
            // With the data one can count it again.
            if let Payload::LeftOut(Some(reported)) = &event.payload {
                line.statistics = Some(LineSummary::from(reported));
            }
            Ok(serde_json::to_writer(out, &line)?)
        }
        other => out.write_all(&marker(other)?),
    }
}

fn marker(item: &Item) -> serde_json::Result<Vec<u8>> {
    match item {
        Item::Event(event) => serde_json::to_vec(&facts(event)),
        Item::Lost(losses) => serde_json::to_vec(&Lost::from(losses)),
        Item::Missing { core, events } => serde_json::to_vec(&MissingLine {
            version: VERSION,
            kind: "missing",
            core: *core,
            events: *events,
        }),
        Item::Unreadable(Unreadable { place, reason }) => serde_json::to_vec(&UnreadableLine {
            version: VERSION,
            kind: "unreadable",
            place,
            reason,
        }),
    }
}

/// An event's line without its numbers.
fn facts(event: &CapturedEvent) -> EventLine<'_> {
    let is_tensor = event.kind == EventKind::Tensor;
    EventLine {
        version: VERSION,
        kind: event.kind.name(),
        code: event.kind.code(),
        sequence: event.sequence,
        time_ns: event.time_ns,
        core: event.core,
        pipe: event.pipe,
        prefix: &event.prefix,
        iteration: event.iteration,
        bytes: event.bytes,
        dtype: is_tensor.then_some(&event.dtype),
        shape: is_tensor.then_some(&event.shape),
        ..EventLine::default()
    }
}

fn event_line(event: &CapturedEvent, most_values: Option<usize>) -> EventLine<'_> {
    let mut line = facts(event);
    // As many bytes as values, where they are wanted whole.
    let bytes = |data: &[u8]| most_values.filter(|most| data.len() <= *most).map(|_| hex(data));
    match (event.kind, event.data()) {
        (EventKind::Text | EventKind::Breakpoint, Some(data)) => {
            line.text = Some(String::from_utf8_lossy(data).into_owned());
        }
        (EventKind::Tensor, Some(data)) => match event.tensor() {
            Ok(tensor) => {
                line.statistics = Some(LineSummary::from(&tensor.statistics()));
                match most_values {
                    Some(most) => line.put_values(&tensor, most),
                    None => line.values_left_out = Some(tensor.elements()),
                }
            }
            Err(reason) => {
                line.malformed = Some(reason.to_string());
                line.data = bytes(data);
            }
        },
        (EventKind::User(_) | EventKind::Unknown(_), Some(data)) => line.data = bytes(data),
        _ => line.statistics = event.statistics().as_ref().map(LineSummary::from),
    }
    line
}

/// A line with its data.
type WholeLine = JsonLine<String, Vec<Number>>;
/// A line without.
type LineFacts = JsonLine<IgnoredAny, IgnoredAny>;

/// Reads one line.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn parse(line: &[u8]) -> Result<Item, String> {
    item(read::<WholeLine>(line)?, |mut found| {
        let data = held(&mut found)?;
        event(found, data)
    })
}

/// Reads one line except for an event's data, which is left out.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn parse_facts(line: &[u8]) -> Result<Item, String> {
    let facts = read::<LineFacts>(line)?;
    // What does not say how large it is has to be measured.
    if facts.bytes.is_none() { parse(line) } else { item(facts, |found| event(found, None)) }
}

fn read<'line, L: Deserialize<'line>>(line: &'line [u8]) -> Result<L, String> {
    serde_json::from_slice(line).map_err(|error| {
        // The reader of lines sets which one it is.
        error.to_string().replace(" at line 1 column ", " at column ")
    })
}

fn item<T, V>(
    found: JsonLine<T, V>,
    event: impl FnOnce(JsonLine<T, V>) -> Result<CapturedEvent, String>,
) -> Result<Item, String> {
    if found.version.is_some_and(|version| version > VERSION) {
        return Err(String::from("it is of a later version than this program reads"));
    }
    let Some(kind) = found.kind.as_deref() else {
        return Err(String::from("it does not say what kind of event it is"));
    };
    Ok(match kind {
        "lost" => Item::Lost(Losses {
            events: found.events.unwrap_or(0),
            bytes: found.bytes.unwrap_or(0),
            memory: found.memory.unwrap_or(0),
        }),
        "missing" => Item::Missing { core: found.core, events: found.events.unwrap_or(0) },
        "unreadable" => Item::Unreadable(Unreadable {
            place: found.place.unwrap_or_default(),
            reason: found.reason.unwrap_or_default(),
        }),
        "tensor" | "text" | "breakpoint" | "user" | "unknown" => {
            Item::Event(Box::new(event(found)?))
        }
        _ => return Err(String::from("it is of no known kind")),
    })
}

/// The data that a line has.
fn held(found: &mut WholeLine) -> Result<Option<Vec<u8>>, String> {
    let kind = found.code.map(EventKind::from_code);
    Ok(match (kind, found.data.take()) {
        (Some(EventKind::Text | EventKind::Breakpoint), _) => {
            found.text.take().map(String::into_bytes)
        }
        (_, Some(data)) => Some(unhex(&data).ok_or("its data are no hexadecimal digits")?),
        (_, None) => found.values.as_ref().and_then(|values| {
            let (dtype, shape) = (found.dtype.as_deref()?, found.shape.as_deref()?);
            encoded(dtype, shape, values)
        }),
    })
}

fn event<T, V>(found: JsonLine<T, V>, data: Option<Vec<u8>>) -> Result<CapturedEvent, String> {
    let code = found.code.ok_or("it has no type")?;
    let shape = found.shape.unwrap_or_default();
    let (prefix, dtype) = (found.prefix.unwrap_or_default(), found.dtype.unwrap_or_default());
    let is_too_long = prefix.len().max(dtype.len()) > MAX_TEXT_BYTES;
    if is_too_long || shape.len() > MAX_DIMENSIONS {
        return Err(String::from("its prefix, type or shape is longer than can be"));
    }
    let held = data.as_ref().and_then(|data| u64::try_from(data.len()).ok());
    let bytes = found.bytes.or(held).unwrap_or(0);
    let payload = match data {
        Some(data) => Payload::Held(data),
        None if bytes == 0 => Payload::Held(Vec::new()),
        None => Payload::LeftOut(found.statistics.map(Statistics::from)),
    };
    Ok(CapturedEvent {
        kind: EventKind::from_code(code),
        sequence: found.sequence,
        time_ns: found.time_ns,
        iteration: found.iteration,
        core: found.core,
        pipe: found.pipe.unwrap_or(0),
        prefix,
        dtype,
        shape,
        bytes,
        payload,
    })
}

/// The bytes of a tensor from its values; none if some are missing or do not fit.
fn encoded(dtype: &str, shape: &[u64], values: &[Number]) -> Option<Vec<u8>> {
    let dtype = Dtype::from_name(dtype)?;
    let elements = shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))?;
    if u64::try_from(values.len()).ok()? != elements {
        return None;
    }
    let mut data = Vec::with_capacity(values.len() * dtype.element_bytes());
    values.iter().all(|value| dtype.encode(value.0, &mut data)).then_some(data)
}

fn hex(data: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = data.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    bytes.collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty())
}

impl From<FoundStatistics> for Statistics {
    fn from(found: FoundStatistics) -> Self {
        Self {
            min: found.min,
            max: found.max,
            mean: found.mean,
            standard_deviation: found.std,
            nan: found.nan,
            infinite: found.inf,
            zero: found.zero,
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number, \"nan\", \"inf\" or \"-inf\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number(ElementValue::Signed(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
        Ok(Number(ElementValue::Unsigned(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number(ElementValue::Float(value)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        Ok(Number(ElementValue::Float(match text {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ => return Err(E::custom("it is no number")),
        })))
    }
}
