//! The pane of processes: a table, or the tree.

use ratatui_core::layout::Rect;
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Device, ProcessState, Snapshot};

use super::SMALLEST;
use super::canvas::{Canvas, cells};
use super::column::{ABSENT, Column};
use super::frame::Places;
use super::row::{Row, RowId, Who};
use super::theme::Role;
use super::view::{Focus, View};

/// Cells between two columns.
const GAP: u16 = 1;
/// Cells of the tree's own column at least: 80 columns have room for `CPU` beside it.
const TREE_WIDTH: u16 = 30;
/// Cells that the command has before there is room for columns that matter less.
const COMFORTABLE_COMMAND: u16 = 30;
/// Cells that the tree has before: a command's, and those of the levels above it.
const COMFORTABLE_TREE: u16 = 38;
/// Cells that a machine's name has at most before the id of its device.
const MOST_HOST_WIDTH: u16 = 24;

/// Paints the pane.
pub(super) fn paint(
    view: &mut View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
    places: &mut Places,
) {
    let columns = placed(view, area);
    let heading = Rect { height: 1, ..area };
    for (x, width, column) in &columns {
        let sorted = *column == view.settings.sort;
        let mark = match (sorted, view.settings.descending) {
            (false, _) => "",
            (true, true) => "v",
            (true, false) => "^",
        };
        let title = match is_tree_column(view, *column) {
            true => format!("TREE{mark}"),
            false => format!("{}{mark}", column.heading()),
        };
        match column.is_number() && !is_tree_column(view, *column) {
            true => canvas.right(*x, heading.y, *width, &title, Role::Heading),
            false => {
                canvas.text(*x, heading.y, *width, &title, Role::Heading);
            }
        }
        places.headings.push((Rect::new(*x, heading.y, *width, 1), *column));
    }
    let inside = Rect::new(area.x, area.y + 1, area.width, area.height - 1);
    let first = view.selected.first(usize::from(inside.height));
    places.rows = inside;
    places.first_row = first;
    if view.rows.is_empty() {
        let words = match &view.filter {
            Some(_) => "No process matches the filter; Esc clears it.",
            None => "No process that is visible from here holds a device or has memory on one.",
        };
        canvas.text(inside.x, inside.y, inside.width, words, Role::Faint);
    }
    for (at, row) in view.rows.iter().enumerate().skip(first).take(inside.height.into()) {
        let y = inside.y + cells(at - first);
        for (x, width, column) in &columns {
            cell(view, canvas, Rect::new(*x, y, *width, 1), row, *column, shown);
        }
        if row.process.is_some_and(|place| view.machines.is_old_process(place)) {
            canvas.style(Rect { y, height: 1, ..inside }, Role::Faint);
        }
        if at == view.selected.at() {
            let focused = view.focus == Focus::Processes;
            let role = if focused { Role::Selected } else { Role::Remembered };
            canvas.style(Rect { y, height: 1, ..inside }, role);
        }
    }
}

/// Whether the tree is painted in the place of this column.
fn is_tree_column(view: &View, column: Column) -> bool {
    view.settings.tree && column == Column::Command
}

/// The columns in their order, of which some may find no room.
fn wanted(view: &View) -> Vec<Column> {
    let mut wanted: Vec<Column> = view.settings.columns.clone();
    let has_l1 = |device: &Device| device.space(MemorySpace::L1).is_some();
    let without_l1 = view.shown.as_ref().is_some_and(|it| !it.devices.iter().any(has_l1));
    if without_l1 && !wanted.contains(&Column::Host) {
        // No device has any: its place is that of the host's memory, which they may use.
        for column in wanted.iter_mut().filter(|column| **column == Column::L1) {
            *column = Column::Host;
        }
    }
    if view.settings.tree {
        // The tree comes first, and says who and where.
        let said = [Column::Command, Column::User, Column::Container];
        wanted.retain(|column| !said.contains(column));
        wanted.insert(0, Column::Command);
        if said.contains(&view.settings.sort) {
            return wanted;
        }
    }
    if !wanted.contains(&view.settings.sort) {
        // An order by what is out of sight would look like none.
        let is_last = wanted.last() == Some(&Column::Command);
        wanted.insert(wanted.len() - usize::from(is_last), view.settings.sort);
    }
    wanted
}

