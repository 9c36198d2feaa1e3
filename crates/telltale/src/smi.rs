//! `telltale smi`: collect once or periodically, and show it.

mod cleaning;
pub(crate) mod many;
mod monitored;
mod replayed;
mod then;
mod topo;
mod view;

use std::io;
use std::time::{Duration, Instant};

use telltale_collector::{CleanReport, CollectOptions, Collector, HostUse};
use telltale_node::kubelet::list_allocated;
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;
use telltale_sources::{FOR_A_LOOK, Question, ServiceFindings};

use crate::arguments::{LocationArguments, SmiArguments, SmiCommand};
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
use crate::settings;

pub(crate) use view::SnapshotView;

/// What is said below the tables where the heartbeats were not watched: one sample cannot show that one
/// stands still.
const NOT_SAMPLED: &str = "No service answered: run `telltale smi -d` or `telltale alerts` to look for stopped heartbeats.";

/// In which form a snapshot is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Tables for a person; with details or without.
    Tables { details: bool },
    /// Devices, one a line.
    List,
    /// One JSON object in one line.
    Json,
    /// Rows of comma-separated values: devices, or processes.
    Csv { processes: bool },
}

/// How snapshots are shown periodically.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchOptions<'a> {
    /// The time from one to the next.
    pub(crate) period: Duration,
    /// When it ends by itself, if it does.
    pub(crate) until: Option<Instant>,
    /// In which form.
    pub(crate) view: SnapshotView<'a>,
    /// What a terminal shows above the tables.
    pub(crate) title: &'a str,
    /// What is shown below the tables, from what they show.
    pub(crate) below: fn(&Snapshot) -> Option<String>,
}

/// Runs the command, except where [`crate::top`] shows it full-screen.
pub(crate) fn run(arguments: &SmiArguments) -> Result<Status, Failure> {
    match &arguments.command {
        Some(SmiCommand::Topo(arguments)) => return topo::run(arguments),
        Some(SmiCommand::Dmon(dmon)) => return monitored::run(&dmon.usual, &dmon.metrics),
        Some(SmiCommand::Pmon(pmon)) => return monitored::run(&pmon.usual, &pmon.metrics),
        None => {}
    }
    let output = StandardOutput::detect();
    if arguments.help_fields {
        output.print(&telltale_smi::fields(&output.style()))?;
        return Ok(Status::Fine);
    }
    let view = view_of(arguments);
    let replay = arguments.replay.as_deref();
    if let Some(path) = replay {
        return replayed::show(arguments, path, view, &output);
    }
    if let Some(moment) = arguments.at {
        return then::show(arguments, moment, view, &output);
    }
    if !arguments.hosts.items.is_empty() {
        return many::show(arguments, view, &output);
    }
    let mut options = arguments.hardware.limit(configured(&arguments.place, view));
    if arguments.with_host {
        options.host = HostUse::Always;
    }
    let question = Question::ask(arguments.place.sockets(), FOR_A_LOOK);
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    let Some(period) = arguments.period() else {
        let cleaned = arguments.clean.then(|| collector.clean());
        let watches = view.names_health();
        let (mut snapshot, known) = take_snapshot(&mut collector, question, watches);
        if view.measures_usage() {
            collector.measure_usage(&mut snapshot);
        }
        view.check([&snapshot]).map_err(|error| Failure::because(&error))?;
        let is_sampled =
            watches || known != ServiceFindings::Nothing || !collector.awaits_heartbeats();
        let hint = (!is_sampled).then_some(NOT_SAMPLED);
        let status = show_once(&snapshot, cleaned.as_ref(), hint, view, &output)?;
        return Ok(status.after(cleaned.is_some_and(|report| report.failed > 0)));
    };
    question.teach(&mut collector);
    if view.devices.is_some() {
        view.check([&collector.collect()]).map_err(|error| Failure::because(&error))?;
    }
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let title = format!("Every {} s; Ctrl-C ends it", period.as_secs_f64());
    let watch = WatchOptions { period, until: None, view, title: &title, below: |_| None };
    if view.measures_usage() {
        // The first page has rates, too.
        let mut first = collector.collect();
        collector.measure_usage(&mut first);
    }
    let mut not_cleaned = false;
    let last = watch.run(&mut collector, &output, &interrupt, |collector| {
        let cleaned = arguments.clean.then(|| collector.clean());
        not_cleaned = cleaned.as_ref().is_some_and(|report| report.failed > 0);
        Ok(cleaned)
    })?;
    Ok(status(&last).after(not_cleaned))
}

