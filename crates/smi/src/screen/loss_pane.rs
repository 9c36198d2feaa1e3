//! The pane of losses: each training's last step and loss, what its kernels printed, and the losses over
//! time beside them, all on one scale.

use ratatui_core::layout::Rect;
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;

use super::canvas::{Canvas, cells};
use super::graph;
use super::lines::{Lines, Scroll, Span};
use super::row::Who;
use super::theme::Role;
use super::view::{Focus, View};
use crate::training::TrainingReport;

/// What is shown of a training, at the left of its graph.
const COLUMNS: [(&str, u16); 4] = [("PID", 7), ("STEP", 9), ("LOSS", 9), ("TOKENS/S", 10)];
/// Cells of these in a window of the usual width, and from so many cells on.
const TEXT: [u16; 2] = [44, 64];
const WIDE: u16 = 110;
/// Rows that a training has at least and at most: its numbers, then what it printed.
const ROWS: [usize; 2] = [2, 6];
/// Cells before what it printed, and between text and graph.
const INDENT: u16 = 8;
const GAP: u16 = 2;

const NO_LOSSES: &str = "No process reports a loss. A training that registers NAME_loss and NAME_step on its \
                      endpoint does, as `telltale gpt` (docs/smi.md).";

/// A training, and its process's place in what is shown.
struct Training {
    place: usize,
    who: Who,
    report: TrainingReport,
}

/// Paints the pane.
pub(super) fn paint(
    view: &View,
    scroll: &mut Scroll,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
) {
    let trainings = trainings(view, shown);
    if trainings.is_empty() {
        let past = "The history keeps no losses; p goes on with now.";
        let words = if view.past_words().is_some() { past } else { NO_LOSSES };
        return scroll.reason(canvas, area, words);
    }
    let width = TEXT[usize::from(area.width >= WIDE)].min(area.width);
    let [text, plots] = [
        Rect { width, ..area },
        Rect { x: area.x + width + GAP, width: area.width.saturating_sub(width + GAP), ..area },
    ];
    let room = usize::from(area.height.saturating_sub(1));
    let rows = (room / trainings.len()).clamp(ROWS[0], ROWS[1]);
    let line = |at: usize| training_line(view, shown, &trainings[at / rows], at % rows);
    let heading = COLUMNS.map(|(title, cells)| Span::right(title, cells, Role::Heading)).to_vec();
    let count = trainings.len() * rows;
    scroll.lines(canvas, text, &Lines { heading, count, line: &line });
    paint_plots(view, canvas, plots, &trainings, (rows, scroll.seen.first()));
}

/// Those that are shown, in the order of the snapshot.
fn trainings(view: &View, shown: &Snapshot) -> Vec<Training> {
    let all = shown.processes.iter().enumerate();
    let training = |(place, process)| {
        let report = TrainingReport::of(process)?;
        Some(Training { place, who: Who::of(process, place, &view.machines), report })
    };
    all.filter_map(training).collect()
}

fn training_line(view: &View, shown: &Snapshot, training: &Training, row: usize) -> Vec<Span> {
    let report = &training.report;
    match row {
        0 => {
            let is_selected = view.selected_process().is_some_and(|(_, at)| at == training.place);
            let role = match (is_selected, view.focus) {
                (false, _) => Role::Plain,
                (true, Focus::Processes) => Role::Selected,
                (true, _) => Role::Remembered,
            };
            let pid = crate::processes::pid(shown.processes[training.place].pid);
            let mut line = vec![Span::right(pid, COLUMNS[0].1, role)];
            let Some(loss) = report.loss else {
                line.push(Span::rest(report.words(), Role::Warning));
                return line;
            };
            let count = |it: Option<u64>| it.map_or_else(|| "n/a".to_owned(), quantity::count);
            let [step, speed] = [report.step, report.tokens_per_second].map(count);
            let texts = [step, format!("{loss:.4}"), speed];
            let cells = COLUMNS.iter().skip(1);
            let spans = texts.into_iter().zip(cells);
            line.extend(spans.map(|(text, (_, cells))| Span::right(text, *cells, Role::Plain)));
            line
        }
        1 => {
            let printed = report.printed.as_deref().unwrap_or_default();
            vec![Span::left("", INDENT - 1, Role::Faint), Span::rest(printed, Role::Faint)]
        }
        _ => Vec::new(),
    }
}

/// The graph of each training beside its rows, as far as these are visible. One that compiles has a bar.
fn paint_plots(
    view: &View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    trainings: &[Training],
    (rows, first): (usize, usize),
) {
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let visible = |at: usize| {
        let [begin, end] = [at * rows, (at + 1) * rows].map(|row| row.saturating_sub(first));
        let [begin, end] = [begin, end].map(|row| cells(row).min(below.height));
        let plot = Rect { y: below.y + begin, height: end - begin, ..below };
        // A row between two, where there is one to spare.
        let spare = u16::from(rows > ROWS[0] && plot.height > 1);
        Rect { height: plot.height - spare, ..plot }
    };
    let plots: Vec<Rect> = (0..trainings.len()).map(visible).collect();
    let known = || trainings.iter().zip(&plots).map(|(it, plot)| (it, *plot));
    let largest = known().filter_map(|(training, plot)| {
        Some(graph::largest(view.history.loss(training.who)?, graph::room(canvas, plot)))
    });
    let most = largest.fold(0.0, f32::max);
    if most > 0.0 {
        let words = format!("LOSS, 0 TO {most:.1}");
        canvas.text(area.x, area.y, area.width, &words, Role::Heading);
    }
    for (training, plot) in known().filter(|(_, plot)| plot.height > 0) {
        match (training.report.loss, training.report.kernels) {
            (None, Some((all, ready))) => {
                // Some dozens.
                let share = ready as f64 / all.max(1) as f64;
                canvas.bar((plot.x, plot.y), plot.width, &[(share, Role::Bar)]);
            }
            _ => {
                if let Some(series) = view.history.loss(training.who) {
                    graph::paint(canvas, plot, series, most);
                }
            }
        }
    }
}
