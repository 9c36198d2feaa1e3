//! `telltale smi`: collect once or again and again, and show it.

use std::time::{Duration, Instant};

use telltale_node::{CleanReport, CollectOptions, Collector};
use telltale_schema::snapshot::Snapshot;

use crate::arguments::{Place, SmiArguments};
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// In which form a snapshot is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Tables for a person; with details or without.
    Tables { details: bool },
    /// One JSON object in one line.
    Json,
    /// Rows of comma-separated values: devices, or processes.
    Csv { processes: bool },
}

/// Runs the command.
pub(crate) fn run(arguments: &SmiArguments) -> Result<Status, Failure> {
    let output = Output::detect();
    let form = match (arguments.json, arguments.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv { processes: arguments.details },
        _ => Form::Tables { details: arguments.details },
    };
    let options = options(&arguments.place);
    let mut collector =
        Collector::new(options.clone()).map_err(|error| Failure::because(&error))?;
    let Some(period) = arguments.watch else {
        let cleaned = arguments.clean.then(|| collector.clean());
        let snapshot = collector.collect();
        output.print(&page(&snapshot, form, &output))?;
        if let Some(report) = cleaned {
            tell_cleaning(&report, form, &output)?;
        }
        return Ok(status(&snapshot));
    };
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    watch(&mut collector, period, None, form, &output, &interrupt, |collector| {
        let cleaned = arguments.clean.then(|| collector.clean());
        match cleaned.filter(|report| !report.removed.is_empty()) {
            Some(report) => tell_cleaning(&report, form, &output),
            None => Ok(()),
        }
    })
    .map(|snapshot| status(&snapshot))
}

/// How the collector is set up for a place.
pub(crate) fn options(place: &Place) -> CollectOptions {
    let mut options = CollectOptions::default();
    if let Some(root) = &place.root {
        options.root = root.clone();
    }
    options.runtime_dir = place.runtime_dir.clone();
    options
}

/// Shows a snapshot each `period` until interrupted or `until`; gives the last one.
pub(crate) fn watch(
    collector: &mut Collector,
    period: Duration,
    until: Option<Instant>,
    form: Form,
    output: &Output,
    interrupt: &Interrupt,
    mut after_each: impl FnMut(&mut Collector) -> Result<(), Failure>,
) -> Result<Snapshot, Failure> {
    let repaint = matches!(form, Form::Tables { .. });
    if repaint {
        output.begin_repainting()?;
    }
    let mut due = Instant::now();
    let outcome = loop {
        let snapshot = collector.collect();
        let page = page(&snapshot, form, output);
        let shown = if repaint { output.repaint(&page) } else { output.print(&page) };
        if let Err(failure) = shown.map_err(Failure::from).and_then(|()| after_each(collector)) {
            break Err(failure);
        }
        // A late frame is skipped, not made up for.
        due = (due + period).max(Instant::now());
        let over = until.is_some_and(|until| due >= until);
        let wait = until.map_or(due, |until| due.min(until));
        if interrupt.sleep(wait.saturating_duration_since(Instant::now())) || over {
            break Ok(snapshot);
        }
    };
    if repaint {
        output.end_repainting()?;
    }
    outcome
}

/// One snapshot in the wanted form, ending with a line feed.
fn page(snapshot: &Snapshot, form: Form, output: &Output) -> String {
    match form {
        Form::Json => {
            let text = serde_json::to_string(snapshot).expect("a snapshot has only string keys");
            text + "\n"
        }
        Form::Csv { processes: false } => telltale_smi::csv::devices(snapshot),
        Form::Csv { processes: true } => telltale_smi::csv::processes(snapshot),
        Form::Tables { details } => {
            let style = output.style();
            let mut page = telltale_smi::overview(snapshot, &style);
            if details {
                page.push_str(&telltale_smi::details(snapshot, &style));
            }
            page
        }
    }
}

/// Says what was removed and what was left, on standard error where the output is for programs.
fn tell_cleaning(report: &CleanReport, form: Form, output: &Output) -> Result<(), Failure> {
    let mut text = String::new();
    for (verb, files) in [("removed", &report.removed), ("left", &report.left)] {
        for file in files {
            let path = telltale_smi::quantity::printable(&file.path);
            let why = telltale_smi::quantity::printable(&file.why);
            text.push_str(&format!("{verb} {path}: {why}\n"));
        }
    }
    if text.is_empty() {
        text.push_str("nothing to clean\n");
    }
    match form {
        Form::Tables { .. } => output.print(&text)?,
        Form::Json | Form::Csv { .. } => eprint!("{text}"),
    }
    Ok(())
}

/// The exit status that a snapshot stands for.
fn status(snapshot: &Snapshot) -> Status {
    let nothing = snapshot.devices.is_empty() && snapshot.processes.is_empty();
    match (nothing, snapshot.has_errors()) {
        (true, _) => Status::Nothing,
        (false, true) => Status::Partial,
        (false, false) => Status::Fine,
    }
}
