//! A frame: where each pane is, the title above them and the keys below.

use ratatui_core::layout::Rect;
use ratatui_core::terminal::Frame;
use telltale_schema::calendar;
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;

use super::canvas::{Canvas, cells};
use super::column::Column;
use super::event::PressedKey;
use super::lines::wrapped;
use super::pane::Pane;
use super::theme::Role;
use super::{KeyMode, SMALLEST, Screen, device_pane, dialog, process_pane};
use crate::text::width;
use crate::usage;

/// Columns that the values of one device take at least.
const DEVICE_WIDTH: u16 = 80;
/// Rows of the pane below, its tabs included.
const PANE_ROWS: u16 = 8;

/// Rows that what there is to say has at most.
const MESSAGE_ROWS: u16 = 5;

/// The keys in the last row.
const KEYS: [(&str, &str, PressedKey); 12] = [
    ("F1", "Help", PressedKey::Function(1)),
    ("F2", "Columns", PressedKey::Function(2)),
    ("F3", "Pane", PressedKey::Function(3)),
    ("F4", "Filter", PressedKey::Function(4)),
    ("F5", "Tree", PressedKey::Function(5)),
    ("F6", "Sort", PressedKey::Function(6)),
    ("F7", "Next", PressedKey::Function(7)),
    ("F8", "Zoom", PressedKey::Function(8)),
    ("F9", "Signal", PressedKey::Function(9)),
    ("F10", "Quit", PressedKey::Function(10)),
    ("d", "Device", PressedKey::Char('d')),
    ("a", "Idle", PressedKey::Char('a')),
];

/// Where things were painted last, for the mouse.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) devices: Rect,
    pub(super) device_columns: usize,
    pub(super) first_device: usize,
    pub(super) headings: Vec<(Rect, Column)>,
    pub(super) rows: Rect,
    pub(super) first_row: usize,
    pub(super) tabs: Vec<(Rect, Pane)>,
    pub(super) pane: Rect,
    /// Where the pane below names a device, and its place in what is shown.
    pub(super) marks: Vec<(Rect, usize)>,
    keys: Vec<(Rect, PressedKey)>,
    /// The window that lies over the panes, and the lines in it that can be selected.
    pub(super) window: Rect,
    pub(super) lines: Rect,
}

/// The panes of a frame.
struct Panes {
    title: Rect,
    devices: Rect,
    /// Devices beside each other in a row.
    across: usize,
    processes: Rect,
    pane: Rect,
    keys: Rect,
}

impl Places {
    pub(super) fn key_at(&self, column: u16, row: u16) -> Option<PressedKey> {
        let at = (column, row).into();
        self.keys.iter().find(|(area, _)| area.contains(at)).map(|(_, key)| *key)
    }

    pub(super) fn heading_at(&self, column: u16, row: u16) -> Option<Column> {
        let at = (column, row).into();
        self.headings.iter().find(|(area, _)| area.contains(at)).map(|(_, column)| *column)
    }

    pub(super) fn row_at(&self, column: u16, row: u16) -> Option<usize> {
        let inside = self.rows.contains((column, row).into());
        inside.then(|| self.first_row + usize::from(row - self.rows.y))
    }

    pub(super) fn device_at(&self, column: u16, row: u16) -> Option<usize> {
        if !self.devices.contains((column, row).into()) || self.device_columns == 0 {
            return None;
        }
        let width = self.devices.width / cells(self.device_columns);
        let across = usize::from((column - self.devices.x) / width.max(1));
        let down = usize::from(row - self.devices.y);
        Some(self.first_device + down * self.device_columns + across.min(self.device_columns - 1))
    }

    pub(super) fn tab_at(&self, column: u16, row: u16) -> Option<Pane> {
        let at = (column, row).into();
        self.tabs.iter().find(|(area, _)| area.contains(at)).map(|(_, pane)| *pane)
    }

    pub(super) fn mark_at(&self, column: u16, row: u16) -> Option<usize> {
        let at = (column, row).into();
        self.marks.iter().find(|(area, _)| area.contains(at)).map(|(_, device)| *device)
    }

    pub(super) fn line_at(&self, column: u16, row: u16) -> Option<usize> {
        let inside = self.lines.contains((column, row).into());
        inside.then(|| usize::from(row - self.lines.y))
    }

    pub(super) fn is_on_pane(&self, row: u16) -> bool {
        (self.pane.top()..self.pane.bottom()).contains(&row)
    }

    pub(super) fn is_on_devices(&self, row: u16) -> bool {
        (self.devices.top()..self.devices.bottom()).contains(&row)
    }
}

