//! The pane of debug events: the end of a capture as it grows; without one, what processes count.

use ratatui_core::layout::Rect;
use telltale_schema::metric::definitions::{
    PROCESS_DEBUG_EVENTS_DELIVERED_TOTAL, PROCESS_DEBUG_EVENTS_LOST_TOTAL,
    PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL, PROCESS_DEBUG_EVENTS_WAITING,
};
use telltale_schema::quantity;
use telltale_schema::snapshot::{MetricSample, MetricValue, Process, Snapshot};

use super::beside::{Availability, Tail, TailLine};
use super::canvas::Canvas;
use super::lines::{Lines, Scroll, Span, wrapped};
use super::theme::Role;
use crate::processes;
use crate::text::width;

/// Cells of time and core; of the name at least and at most, and of what comes behind it at least.
const TIME: u16 = 8;
const CORE: u16 = 4;
const NAME: [u16; 2] = [16, 40];
const FACTS: u16 = 49;
/// Columns of what processes count.
const COUNTED: [(&str, u16); 5] =
    [("PID", 7), ("CORE", 4), ("PUBLISHED", 11), ("DELIVERED", 11), ("WAITING", 8)];

type Line = Vec<Span>;

/// The pane, with the end of a capture.
#[derive(Debug, Default)]
pub(super) struct EventPane {
    pub(super) tail: Availability<Tail>,
}

impl EventPane {
    pub(super) fn paint(
        &self,
        scroll: &mut Scroll,
        canvas: &mut Canvas<'_>,
        area: Rect,
        shown: &Snapshot,
    ) {
        match &self.tail {
            Availability::Awaited => {
                scroll.reason(canvas, area, "The capture has not been read yet.")
            }
            Availability::Absent(why) => counted_events(scroll, canvas, area, shown, why),
            Availability::Known(tail) if tail.lines.is_empty() => {
                scroll.reason(canvas, area, "There is no event in the capture yet.");
            }
            Availability::Known(tail) => tail_lines(scroll, canvas, area, tail),
        }
    }
}

fn tail_lines(scroll: &mut Scroll, canvas: &mut Canvas<'_>, area: Rect, tail: &Tail) {
    // A view of the end stays at the end.
    scroll.seen.stay_at_end();
    let name = area.width.saturating_sub(TIME + CORE + FACTS + 3).clamp(NAME[0], NAME[1]);
    let heading = vec![
        Span::right("TIME", TIME, Role::Heading),
        Span::right("CORE", CORE, Role::Heading),
        Span::left("PREFIX#ITERATION", name, Role::Heading),
        Span::rest(tail.heading.as_str(), Role::Heading),
    ];
    let earlier = match tail.earlier {
        0 => None,
        count => Some(format!("{} earlier ones are left out.", quantity::count(count))),
    };
    let before = usize::from(earlier.is_some());
    let line = |at: usize| match (&earlier, at) {
        (Some(words), 0) => vec![Span::rest(words.as_str(), Role::Faint)],
        _ => of_event(&tail.lines[at - before], name),
    };
    let count = tail.lines.len() + before;
    scroll.lines(canvas, area, &Lines { heading, count, line: &line });
}

/// Why there is no capture, and what the processes' endpoints count all the same.
fn counted_events(
    scroll: &mut Scroll,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
    why: &str,
) {
    let mut lines: Vec<Line> = wrapped(why, area.width)
        .into_iter()
        .map(|row| vec![Span::rest(row, Role::Faint)])
        .collect();
    let mut counted: Vec<Line> = shown.processes.iter().flat_map(of_process).collect();
    match counted.is_empty() {
        true => lines.push(vec![Span::rest("No process counts debug events.", Role::Faint)]),
        false => {
            let titles = COUNTED.map(|(title, cells)| Span::right(title, cells, Role::Heading));
            let last = Span::rest("LOST, COMMAND", Role::Heading);
            lines.push(titles.into_iter().chain([last]).collect());
            lines.append(&mut counted);
        }
    }
    let line = |at: usize| lines[at].clone();
    scroll.lines(canvas, area, &Lines { heading: Vec::new(), count: lines.len(), line: &line });
}

