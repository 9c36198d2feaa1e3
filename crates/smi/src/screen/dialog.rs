//! What lies over the panes: help, errors, menus, the filter's line, the question before a signal.

use ratatui_core::layout::{Position, Rect};

use super::canvas::{Canvas, cells};
use super::device_picker::{DevicePicker, PickerRow};
use super::filter_line::FilterLine;
use super::frame::Places;
use super::lines::wrapped;
use super::menu::{Menu, MenuKind};
use super::signal::{Dialog, Signal};
use super::theme::Role;
use super::view::View;
use super::{KeyMode, OverlayPage};
use crate::text::width;

const HELP: [(&str, &str); 30] = [
    ("F1 h ?", "this page"),
    ("F10 q", "end; Ctrl-Z stops until `fg`"),
    ("Up Down PgUp PgDn", "go through the rows; Home and End too, and the wheel"),
    ("Tab", "between processes, devices and the pane below"),
    ("d", "choose a device by index, id, address or holder"),
    ("a", "idle devices in a row each, or one for their tray"),
    ("1 to 7 F7", "the pane below, by its tab; F7: the next one"),
    ("F8 z", "enlarge it; so does the digit of the shown one"),
    ("F3 i", "show or hide it"),
    ("F4 /", "filter, as `dram > 2GiB and user == root`; Esc clears"),
    ("F5 t", "tree of host, container or pod, user, process, kind"),
    ("Space Left Right", "open and close rows of the tree"),
    ("F6 < >", "choose the column to sort by; or click on its heading"),
    ("M L N U T D P R", "sort by DRAM, L1, pid, user, time, device, CPU, RSS"),
    ("I", "the other way round"),
    ("F2 S", "choose columns and their order"),
    ("F9 k", "send a signal to the selected process"),
    ("g", "graphs: DRAM, L1, or a sensor"),
    ("[ ] { }", "back and forth in time, by one step or 60; p: now"),
    ("", "in a recording by snapshots; p: play, or halt"),
    ("E", "the process: whole command line, and environment"),
    ("e", "what could not be read, and why"),
    ("C", "next theme: default, colour-blind, monochrome"),
    ("Ctrl-L", "repaint everything"),
    ("", ""),
    ("n/a", "not reported; `telltale smi -d` shows why"),
    ("UNATTR.", "in a region's total and in no process's row"),
    ("GHOST", "rows of dead processes in a region"),
    ("", ""),
    ("", "Settings are kept in $XDG_CONFIG_HOME/telltale/top.toml."),
];

/// Cells that the border of a window and the space beside it take, left and right.
const WINDOW_EDGES: u16 = 4;

/// Paints what lies over the panes; gives the place of the cursor, if there is one.
pub(super) fn over(
    mode: &mut KeyMode,
    view: &View,
    places: &mut Places,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> Option<Position> {
    let errors = error_lines(mode, view);
    match mode {
        KeyMode::Browsing => None,
        KeyMode::Page(OverlayPage::Help, top) => {
            let lines: Vec<String> =
                HELP.iter().map(|(keys, words)| format!("{keys:18} {words}")).collect();
            page(canvas, "Help", &lines, top);
            None
        }
        KeyMode::Page(OverlayPage::Errors, top) => {
            page(canvas, "What could not be read", &errors, top);
            None
        }
        KeyMode::Page(OverlayPage::Process(process), top) => {
            page(canvas, process.title(), &process.lines(), top);
            None
        }
        KeyMode::Menu(menu) => {
            let shown = &view.settings.columns;
            let inside = paint_menu(canvas, menu, |at| shown.contains(&menu.columns[at]));
            places.window = around(inside);
            let lines = inside.height.saturating_sub(1).min(cells(menu.columns.len()));
            places.lines = Rect { height: lines, ..inside };
            None
        }
        KeyMode::Devices(picker) => Some(picker_window(view, picker, places, canvas, area)),
        KeyMode::Signal(dialog) => {
            let inside = paint_signals(canvas, dialog);
            places.window = around(inside);
            let height = cells(Signal::ALL.len()).min(inside.height.saturating_sub(2));
            places.lines = Rect { y: inside.y + 1, height, ..inside };
            None
        }
        KeyMode::Filter(line) => Some(paint_filter(canvas, area, line)),
    }
}

fn error_lines(mode: &KeyMode, view: &View) -> Vec<String> {
    if !matches!(mode, KeyMode::Page(OverlayPage::Errors, _)) {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (name, fault) in view.displayed().into_iter().flat_map(|it| it.wrong()) {
        lines.push(format!("{name}: {}", fault.kind.words()));
        lines.push(format!("    {}", fault.detail));
    }
    for source in view.displayed().into_iter().flat_map(|it| &it.sources) {
        for error in &source.errors {
            lines.push(format!("{}: {}", error.subject, error.reason.words()));
            lines.push(format!("    {}", error.detail));
        }
        if source.errors_dropped > 0 {
            lines.push(format!("{}: {} more", source.name, source.errors_dropped));
        }
        for note in &source.notes {
            let name = &source.name;
            lines.push(format!("{name}, noticed: {} of {}", note.count, note.subject));
            lines.push(format!("    {}", note.detail));
        }
    }
    if lines.is_empty() {
        lines.push(String::from("All sources were read."));
    }
    lines
}

/// Lines in a window, scrolled by `top` as far as there is something. One that is too long goes on
/// below: a remedy often stands at its end.
fn page(canvas: &mut Canvas<'_>, title: &str, lines: &[String], top: &mut usize) {
    let area = canvas.buffer.area;
    let columns = area.width.saturating_sub(4).min(100);
    let room = columns.saturating_sub(WINDOW_EDGES);
    let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line, room)).collect();
    let rows = cells(lines.len() + 2).min(area.height.saturating_sub(2));
    let inside = canvas.window(columns, rows, title);
    let height = usize::from(inside.height);
    *top = (*top).min(lines.len().saturating_sub(height));
    if height < lines.len() {
        let words = format!(" {}-{} of {} ", *top + 1, *top + height, lines.len());
        canvas.right(inside.x, inside.bottom(), inside.width, &words, Role::Faint);
    }
    for (y, line) in (inside.top()..inside.bottom()).zip(&lines[*top..]) {
        canvas.text(inside.x, y, inside.width, line, Role::Plain);
    }
}

