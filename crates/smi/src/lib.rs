//! What a person or a script sees of a snapshot: tables, details, CSV, the full-screen view. Nothing
//! here measures or reads anything: every value is in the snapshot already. Only the view's tree
//! adds up, what is below a row.
#![forbid(unsafe_code)]

mod alerts;
mod columns;
pub mod csv;
mod details;
mod devices;
mod faults;
mod fields;
mod fleet;
mod history;
mod links;
mod list;
mod machine;
mod matrix;
mod metric_groups;
mod metrics;
mod monitor;
mod notes;
mod past_faults;
mod processes;
mod report;
mod rows;
pub mod screen;
mod style;
mod summary;
mod table;
mod text;
mod training;
mod usage;

pub use alerts::{AlertRow, RuleRow, TransitionRow, alerts, rules, transitions};
pub use columns::{Columns, ColumnsError, RowsOf};
pub use details::details;
pub use fields::fields;
pub use fleet::{fleet, fleet_within};
pub use history::history;
pub use list::list;
pub use matrix::matrix;
pub use metric_groups::MetricGroupsError;
pub use monitor::{MomentColumns, Monitor};
pub use past_faults::past_faults;
pub use report::{choices, report};
pub use style::{Style, Tone};
pub use summary::summary;
pub use table::{Alignment, Cell, Column, Table};
pub use training::TrainingReport;

use devices::Idle;
use machine::Machine;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::printable;

/// The two tables that `telltale smi` prints: devices, then the processes that hold them. Then a
/// line for what they do not show, and one for each source that failed in part.
pub fn overview(snapshot: &Snapshot, style: &Style) -> String {
    page(snapshot, Idle::Shown, style)
}

/// [`overview`] for a window of so many rows: where it is too long, idle devices make room for the
/// processes.
pub fn overview_within(snapshot: &Snapshot, rows: usize, style: &Style) -> String {
    let whole = overview(snapshot, style);
    if whole.lines().count() <= rows { whole } else { page(snapshot, Idle::LeftOut, style) }
}

fn page(snapshot: &Snapshot, idle: Idle, style: &Style) -> String {
    tables(&[Machine::only(snapshot)], idle, style)
}

/// The tables of these machines, and what they do not show.
fn tables(machines: &[Machine<'_>], idle: Idle, style: &Style) -> String {
    let mut page = devices::section(machines, idle, style);
    page.push('\n');
    page.push_str(&processes::section(machines, style));
    page.push_str(&notes::section(machines, style));
    page.push_str(&details::complaints(machines, style));
    page
}

/// A paragraph wrapped to the width, its lines after the first indented by so many spaces.
pub fn paragraph(text: &str, indent: usize, style: &Style) -> String {
    text::wrapped(&printable(text), indent, style)
}

/// A line above the tables, cut to the width.
pub fn title(text: &str, style: &Style) -> String {
    let room = style.width.unwrap_or(usize::MAX);
    Tone::Faint.paint(&text::cut(&printable(text), room, style), style) + "\n"
}

/// Lines below the tables, wrapped to the width, after an empty one.
pub fn note(text: &str, style: &Style) -> String {
    let lines = text.lines().map(|line| text::wrapped(&printable(line), 2, style));
    std::iter::once(String::from("\n")).chain(lines).collect()
}
