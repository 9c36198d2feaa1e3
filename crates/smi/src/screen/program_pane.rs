//! The pane of programs: each process's program cache, most dispatches first.

use std::cmp::Reverse;

use ratatui_core::layout::Rect;
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    PROCESS_PROGRAM_CACHE_COLLISIONS_TOTAL, PROCESS_PROGRAM_CACHE_COMPILES_TOTAL,
    PROCESS_PROGRAM_CACHE_EVICTIONS_TOTAL, PROCESS_PROGRAM_CACHE_FAILED_CHECKS_TOTAL,
    PROCESS_PROGRAM_CACHE_FAILED_COMPILES_TOTAL, PROCESS_PROGRAM_CACHE_MISSES_TOTAL,
    PROCESS_PROGRAM_CACHE_PHASE_SECONDS, PROCESS_PROGRAM_CACHE_WEIGHT_BYTES,
};
use telltale_schema::quantity;
use telltale_schema::snapshot::{MetricValue, Process, ProgramUse, Snapshot};

use super::canvas::Canvas;
use super::lines::{Lines, Scroll, Span, wrapped};
use super::theme::Role;
use super::view::{Focus, View};
use crate::processes;

/// What is always shown, and from so many cells on what is shown too.
const COLUMNS: [(&str, u16); 7] = [
    ("PID", 7),
    ("CACHED", 7),
    ("HITS", 7),
    ("DISPATCHES", 11),
    ("MISSES", 7),
    ("EVICTED", 7),
    ("COMPILES", 8),
];
const MORE_COLUMNS: [(&str, u16); 5] =
    [("FAILED", 6), ("COLLIDED", 8), ("DIFFERED", 8), ("WEIGHT", 9), ("COMPILING", 9)];
const WIDE: u16 = 130;

const NOBODY: &str = "No process reports a program cache. One that caches its programs with \
                      telltale-program-cache and has an endpoint does (docs/program-cache.md).";

/// Paints the pane.
pub(super) fn paint(
    view: &View,
    scroll: &mut Scroll,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
) {
    let all = shown.processes.iter().enumerate();
    let mut rows: Vec<(usize, ProgramUse)> =
        all.filter_map(|(place, process)| Some((place, process.programs()?))).collect();
    // Stable, so that equal ones stay in the snapshot's order.
    rows.sort_by_key(|(_, programs)| Reverse(programs.dispatches));
    let others = shown.processes.len() - rows.len();
    let words = match (rows.is_empty(), others) {
        (true, _) if view.past_words().is_some() => {
            String::from("The history keeps nothing of program caches; p goes on with now.")
        }
        (true, _) => NOBODY.to_owned(),
        (false, 0) => String::new(),
        (false, 1) => String::from("1 other process reports no program cache."),
        (false, many) => format!("{} other processes tell of none.", count(many)),
    };
    if rows.is_empty() {
        return scroll.reason(canvas, area, &words);
    }
    let notes = if words.is_empty() { Vec::new() } else { wrapped(&words, area.width) };
    let selected = view.selected_process().map(|(_, place)| place);
    let focused = view.focus == Focus::Processes;
    let is_wide = area.width >= WIDE;
    let line = |at: usize| match rows.get(at) {
        Some((place, programs)) => {
            let role = match (selected == Some(*place), focused) {
                (false, _) => Role::Plain,
                (true, true) => Role::Selected,
                (true, false) => Role::Remembered,
            };
            row(&shown.processes[*place], programs, role, is_wide)
        }
        None => vec![Span::rest(notes[at - rows.len()].as_str(), Role::Faint)],
    };
    let count = rows.len() + notes.len();
    scroll.lines(canvas, area, &Lines { heading: heading(is_wide), count, line: &line });
}

fn heading(is_wide: bool) -> Vec<Span> {
    let more = MORE_COLUMNS.into_iter().filter(|_| is_wide);
    let columns = COLUMNS.into_iter().chain(more);
    let shown_metrics = columns.map(|(title, cells)| Span::right(title, cells, Role::Heading));
    shown_metrics.chain([Span::rest("COMMAND", Role::Heading)]).collect()
}

fn row(process: &Process, programs: &ProgramUse, role: Role, is_wide: bool) -> Vec<Span> {
    let reported = |definition| sample(process, definition, None);
    let counted = |definition| reported(definition).map_or_else(absent, counted);
    let pid = crate::processes::pid(process.pid);
    // Cut, not rounded: 100 % are all of them.
    let hits = programs
        .hit_ratio()
        .map_or_else(absent, |ratio| format!("{:.1} %", (ratio * 1e3).floor() / 10.0));
    let mut texts = vec![
        pid,
        quantity::count(programs.cached),
        hits,
        quantity::count(programs.dispatches),
        counted(PROCESS_PROGRAM_CACHE_MISSES_TOTAL),
        counted(PROCESS_PROGRAM_CACHE_EVICTIONS_TOTAL),
        counted(PROCESS_PROGRAM_CACHE_COMPILES_TOTAL),
    ];
    if is_wide {
        let weight = reported(PROCESS_PROGRAM_CACHE_WEIGHT_BYTES);
        let compiling = sample(process, PROCESS_PROGRAM_CACHE_PHASE_SECONDS, Some("compile"));
        texts.extend([
            counted(PROCESS_PROGRAM_CACHE_FAILED_COMPILES_TOTAL),
            counted(PROCESS_PROGRAM_CACHE_COLLISIONS_TOTAL),
            counted(PROCESS_PROGRAM_CACHE_FAILED_CHECKS_TOTAL),
            weight.and_then(whole).map_or_else(absent, quantity::bytes),
            match compiling {
                Some(MetricValue::Gauge(seconds)) => format!("{seconds:.2} s"),
                _ => absent(),
            },
        ]);
    }
    let columns = COLUMNS.into_iter().chain(MORE_COLUMNS);
    let mut spans: Vec<Span> = texts
        .into_iter()
        .zip(columns)
        .map(|(text, (_, cells))| {
            let role = if text == "n/a" { Role::Faint } else { Role::Plain };
            Span::right(text, cells, role)
        })
        .collect();
    if role != Role::Plain {
        spans[0] = Span::right(spans[0].text(), COLUMNS[0].1, role);
    }
    spans.push(Span::rest(processes::command(process).text(), Role::Plain));
    spans
}

/// What a process reports under this name, and with this phase where one is named.
fn sample<'a>(
    process: &'a Process,
    definition: &MetricDefinition,
    phase: Option<&str>,
) -> Option<&'a MetricValue> {
    let is_it = |labels: &[(String, String)]| match phase {
        Some(phase) => labels.iter().any(|(name, value)| name == "phase" && value == phase),
        None => true,
    };
    let mut samples = process.metrics.iter();
    samples
        .find(|sample| sample.name == definition.name && is_it(&sample.labels))
        .map(|sample| &sample.value)
}

fn whole(value: &MetricValue) -> Option<u64> {
    match value {
        MetricValue::Counter(count) => Some(*count),
        // What is no number of things becomes the nearest one.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        MetricValue::Gauge(value) => (*value >= 0.0).then_some(*value as u64),
        MetricValue::Histogram { .. } => None,
    }
}

fn counted(value: &MetricValue) -> String {
    whole(value).map_or_else(absent, quantity::count)
}

fn count(number: usize) -> String {
    quantity::count(u64::try_from(number).unwrap_or(u64::MAX))
}

fn absent() -> String {
    String::from("n/a")
}