/// What is shown, as the arguments say.
fn view_of(arguments: &SmiArguments) -> SnapshotView<'_> {
    let columns = arguments.columns();
    let form = match (arguments.json, arguments.csv || columns.is_some()) {
        (true, _) => OutputFormat::Json,
        (_, true) => OutputFormat::Csv { processes: arguments.details },
        _ if arguments.list => OutputFormat::List,
        _ => OutputFormat::Tables { details: arguments.details },
    };
    SnapshotView {
        form,
        devices: arguments.devices.as_ref(),
        filter: arguments.filter.as_ref(),
        sort: arguments.sort,
        columns,
        format: arguments.format,
    }
}

/// One snapshot, with the faults that the service knows of. `watches` waits for heartbeats too.
fn take_snapshot(
    collector: &mut Collector,
    question: Question,
    watches: bool,
) -> (Snapshot, ServiceFindings) {
    let snapshot = collector.collect();
    // Most machines have no fault, and need no second check.
    let known = question.teach(collector);
    let awaits = watches && collector.awaits_heartbeats();
    if awaits {
        collector.watch_heartbeats();
    }
    let is_older = known == ServiceFindings::Faulty || awaits;
    (if is_older { collector.collect() } else { snapshot }, known)
}

/// Prints one snapshot. Where nothing could be read, a person gets the reason instead of empty
/// tables, and a program gets it beside its output.
fn show_once(
    snapshot: &Snapshot,
    cleaned: Option<&CleanReport>,
    hint: Option<&str>,
    view: SnapshotView<'_>,
    output: &StandardOutput,
) -> Result<Status, Failure> {
    let status = status(snapshot);
    let tables = matches!(view.form, OutputFormat::Tables { .. });
    let mut text = match status {
        Status::Nothing if tables => String::new(),
        _ => page(snapshot, cleaned, view, None, output),
    };
    if let Some(hint) = hint.filter(|_| tables && status != Status::Nothing) {
        text.push_str(&telltale_smi::note(hint, &output.style()));
    }
    if let Some(report) = cleaned.filter(|_| tables) {
        text.push_str(&telltale_smi::note(&cleaning::words(report), &output.style()));
    }
    output.print(&(view.heading() + &text))?;
    match status {
        Status::Nothing => Err(Failure::Message(why_nothing(snapshot))),
        status => Ok(status),
    }
}

/// Why there is no device and no process, and what to do.
fn why_nothing(snapshot: &Snapshot) -> String {
    let mut errors = snapshot.sources.iter().flat_map(|source| &source.errors);
    match errors.next() {
        Some(error) => format!("nothing to show: {}: {}", error.subject, error.detail),
        None => String::from(
            "nothing to show: the Tenstorrent driver is loaded and has no device; look for the \
             card with `lspci -d 1e52:` and for the reason in the kernel's log",
        ),
    }
}

/// How the collector is set up for a place and what is shown of it, with the service's rules of health.
pub(crate) fn configured(place: &LocationArguments, view: SnapshotView<'_>) -> CollectOptions {
    CollectOptions { health: settings::health(), ..options(place, view) }
}

/// The same with the program's own rules.
pub(crate) fn options(place: &LocationArguments, view: SnapshotView<'_>) -> CollectOptions {
    let mut options = CollectOptions {
        sensors: view.sensors(),
        endpoints: view.endpoints(),
        usage: view.usage(),
        list_allocated: Some(list_allocated),
        ..CollectOptions::default()
    };
    if let Some(root) = &place.root {
        options.root = root.clone();
    }
    options.runtime_dir = place.runtime_dir.clone();
    options
}