/// A window with its border, by its inside.
fn around(inside: Rect) -> Rect {
    let (x, y) = (inside.x.saturating_sub(2), inside.y.saturating_sub(1));
    Rect::new(x, y, inside.width + WINDOW_EDGES, inside.height + 2)
}

/// Gives where its lines are, and its keys below them.
fn paint_menu(canvas: &mut Canvas<'_>, menu: &Menu, is_shown: impl Fn(usize) -> bool) -> Rect {
    let (title, keys) = match menu.kind {
        MenuKind::Sort => ("Sort by", "Enter: choose  Esc: leave"),
        MenuKind::Columns => ("Columns", "Space: show or hide  + -: move  Esc: done"),
    };
    let inside = canvas.window(52, cells(menu.columns.len() + 4), title);
    for (at, column) in menu.columns.iter().enumerate() {
        let y = inside.y + cells(at);
        if y >= inside.bottom() {
            break;
        }
        let mark = match (menu.kind, is_shown(at)) {
            (MenuKind::Sort, _) => "",
            (MenuKind::Columns, true) => "[x] ",
            (MenuKind::Columns, false) => "[ ] ",
        };
        let text = format!("{mark}{:10} {}", column.name(), column.help());
        canvas.text(inside.x, y, inside.width, &text, Role::Plain);
        if at == menu.at {
            canvas.style(Rect { y, height: 1, ..inside }, Role::Selected);
        }
    }
    canvas.text(inside.x, inside.bottom().saturating_sub(1), inside.width, keys, Role::Faint);
    inside
}

