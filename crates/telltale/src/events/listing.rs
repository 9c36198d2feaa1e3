//! Events as lines for a person, or as lines of JSON.

use telltale_debug_stream::capture::{CapturedEvent, Item, NoTensor, write_item_line};
use telltale_debug_stream::{EventKind, Statistics, TextStyle, format_tensor};
use telltale_schema::quantity;
use telltale_schema::text::printable;
use unicode_width::UnicodeWidthStr;

use super::selection::seconds_since;
use super::words::{self, filled, fitted};
use crate::arguments::DisplayArguments;
use crate::exit::Failure;
use crate::output::StandardOutput;

/// How much is gathered before it is written.
const PAGE_BYTES: usize = 64 << 10;
/// Columns of what does not change its width.
const TIME: usize = 11;
const CORE: usize = 4;
const DTYPE: usize = 8;
const SHAPE: usize = 10;
const BYTES: usize = 9;
const NUMBER: usize = words::NUMBER_COLUMNS;
/// A prefix has at least so many columns, and at most these.
const NARROWEST: usize = 12;
const WIDEST: usize = 40;
/// A narrower terminal is not shown bytes, which follow from type and shape.
const WIDE: usize = 100;
const NARROWER: usize = WIDE - 1;
/// Columns of a text event that are shown where no terminal sets a limit.
const TEXT: usize = 200;
/// How many bytes are shown of what cannot be read.
const SHOWN_BYTES: usize = 16;

/// Writes events as they come.
pub(super) struct EventPrinter<'arguments> {
    output: &'arguments StandardOutput,
    shown: &'arguments DisplayArguments,
    rows: Rows,
    page: String,
    has_begun: bool,
}

/// Makes an event into a line.
pub(super) struct Rows {
    prints: Option<TextStyle>,
    stats: bool,
    /// Columns of the terminal.
    width: Option<usize>,
    /// Columns of the longest name so far, where no terminal sets a limit.
    longest_name: usize,
}

/// The name of an event, and what it is with its numbers, in the columns of [`facts_heading`]; of
/// another item only the latter.
pub(crate) fn describe(item: &Item) -> (String, String) {
    let mut rows = Rows::new(None, false, Some(NARROWER));
    match item {
        Item::Event(event) => (words::name_of(event), rows.rest(event, TEXT)),
        other => {
            let line = rows.row(other, None);
            (String::new(), line.trim_start_matches("-- ").trim_end().to_owned())
        }
    }
}

/// What the columns of an event's facts are.
pub(crate) fn facts_heading() -> String {
    let numbers = ["MIN", "MEAN", "MAX"].map(|title| format!(" {title:>NUMBER$}")).concat();
    format!("{:DTYPE$} {:SHAPE$}{numbers}", "DTYPE", "SHAPE")
}

// === impl EventPrinter ===

impl<'arguments> EventPrinter<'arguments> {
    pub(super) fn new(
        shown: &'arguments DisplayArguments,
        output: &'arguments StandardOutput,
    ) -> Self {
        let prints = shown.print.then(|| shown.style());
        let rows = Rows::new(prints, shown.stats, output.style().width);
        Self { output, shown, rows, page: String::new(), has_begun: false }
    }

    pub(super) fn take(&mut self, item: &Item, started_ns: Option<u64>) -> Result<(), Failure> {
        if self.shown.json {
            let mut line = Vec::new();
            let most_values = self.shown.print.then(|| self.shown.style().threshold);
            write_item_line(&mut line, item, most_values)?;
            self.page.push_str(&String::from_utf8_lossy(&line));
        } else {
            if !self.has_begun {
                self.page.push_str(&self.rows.heading());
            }
            self.page.push_str(&self.rows.row(item, started_ns));
        }
        self.has_begun = true;
        if self.page.len() >= PAGE_BYTES { self.flush() } else { Ok(()) }
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if !self.page.is_empty() {
            self.output.print(&self.page)?;
            self.page.clear();
        }
        Ok(())
    }
}

// === impl Rows ===

impl Rows {
    pub(super) fn new(prints: Option<TextStyle>, stats: bool, width: Option<usize>) -> Self {
        Self { prints, stats, width, longest_name: 2 * NARROWEST }
    }

    pub(super) fn heading(&self) -> String {
        let name = filled("PREFIX#ITERATION", self.name_columns());
        let name = fitted(&name, self.name_columns());
        let bytes = if self.has_bytes() { format!(" {:>BYTES$}", "BYTES") } else { String::new() };
        let numbers = ["MIN", "MEAN", "MAX"].map(|title| format!(" {title:>NUMBER$}")).concat();
        format!(
            "{:>TIME$} {:>CORE$} {name} {:DTYPE$} {:SHAPE$}{bytes}{numbers}\n",
            "TIME", "CORE", "DTYPE", "SHAPE"
        )
    }