fn of_event(event: &TailLine, name: u16) -> Line {
    if event.name.is_empty() {
        return vec![Span::rest(event.facts.as_str(), Role::Warning)];
    }
    let time = event.seconds.map_or_else(|| String::from("-"), |time| format!("{time:.3}"));
    let core = event.core.map_or_else(|| String::from("-"), |core| core.to_string());
    vec![
        Span::right(time, TIME, Role::Plain),
        Span::right(core, CORE, Role::Plain),
        Span::left(both_ends(&event.name, name), name, Role::Plain),
        Span::rest(event.facts.as_str(), Role::Plain),
    ]
}

/// A name in so many cells: what is in its middle goes, since names and numbers differ at the ends.
fn both_ends(name: &str, room: u16) -> String {
    let room = usize::from(room);
    if width(name) <= room {
        return name.to_owned();
    }
    let fitting = |characters: &mut dyn Iterator<Item = char>, room: usize| {
        let mut kept = String::new();
        for character in characters {
            kept.push(character);
            if width(&kept) > room {
                kept.pop();
                break;
            }
        }
        kept
    };
    let tail = fitting(&mut name.chars().rev(), room / 2);
    let head = fitting(&mut name.chars(), room - room / 2 - 2);
    format!("{head}..{}", tail.chars().rev().collect::<String>())
}

/// A line for each core of which a process has published events.
fn of_process(process: &Process) -> Vec<Line> {
    let published = PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL.name;
    let cores = process.metrics.iter().filter(|sample| sample.name == published);
    let happened = cores.filter(|sample| !matches!(sample.value, MetricValue::Counter(0)));
    happened.map(|sample| of_core(process, sample)).collect()
}

fn of_core(process: &Process, published: &MetricSample) -> Line {
    let core = label(published, "core").unwrap_or("-");
    let reported = |name: &str| {
        let mut samples = process.metrics.iter();
        samples.find(|sample| sample.name == name && label(sample, "core") == Some(core))
    };
    let counted = |name: &str| reported(name).map_or_else(|| String::from("n/a"), count);
    let pid = crate::processes::pid(process.pid);
    let texts = [
        pid,
        core.to_owned(),
        count(published),
        counted(PROCESS_DEBUG_EVENTS_DELIVERED_TOTAL.name),
        counted(PROCESS_DEBUG_EVENTS_WAITING.name),
    ];
    let shown_metrics = texts.into_iter().zip(COUNTED);
    let mut line: Line =
        shown_metrics.map(|(text, (_, cells))| Span::right(text, cells, Role::Plain)).collect();
    let lost: Vec<String> = process
        .metrics
        .iter()
        .filter(|sample| sample.name == PROCESS_DEBUG_EVENTS_LOST_TOTAL.name)
        .filter(|sample| label(sample, "core") == Some(core))
        .filter(|sample| !matches!(sample.value, MetricValue::Counter(0)))
        .map(|sample| format!("{} ({})", count(sample), label(sample, "cause").unwrap_or("-")))
        .collect();
    let (lost, role) = match lost.is_empty() {
        true => (String::from("none"), Role::Plain),
        false => (lost.join(" "), Role::Warning),
    };
    line.push(Span::rest(format!("{lost}, {}", processes::command(process).text()), role));
    line
}

fn label<'a>(sample: &'a MetricSample, name: &str) -> Option<&'a str> {
    sample.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
}

fn count(sample: &MetricSample) -> String {
    match &sample.value {
        MetricValue::Counter(count) => quantity::count(*count),
        MetricValue::Gauge(value) => format!("{value:.0}"),
        MetricValue::Histogram { .. } => String::from("n/a"),
    }
}