impl Screen {
    /// Paints the view as it is.
    pub fn render(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let mut places = Places::default();
        let theme = self.view.settings.theme;
        let unicode = self.view.terms.unicode;
        let mut canvas = Canvas { buffer: frame.buffer_mut(), theme, unicode };
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            too_small(&mut canvas, area);
            self.places = places;
            return;
        }
        let panes = self.panes(area);
        match self.view.shown.clone() {
            Some(shown) => {
                places.device_columns = panes.across;
                device_pane::paint(&mut self.view, &mut canvas, panes.devices, &shown, &mut places);
                if panes.processes.height > 0 {
                    process_pane::paint(
                        &mut self.view,
                        &mut canvas,
                        panes.processes,
                        &shown,
                        &mut places,
                    );
                }
                if panes.pane.height > 0 {
                    self.below.paint(&self.view, &mut canvas, panes.pane, &shown, &mut places);
                }
            }
            None => {
                let words = "Waiting for the first snapshot.";
                canvas.text(area.x, area.y + 2, area.width, words, Role::Faint);
            }
        }
        self.title(&mut canvas, &panes, places.first_device);
        self.last_row(&mut canvas, panes.keys, &mut places);
        self.places = places;
        if let Some(cursor) =
            dialog::over(&mut self.mode, &self.view, &mut self.places, &mut canvas, area)
        {
            frame.set_cursor_position(cursor);
        }
    }

    fn panes(&self, area: Rect) -> Panes {
        let row = |y: u16, height: u16| Rect::new(area.x, area.y + y, area.width, height);
        let pane = match self.view.settings.details {
            true => PANE_ROWS.max(area.height / 4).min(20),
            false => 0,
        };
        // The title, two headings and the keys.
        let room = area.height - 4 - pane;
        let devices = self.view.device_rows.len();
        // A few have a whole row each: wider bars, bytes, and more of their history.
        let across = match cells(devices) <= room / 3 {
            true => 1,
            false => usize::from((area.width / DEVICE_WIDTH).max(1)),
        };
        let down = cells(devices.div_ceil(across)).min(room / 2).max(1);
        let (processes, pane) = match self.view.is_enlarged() {
            true => (0, pane + room - down + 1),
            false => (room - down + 1, pane),
        };
        Panes {
            title: row(0, 1),
            devices: row(1, down + 1),
            across,
            processes: row(down + 2, processes),
            pane: row(down + 2 + processes, pane),
            keys: row(area.height - 1, 1),
        }
    }

    /// The first row: when, how much, from where, and what is wrong.
    fn title(&self, canvas: &mut Canvas<'_>, panes: &Panes, first_device: usize) {
        let area = panes.title;
        let mut wrong = Vec::new();
        if let Some(words) = self.view.recorded_words().or_else(|| self.view.past_words()) {
            wrong.push(words);
        } else if let Some(late) = self.view.late_seconds() {
            let ago = quantity::span(late as f64);
            wrong.push(format!("NOTHING NEW FOR {ago}"));
        }
        match self.view.errors() {
            0 => {}
            1 => wrong.push(String::from("1 error (e)")),
            many => wrong.push(format!("{many} errors (e)")),
        }
        let wrong = wrong.join("  ");
        let room = match cells(width(&wrong)) {
            0 => area.width,
            taken => area.width.saturating_sub(taken + 2),
        };
        let hidden = self.out_of_sight(panes, first_device);
        canvas.text(area.x, area.y, room, &self.title_words(hidden, room), Role::Heading);
        canvas.right(area.x, area.y, area.width, &wrong, Role::Alarm);
    }

    /// What the first row says where nothing is wrong, with `hidden` devices out of sight. Where there
    /// is no room for all of it, the host's name goes first, then the source, then words that can be
    /// shorter, and what the host uses at last, from its end.
    fn title_words(&self, hidden: usize, room: u16) -> String {
        let name = &self.view.terms.host;
        let usage = self.view.displayed().and_then(|shown| shown.host.as_ref());
        let usage = usage.map_or_else(Vec::new, |it| usage::of_host(it));
        let mut named = vec![name.clone()];
        named.extend(usage.iter().cloned());
        // Of several hosts, nothing but this says how many answer.
        let usage = if usage.is_empty() { named.clone() } else { usage };
        let named = named.join(" ");
        let [long, short] = [false, true].map(|is_short| self.counted(hidden, is_short));
        let line = |counted: &str, host: String, source: &str| {
            let parts = [counted, &host, source].into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("  ")
        };
        let mut lines = vec![
            line(&long, named.clone(), &self.source),
            line(&long, usage.join(" "), &self.source),
            line(&long, named, ""),
            line(&long, usage.join(" "), ""),
        ];
        let fewer = (0..=usage.len()).rev().map(|known| line(&short, usage[..known].join(" "), ""));
        lines.extend(fewer);
        let fits = |line: &String| cells(width(line)) <= room;
        let at = lines.iter().position(fits).unwrap_or(lines.len() - 1);
        lines.swap_remove(at)
    }

    /// The time, and how many devices and processes there are.
    fn counted(&self, hidden: usize, is_short: bool) -> String {
        let [devices, all_devices, processes, all_processes] = self.view.counts();
        let of = |some: usize, all: usize, [one, many]: [&str; 2]| {
            let number = |it: usize| quantity::count(u64::try_from(it).unwrap_or(u64::MAX));
            let what = if all == 1 { one } else { many };
            match some == all {
                true => format!("{} {what}", number(all)),
                false => format!("{} of {} {what}", number(some), number(all)),
            }
        };
        let time = self.view.displayed().map_or_else(String::new, |it| match self.view.recorded {
            // It may be of any day.
            Some(_) => calendar::format(it.taken_at),
            None if is_short => time_of_day(it),
            None => time_of_day(it) + " UTC",
        });
        let hidden = match (hidden, is_short) {
            (0, _) => String::new(),
            (many, false) => format!(" ({many} out of sight)"),
            (many, true) => format!(" ({many} unseen)"),
        };
        let devices = of(devices, all_devices, ["device", "devices"]) + &hidden;
        let processes = of(processes, all_processes, ["process", "processes"]);
        let parts = [time, devices, processes].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("  ")
    }

    /// How many devices have no row in the pane, of which this is the first row.
    fn out_of_sight(&self, panes: &Panes, first: usize) -> usize {
        let rows = usize::from(panes.devices.height.saturating_sub(1)) * panes.across;
        let is_hidden = |at: usize| !(first..first.saturating_add(rows)).contains(&at);
        let hidden = self.view.device_rows.iter().enumerate().filter(|(at, _)| is_hidden(*at));
        hidden.map(|(_, row)| row.devices()).sum()
    }

    /// The last row: a message, else the keys.
    fn last_row(&self, canvas: &mut Canvas<'_>, area: Rect, places: &mut Places) {
        if let Some(words) = &self.message {
            // What does not fit goes on above: a remedy often stands at its end.
            let rows = wrapped(words, area.width);
            let taken = cells(rows.len()).min(MESSAGE_ROWS);
            let area = Rect { y: area.bottom() - taken, height: taken, ..area };
            canvas.clear(area);
            for (y, row) in (area.top()..area.bottom()).zip(&rows) {
                canvas.text(area.x, y, area.width, row, Role::Warning);
            }
            return;
        }
        let filter = self.view.filter.as_ref().filter(|_| matches!(self.mode, KeyMode::Browsing));
        let filter = filter.map(|filter| format!("Filter: {filter}"));
        let chosen = self.view.chosen_device().zip(self.view.shown.as_ref());
        let chosen = chosen.map(|(at, shown)| format!("On {} (Esc: all)", shown.devices[at].id));
        let said: Vec<String> = chosen.into_iter().chain(filter).collect();
        let filter = (!said.is_empty()).then(|| said.join("  "));
        // A filter is said also where there is no room for it behind all keys.
        let needed = filter.as_ref().map_or(0, |words| cells(width(words)) + 1);
        let end = area.right() - needed.min(area.width / 3);
        let mut x = area.x;
        for (name, label, key) in KEYS {
            if x + cells(name.len() + label.len()) > end {
                break;
            }
            let start = x;
            x = canvas.text(x, area.y, area.right() - x, name, Role::Plain);
            x = canvas.text(x, area.y, area.right().saturating_sub(x), label, Role::Key);
            places.keys.push((Rect::new(start, area.y, x - start, 1), key));
            x += 1;
        }
        if let Some(words) = filter {
            canvas.text(x, area.y, area.right().saturating_sub(x), &words, Role::Warning);
        }
    }
}

fn too_small(canvas: &mut Canvas<'_>, area: Rect) {
    let (columns, rows) = SMALLEST;
    let lines = [
        format!("This window has {} x {}.", area.width, area.height),
        format!("{columns} x {rows} are needed."),
        String::from("q ends."),
    ];
    for (y, line) in (area.top()..area.bottom()).zip(&lines) {
        canvas.text(area.x, y, area.width, line, Role::Plain);
    }
}

/// Hours, minutes and seconds of a snapshot, in UTC.
fn time_of_day(snapshot: &Snapshot) -> String {
    let seconds = snapshot.taken_at.0 / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