    /// The line of an item and, for an event, what else is wanted of it below. Times count from
    /// the capture's first.
    pub(super) fn row(&mut self, item: &Item, started_ns: Option<u64>) -> String {
        match item {
            Item::Event(event) => self.event(event, started_ns),
            Item::Lost(losses) => format!("-- {}\n", words::lost(losses)),
            Item::Missing { core, events } => format!("-- {}\n", words::missing(*core, *events)),
            Item::Unreadable(reported) => {
                let (place, reason) = (printable(&reported.place), printable(&reported.reason));
                format!("-- unreadable: {place}: {reason}\n")
            }
        }
    }

    fn event(&mut self, event: &CapturedEvent, started_ns: Option<u64>) -> String {
        let time = seconds_since(started_ns, event.time_ns);
        let time = time.map_or_else(|| String::from("-"), |time| format!("{time:.6}"));
        let core = event.core.map_or_else(|| String::from("-"), |core| core.to_string());
        let name = words::name_of(event);
        self.longest_name = self.longest_name.max(name.width()).min(WIDEST);
        let columns = self.name_columns();
        // Only a terminal's line must not become longer than it is.
        let name = if self.width.is_some() { fitted(&name, columns) } else { name };
        let start = format!("{time:>TIME$} {core:>CORE$} {} ", filled(&name, columns));
        let room = self
            .width
            .map_or(TEXT, |width| width.saturating_sub(TIME + CORE + columns + 3).max(NARROWEST));
        let rest = self.rest(event, room);
        format!("{}\n{}", (start + &rest).trim_end(), self.below(event))
    }

    /// What stands behind an event's name, in so many columns where it is no tensor.
    fn rest(&self, event: &CapturedEvent, room: usize) -> String {
        match event.kind {
            EventKind::Tensor => self.tensor(event, room),
            EventKind::Text | EventKind::Breakpoint => {
                let text = String::from_utf8_lossy(event.data().unwrap_or_default());
                let text = match event.kind {
                    EventKind::Breakpoint => format!("breakpoint {}", text.trim_end()),
                    _ => text.trim_end().to_owned(),
                };
                fitted(&printable(&text), room)
            }
            EventKind::User(code) | EventKind::Unknown(code) => {
                let facts = format!("{} type {code}, {}", event.kind.name(), bytes(event));
                fitted(&facts, room)
            }
        }
    }

    fn tensor(&self, event: &CapturedEvent, room: usize) -> String {
        let facts =
            format!("{:DTYPE$} {:SHAPE$}", printable(&event.dtype), words::shape(&event.shape));
        if let Err(NoTensor::Malformed(reason)) = event.tensor() {
            let reason = printable(&reason.to_string());
            return fitted(&format!("{facts} malformed: {reason}; {}", bytes(event)), room);
        }
        let size = quantity::bytes(event.bytes);
        let size = if self.has_bytes() { format!(" {size:>BYTES$}") } else { String::new() };
        let Some(found) = event.statistics() else {
            return format!("{facts}{size} its numbers are not in this capture");
        };
        let numbers = [found.min, found.mean, found.max].map(|value| {
            let value = value.map_or_else(|| String::from("-"), words::number);
            format!(" {value:>NUMBER$}")
        });
        let mut line = format!("{facts}{size}{}", numbers.concat());
        for (count, name) in [(found.nan, "nan"), (found.infinite, "inf")] {
            if count > 0 {
                line.push_str(&format!(" {count} {name}"));
            }
        }
        line
    }

    /// What stands below an event's line.
    fn below(&self, event: &CapturedEvent) -> String {
        let mut text = String::new();
        if self.stats
            && let Some(found) = event.statistics()
        {
            text.push_str(&format!("{:TIME$}   {}\n", "", more(&found)));
        }
        if let (Some(style), Ok(tensor)) = (self.prints, event.tensor()) {
            text.push_str(&format_tensor(&tensor, style));
            text.push('\n');
        }
        text
    }

    fn name_columns(&self) -> usize {
        let bytes = if self.has_bytes() { BYTES + 1 } else { 0 };
        let others = TIME + CORE + DTYPE + SHAPE + 3 * NUMBER + 7 + bytes;
        self.width
            .map_or(2 * NARROWEST, |width| width.saturating_sub(others).clamp(NARROWEST, WIDEST))
    }

    fn has_bytes(&self) -> bool {
        self.width.is_none_or(|width| width >= WIDE)
    }
}

/// What the line itself has no room for.
fn more(found: &Statistics) -> String {
    let std = found.standard_deviation.map_or_else(|| String::from("-"), words::number);
    format!("std {std}, {} zero, {} nan, {} inf", found.zero, found.nan, found.infinite)
}

/// The size and the first bytes of what cannot be read.
fn bytes(event: &CapturedEvent) -> String {
    let size = quantity::bytes(event.bytes);
    let Some(data) = event.data().filter(|data| !data.is_empty()) else { return size };
    let shown: String = data.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let more = if data.len() > SHOWN_BYTES { ".." } else { "" };
    format!("{size} {shown}{more}")
}