impl WatchOptions<'_> {
    /// Shows snapshots until interrupted or over; gives the last one. `before_each` may clean; what
    /// it removed is shown below the page, and a terminal keeps that until there is more.
    pub(crate) fn run(
        self,
        collector: &mut Collector,
        output: &StandardOutput,
        interrupt: &Interrupt,
        mut before_each: impl FnMut(&mut Collector) -> Result<Option<CleanReport>, Failure>,
    ) -> Result<Snapshot, Failure> {
        let repaint = matches!(self.view.form, OutputFormat::Tables { .. });
        if repaint {
            output.begin_repainting()?;
        }
        output.print(&self.view.heading())?;
        let mut due = Instant::now();
        let mut reported = None;
        let outcome = loop {
            let cleaned = match before_each(collector) {
                Ok(cleaned) => cleaned,
                Err(failure) => break Err(failure),
            };
            let snapshot = collector.collect();
            let news = cleaned.as_ref().filter(|report| !report.removed.is_empty());
            if news.is_some() || !output.is_repainted() {
                reported = news.map(cleaning::words);
            }
            if let Err(error) = self.show(&snapshot, cleaned.as_ref(), reported.as_deref(), output)
            {
                break Err(error.into());
            }
            // A late frame is skipped, not made up for.
            due = (due + self.period).max(Instant::now());
            let over = self.until.is_some_and(|until| due >= until);
            let wait = self.until.map_or(due, |until| due.min(until));
            if interrupt.sleep(wait.saturating_duration_since(Instant::now())) || over {
                break Ok(snapshot);
            }
        };
        if repaint {
            output.end_repainting()?;
        }
        outcome
    }

    fn show(
        &self,
        snapshot: &Snapshot,
        cleaned: Option<&CleanReport>,
        words: Option<&str>,
        output: &StandardOutput,
    ) -> io::Result<()> {
        let json = matches!(self.view.form, OutputFormat::Json);
        let cleaned = cleaned.filter(|report| json || !report.removed.is_empty());
        let page = page(snapshot, cleaned, self.view, output.rows_of_a_page(), output);
        if !matches!(self.view.form, OutputFormat::Tables { .. }) {
            return output.print(&page);
        }
        let style = output.style();
        let below = (self.below)(snapshot);
        let notes = [below.as_deref(), words].into_iter().flatten();
        let words: String = notes.map(|words| telltale_smi::note(words, &style)).collect();
        if !output.is_tall() {
            return output.repaint(&format!("{page}{words}"));
        }
        let title = format!("{} UTC. {}.", time_of_day(snapshot.taken_at), self.title);
        output.repaint(&format!("{}{page}{words}", telltale_smi::title(&title, &style)))
    }
}

/// Hours, minutes and seconds of a moment.
fn time_of_day(moment: Timestamp) -> String {
    let seconds = moment.0 / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// One snapshot in the wanted form, ending with a line feed. Tables leave the cleaning to their
/// caller; CSV has no place for it, so that it goes to standard error. Tables are fitted to `rows`.
fn page(
    snapshot: &Snapshot,
    cleaned: Option<&CleanReport>,
    view: SnapshotView<'_>,
    rows: Option<usize>,
    output: &StandardOutput,
) -> String {
    if let (OutputFormat::Csv { .. }, Some(report)) = (view.form, cleaned) {
        cleaning::words(report).lines().for_each(exit::tell);
    }
    let all = snapshot;
    let selected = view.select(all);
    let snapshot = &*selected;
    match view.form {
        OutputFormat::Json => {
            let text = match cleaned {
                None => serde_json::to_string(snapshot),
                Some(report) => serde_json::to_string(&cleaning::with(snapshot, report)),
            };
            text.expect("a snapshot has only string keys") + "\n"
        }
        OutputFormat::List => telltale_smi::list(snapshot),
        OutputFormat::Csv { .. } if let Some(columns) = view.columns => columns.rows(snapshot),
        OutputFormat::Csv { processes: false } => telltale_smi::csv::devices(snapshot),
        OutputFormat::Csv { processes: true } => telltale_smi::csv::processes(snapshot),
        OutputFormat::Tables { details } => {
            let style = output.style();
            let rows = rows.unwrap_or(usize::MAX);
            let mut page = telltale_smi::overview_within(snapshot, rows, &style);
            if let Some(words) = view.words(all, snapshot) {
                page.push_str(&telltale_smi::note(&words, &style));
            }
            if details {
                page.push_str(&telltale_smi::details(snapshot, &style));
            }
            page
        }
    }
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