/// Each column with its first cell and its width. Those that do not fit are left out, and those that
/// matter less already where they would make the command or the tree too narrow. The command and the
/// column that is sorted by are never left out; the command, or the tree, has what is left.
fn placed(view: &View, area: Rect) -> Vec<(u16, u16, Column)> {
    let wanted = wanted(view);
    // Of several machines, a device has the name of its own before its id.
    let spare = if view.fleet.is_some() { area.width.saturating_sub(SMALLEST.0) / 2 } else { 0 };
    let least = |column: Column| match column {
        column if is_tree_column(view, column) => TREE_WIDTH,
        Column::Device => column.width() + spare.min(MOST_HOST_WIDTH),
        column => column.width(),
    };
    let is_reserved = |column: &Column| [Column::Command, view.settings.sort].contains(column);
    let with_gap = |column: Column| GAP + least(column);
    let reserved: u16 = wanted.iter().copied().filter(is_reserved).map(with_gap).sum();
    let comfortable = if view.settings.tree { COMFORTABLE_TREE } else { COMFORTABLE_COMMAND };
    let kept_free = match wanted.contains(&Column::Command) {
        true => comfortable.saturating_sub(least(Column::Command)),
        false => 0,
    };
    // Behind the last one is no gap.
    let room = area.width + GAP;
    let mut used = reserved;
    let mut has_room = |column: &Column| {
        let kept_free = if column.matters_less() { kept_free } else { 0 };
        let fits = used + with_gap(*column) + kept_free <= room;
        used += if fits { with_gap(*column) } else { 0 };
        fits
    };
    let columns = wanted.into_iter().filter(|it| is_reserved(it) || has_room(it));
    let columns: Vec<Column> = columns.collect();
    let spare = room.saturating_sub(used);
    let mut x = area.x;
    let place = |column: Column| {
        let wide = if column == Column::Command { spare } else { 0 };
        let placed = (x, least(column) + wide, column);
        x += placed.1 + GAP;
        placed
    };
    columns.into_iter().map(place).collect()
}

fn cell(
    view: &View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    row: &Row,
    column: Column,
    shown: &Snapshot,
) {
    let process = row.process.and_then(|place| shown.processes.get(place));
    let is_part = !matches!(row.id, RowId::Process(..));
    if is_tree_column(view, column) {
        let name = match process {
            Some(process) if !is_part => crate::processes::command(process).text().to_owned(),
            _ => row.label.clone(),
        };
        let mark = match row.open {
            Some(true) => "- ",
            Some(false) => "+ ",
            None => "  ",
        };
        let text = format!("{}{mark}{name}", "  ".repeat(row.depth));
        let role = if process.is_none() { Role::Group } else { Role::Plain };
        canvas.text(area.x, area.y, area.width, &text, role);
        return;
    }
    let text = match (column, process) {
        (Column::Device, Some(_)) if is_part => {
            row.device.and_then(|at| shown.devices.get(at)).map(|device| device.id.clone())
        }
        (_, Some(process)) if !is_part => {
            Some(column.text(shown, process, row.device, &row.shown_metrics))
        }
        // Of a group all values are summed that add up; a part has those of its kind.
        _ => {
            let is_kind = matches!(row.id, RowId::Kind(..));
            column.sum(&row.shown_metrics).filter(|text| !is_kind || text != ABSENT)
        }
    };
    let Some(text) = text else { return };
    let faint = text == ABSENT || process.is_some_and(|it| it.state != ProcessState::Alive);
    let role = match (column, process) {
        _ if faint => Role::Faint,
        // As in the bars of its devices.
        (Column::Pid, Some(process)) => {
            let place = row.process.unwrap_or_default();
            view.stacks.role(Who::of(process, place, &view.machines))
        }
        _ => Role::Plain,
    };
    match column.is_number() {
        true => canvas.right(area.x, area.y, area.width, &text, role),
        false => {
            canvas.text(area.x, area.y, area.width, &text, role);
        }
    }
}
