//! Events as text for a person: a line of facts, then the numbers.

use std::io::{self, Write};

use telltale_schema::text::steers;

use super::Fidelity;
use crate::{Event, EventKind, NextEvent, Statistics, Tensor, TextStyle, format_tensor};

/// How many bytes of data are shown of what cannot be read.
const SHOWN_BYTES: usize = 32;

/// Writes an event or a loss. Characters that would steer a terminal are escaped.
///
/// # Errors
/// When writing fails.
pub fn write_text(
    out: &mut impl Write,
    next: &NextEvent,
    style: TextStyle,
) -> io::Result<Fidelity> {
    match next {
        NextEvent::Lost(lost) => {
            writeln!(
                out,
                "lost {} events here ({} by number, {} by bytes, {} for want of memory)",
                lost.sum(),
                lost.events,
                lost.bytes,
                lost.memory
            )?;
            Ok(Fidelity::Whole)
        }
        NextEvent::Event(event) => {
            let mut line = heading(event);
            let shown = Fidelity::of(event);
            match event.kind {
                EventKind::Tensor => line.push_str(&tensor(event, style)),
                EventKind::Text | EventKind::Breakpoint => {
                    line.push_str(&printable(&String::from_utf8_lossy(&event.data), true));
                }
                EventKind::User(code) | EventKind::Unknown(code) => {
                    line.push_str(&format!("{} type {code}, {}", event.kind.name(), bytes(event)));
                }
            }
            line.push('\n');
            // One call, so that lines of several writers do not mix.
            out.write_all(line.as_bytes())?;
            Ok(shown)
        }
    }
}

fn heading(event: &Event) -> String {
    let iteration = event.iteration.map_or_else(String::new, |number| format!("#{number}"));
    format!("[core {}] {}{iteration}: ", event.core, printable(&event.prefix, false))
}

fn tensor(event: &Event, style: TextStyle) -> String {
    let shape: Vec<String> = event.shape.iter().map(ToString::to_string).collect();
    let facts = format!("{} ({})", printable(&event.dtype, false), shape.join(", "));
    match Tensor::of(event) {
        Ok(tensor) => {
            let statistics = statistics(&tensor.statistics());
            format!("{facts}{statistics}\n{}", format_tensor(&tensor, style))
        }
        Err(reason) => format!("{facts} malformed: {reason}; {}", bytes(event)),
    }
}

fn statistics(found: &Statistics) -> String {
    let number = |name: &str, value: Option<f64>| {
        value.map_or_else(String::new, |value| format!(", {name} {}", short(value)))
    };
    let mut text = number("min", found.min);
    text.push_str(&number("max", found.max));
    text.push_str(&number("mean", found.mean));
    text.push_str(&number("std", found.standard_deviation));
    for (name, count) in [("nan", found.nan), ("inf", found.infinite), ("zero", found.zero)] {
        text.push_str(&format!(", {count} {name}"));
    }
    text
}

/// A number with about six digits, readable at any size.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-4..1e8).contains(&value.abs()) {
        let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
        format!("{rounded}")
    } else {
        format!("{value:.5e}")
    }
}

fn bytes(event: &Event) -> String {
    let shown: String = event.data.iter().take(SHOWN_BYTES).map(|b| format!("{b:02x}")).collect();
    let more = if event.data.len() > SHOWN_BYTES { "..." } else { "" };
    format!("{} bytes {shown}{more}", event.data.len())
}

/// A stranger's text without what steers a terminal; line ends may stay.
fn printable(text: &str, lines: bool) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) && !(lines && matches!(character, '\n' | '\t')) {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}