/// The list of devices below what is typed; gives the place of the cursor.
fn picker_window(
    view: &View,
    picker: &mut DevicePicker,
    places: &mut Places,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> Position {
    const PROMPT: &str = "Find: ";
    let rows = view.picker_rows(picker);
    let devices = view.shown.as_ref().map_or(0, |shown| shown.devices.len());
    let height = cells(devices + 4).min(area.height.saturating_sub(2));
    let inside = canvas.window(area.width.saturating_sub(4).min(76), height, "Choose a device");
    let prompt = canvas.text(inside.x, inside.y, inside.width, PROMPT, Role::Heading);
    let room = inside.right().saturating_sub(prompt + 1);
    let end = match picker.typed() {
        "" => {
            let words = "type an index, id, PCI address, or the name or user of a holder";
            canvas.text(prompt, inside.y, room, words, Role::Faint);
            prompt
        }
        // The end is seen, where the cursor is.
        typed => {
            let hidden = width(typed).saturating_sub(usize::from(room));
            let seen: String = typed.chars().skip(hidden).collect();
            canvas.text(prompt, inside.y, room, &seen, Role::Plain)
        }
    };
    let list = Rect { y: inside.y + 1, height: inside.height.saturating_sub(2), ..inside };
    picker.first = picker.selected.first(usize::from(list.height));
    let longest = rows.iter().map(|row| width(&row.id)).max().unwrap_or(0).clamp(8, 30);
    let visible = rows.iter().enumerate().skip(picker.first);
    for (y, (at, row)) in (list.top()..list.bottom()).zip(visible) {
        let line = Rect { y, height: 1, ..list };
        picker_line(canvas, line, row, longest);
        if at == picker.selected.at() {
            canvas.style(line, Role::Selected);
        }
    }
    if rows.is_empty() {
        canvas.text(list.x, list.y, list.width, "No device has this.", Role::Warning);
    }
    let keys = "Up Down: select  Enter: choose  Esc: leave";
    canvas.text(inside.x, inside.bottom().saturating_sub(1), inside.width, keys, Role::Faint);
    if rows.len() > usize::from(list.height) {
        let last = picker.first + usize::from(list.height);
        let words = format!("{}-{} of {}", picker.first + 1, last, rows.len());
        canvas.right(
            inside.x,
            inside.bottom().saturating_sub(1),
            inside.width,
            &words,
            Role::Faint,
        );
    }
    places.window = around(inside);
    places.lines = list;
    Position::new(end, inside.y)
}

/// A device: its index, its id in so many cells, its PCI address, and who holds it.
fn picker_line(canvas: &mut Canvas<'_>, line: Rect, row: &PickerRow, longest: usize) {
    let PickerRow { index, id, pci, holders, .. } = row;
    let parts = [
        (format!("{index:>4} {id:longest$}"), Role::Plain),
        (format!("{pci:12}"), Role::Faint),
        (holders.clone(), Role::Plain),
    ];
    let mut x = line.x;
    for (words, role) in parts {
        x = canvas.text(x, line.y, line.right().saturating_sub(x), &words, role) + 1;
    }
}

/// Gives where its lines are, below whom they are for.
fn paint_signals(canvas: &mut Canvas<'_>, dialog: &Dialog) -> Rect {
    let pid = dialog.target.pid;
    let inside = canvas.window(70, cells(Signal::ALL.len() + 5), "Send a signal");
    let to = format!("to {pid}, {}", dialog.name);
    canvas.text(inside.x, inside.y, inside.width, &to, Role::Heading);
    for (at, signal) in Signal::ALL.into_iter().enumerate() {
        let y = inside.y + 1 + cells(at);
        let (name, meaning) = signal.words();
        canvas.text(inside.x, y, inside.width, &format!("{name:8} {meaning}"), Role::Plain);
        if at == dialog.chosen {
            canvas.style(Rect { y, height: 1, ..inside }, Role::Selected);
        }
    }
    let y = inside.bottom().saturating_sub(1);
    if dialog.asks {
        let question =
            format!("Send {} to {pid}? y: yes, any other key: no", dialog.signal().name());
        canvas.text(inside.x, y, inside.width, &question, Role::Alarm);
    } else {
        canvas.text(inside.x, y, inside.width, "Enter: choose  Esc: leave", Role::Faint);
    }
    inside
}

/// Three rows at the bottom: how it can go on, the line, and what is wrong with it.
fn paint_filter(canvas: &mut Canvas<'_>, area: Rect, line: &FilterLine) -> Position {
    const PROMPT: &str = "Filter: ";
    let y = area.bottom() - 3;
    canvas.clear(Rect { y, height: 3, ..area });
    let words: Vec<String> = line.candidates().into_iter().map(|it| it.text).collect();
    let words = match words.is_empty() {
        true => String::from("Enter: apply  Esc: leave"),
        false => format!("Tab: {}", words.join(" ")),
    };
    canvas.text(area.x, y, area.width, &words, Role::Faint);
    let prompt = cells(PROMPT.len());
    canvas.text(area.x, y + 1, area.width, PROMPT, Role::Heading);
    let room = usize::from(area.width - prompt);
    let text: Vec<char> = line.text().chars().collect();
    let columns = |until: usize| width(&text[..until.min(text.len())].iter().collect::<String>());
    // The beginning scrolls out of view, as far as the cursor asks for.
    let hidden = (0..=text.len())
        .find(|from| columns(line.cursor()) - columns(*from) < room)
        .unwrap_or(text.len());
    let seen: String = text[hidden..].iter().collect();
    let x = area.x + prompt;
    canvas.text(x, y + 1, cells(room), &seen, Role::Plain);
    if let Some(error) = line.error() {
        let at = cells(columns(error.column.max(hidden)) - columns(hidden)).min(cells(room) - 1);
        let mark = canvas.text(x + at, y + 2, 1, "^", Role::Alarm);
        let words = error.to_string();
        let needed = cells(width(&words)) + 1;
        if mark + needed <= area.right() {
            canvas.text(mark + 1, y + 2, needed, &words, Role::Warning);
        } else {
            let left = (x + at).saturating_sub(1 + area.x);
            match needed <= left {
                true => canvas.right(area.x, y + 2, left, &words, Role::Warning),
                // There is no room beside the mark, so the words take the upper row, and more.
                false => {
                    let rows = wrapped(&words, area.width);
                    let taken = cells(rows.len()).min(y + 1 - area.y);
                    let above = Rect { y: y + 1 - taken, height: taken, ..area };
                    canvas.clear(above);
                    for (y, row) in (above.top()..above.bottom()).zip(&rows) {
                        canvas.text(area.x, y, area.width, row, Role::Warning);
                    }
                }
            }
        }
    }
    let cursor = cells(columns(line.cursor()) - columns(hidden));
    Position::new(x + cursor, y + 1)
}
