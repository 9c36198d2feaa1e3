//! `telltale smi dmon` and `pmon`: lines that scroll, a sample after the other.

use std::time::Instant;

use serde_json::{Map, Value as Json};
use telltale_collector::{Collector, EndpointUse, Sensors};
use telltale_query::{Field, Value};
use telltale_schema::snapshot::Snapshot;
use telltale_smi::Monitor;

use super::{OutputFormat, SnapshotView, configured, status, why_nothing};
use crate::arguments::MonitorArguments;
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;

/// What is printed, and where in the terminal's page the last line was.
struct Printer<'a> {
    arguments: &'a MonitorArguments,
    monitor: &'a Monitor,
    output: StandardOutput,
    /// Lines since the heading; none before the first one.
    since_heading: Option<usize>,
}

/// Runs the command.
pub(super) fn run(arguments: &MonitorArguments, monitor: &Monitor) -> Result<Status, Failure> {
    let view = SnapshotView {
        devices: arguments.devices.as_ref(),
        filter: arguments.filter.as_ref(),
        ..SnapshotView::whole(OutputFormat::List)
    };
    let mut options = arguments.hardware.limit(configured(&arguments.place, view));
    // Any of them may be in a group, and memory that only an endpoint reports too.
    options.sensors = Sensors::All;
    options.endpoints = EndpointUse::Always;
    options.usage |= monitor.asks_for_usage();
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let mut snapshot = collector.collect();
    if status(&snapshot) == Status::Nothing {
        return Err(Failure::Message(why_nothing(&snapshot)));
    }
    view.check([&snapshot]).map_err(|error| Failure::because(&error))?;
    // Rates are known from the second sample on: `-c 1` would show none, and choose no row by one.
    let filter = arguments.filter.as_ref();
    if monitor.has_rates() || filter.is_some_and(|filter| filter.names(Field::is_rate)) {
        if interrupt.sleep(arguments.delay.max(Collector::LEAST_RATE_SPAN)) {
            return Ok(status(&snapshot));
        }
        snapshot = collector.collect();
    }
    let output = StandardOutput::detect();
    let mut printer = Printer { arguments, monitor, output, since_heading: None };
    let mut due = Instant::now();
    let mut left = arguments.count;
    loop {
        printer.print(&view.select(&snapshot))?;
        left = left.map(|left| left - 1);
        // A late sample is skipped, not made up for.
        due = (due + arguments.delay).max(Instant::now());
        if left == Some(0) || interrupt.sleep(due.saturating_duration_since(Instant::now())) {
            return Ok(status(&snapshot));
        }
        snapshot = collector.collect();
    }
}

// === impl Printer ===

impl Printer<'_> {
    /// Prints a sample at once: a pipe's reader waits for it.
    fn print(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        let text = match self.arguments.json {
            true => objects(self.monitor, snapshot),
            false => self.lines(snapshot),
        };
        Ok(self.output.print(&text)?)
    }

    /// The lines, after a heading where none is in the terminal's window any more.
    fn lines(&mut self, snapshot: &Snapshot) -> String {
        let moment = self.arguments.options;
        // The heading has two lines, and the cursor may be on one.
        let room = self.output.rows().map(|rows| rows.saturating_sub(3).max(1));
        let mut text = String::new();
        for line in self.monitor.lines(snapshot, moment) {
            let is_out_of_sight = |since| room.is_some_and(|room| since >= room);
            if self.since_heading.is_none_or(is_out_of_sight) {
                text.push_str(&self.monitor.heading(snapshot, moment));
                self.since_heading = Some(0);
            }
            self.since_heading = self.since_heading.map(|since| since + 1);
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// An object a row, with the moment as `--query-device=timestamp` has it.
fn objects(monitor: &Monitor, snapshot: &Snapshot) -> String {
    let object = |row: Vec<(&'static str, Value<'_>)>| {
        let values = row.into_iter().map(|(name, value)| (name.to_owned(), json(value)));
        let moment = (String::from("timestamp"), Json::from(snapshot.taken_at.0));
        Json::Object([moment].into_iter().chain(values).collect::<Map<_, _>>()).to_string() + "\n"
    };
    monitor.values(snapshot).into_iter().map(object).collect()
}

/// A value of a field. Whole numbers have no fraction, as in the other forms.
fn json(value: Value<'_>) -> Json {
    match value {
        Value::Absent => Json::Null,
        Value::Text(text) => Json::from(text.into_owned()),
        // Display of such a float is that of the whole number.
        Value::Number(number) if number.fract() == 0.0 => {
            number.to_string().parse::<u64>().map_or_else(|_| Json::from(number), Json::from)
        }
        Value::Number(number) => Json::from(number),
    }
}
