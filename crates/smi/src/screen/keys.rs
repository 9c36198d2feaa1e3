//! What events do.

use super::column::Column;
use super::event::{Action, Event, Key, Target};
use super::filter_line::{FilterLine, Typed};
use super::menu::{Kind, Menu, sort_by};
use super::settings::Settings;
use super::signal::{Answer, Dialog};
use super::view::Focus;
use super::{Mode, Page, Screen};

/// Rows that a turn of the wheel goes.
const WHEEL_ROWS: usize = 3;

impl Screen {
    /// Takes an event; gives what whoever drives the view is to do.
    pub fn event(&mut self, event: Event) -> Option<Action> {
        self.message = None;
        match event {
            Event::Key(Key::Control('c')) if !matches!(self.mode, Mode::Filter(_)) => {
                return Some(Action::Quit);
            }
            Event::Key(Key::Control('z')) => return Some(Action::Suspend),
            Event::Key(Key::Control('l')) => return Some(Action::Repaint),
            Event::Key(key) => return self.key(key),
            Event::Pressed { column, row } => return self.pressed(column, row),
            Event::Wheel { up, row } => self.wheel(up, row),
        }
        None
    }

    fn key(&mut self, key: Key) -> Option<Action> {
        match &mut self.mode {
            Mode::Browsing => return self.browse(key),
            Mode::Filter(line) => match line.key(key) {
                Typed::Open => {}
                Typed::Closed => self.mode = Mode::Browsing,
                Typed::Taken(filter) => {
                    self.mode = Mode::Browsing;
                    self.view.filter = filter;
                    self.view.select();
                }
            },
            Mode::Page(_, top) => match key {
                Key::Down => *top = top.saturating_add(1),
                Key::Up => *top = top.saturating_sub(1),
                Key::PageDown | Key::Char(' ') => *top = top.saturating_add(10),
                Key::PageUp => *top = top.saturating_sub(10),
                _ => self.mode = Mode::Browsing,
            },
            Mode::Menu(menu) => {
                if !menu.key(key, &mut self.view.settings) {
                    self.mode = Mode::Browsing;
                }
                self.view.arrange();
            }
            Mode::Signal(dialog) => match dialog.key(key) {
                Answer::Open => {}
                Answer::Closed => self.mode = Mode::Browsing,
                Answer::Send(signal) => {
                    let target = dialog.target;
                    self.mode = Mode::Browsing;
                    return Some(Action::Signal(target, signal));
                }
            },
        }
        None
    }

    fn browse(&mut self, key: Key) -> Option<Action> {
        if let Some(action) = self.key_in_time(key) {
            return action;
        }
        if self.below.key(key, &mut self.view) {
            return None;
        }
        match key {
            Key::Char('q') | Key::Function(10) => return Some(Action::Quit),
            Key::Char('h' | '?') | Key::Function(1) => self.mode = Mode::Page(Page::Help, 0),
            Key::Char('e') => self.mode = Mode::Page(Page::Errors, 0),
            Key::Char('/' | '\\') | Key::Function(4) => {
                let text = self.view.filter.as_ref().map_or("", |filter| filter.text());
                self.mode = Mode::Filter(FilterLine::new(text));
            }
            Key::Char('k') | Key::Function(9) => self.open_signals(),
            Key::Function(6) | Key::Char('>' | '.' | '<' | ',') => {
                self.mode = Mode::Menu(Menu::new(Kind::Sort, &self.view.settings));
            }
            Key::Function(2) | Key::Char('S') => {
                self.mode = Mode::Menu(Menu::new(Kind::Columns, &self.view.settings));
            }
            Key::Escape if self.view.filter.take().is_some() => self.view.select(),
            Key::Tab => self.view.focus = self.view.next_focus(),
            Key::Char('C') => self.view.settings.theme = self.view.settings.theme.next(),
            Key::Char('g') => self.view.settings.figure = self.view.settings.figure.next(),
            Key::Char('i') | Key::Function(3) => {
                self.view.settings.details = !self.view.settings.details;
                if self.view.focus == Focus::Pane {
                    self.view.focus = Focus::Processes;
                }
            }
            Key::Char(' ' | '+' | '-') | Key::Enter | Key::Left | Key::Right
                if self.view.focus != Focus::Pane =>
            {
                self.turn(key);
            }
            Key::Char('t') | Key::Function(5) => self.turn_into_tree(),
            _ if change_order(key, &mut self.view.settings) => self.view.arrange(),
            _ => self.step(key),
        }
        None
    }

    /// Moves the selection of the pane that keys go to.
    fn step(&mut self, key: Key) {
        let page = match self.view.focus {
            Focus::Processes => usize::from(self.places.rows.height),
            Focus::Devices => usize::from(self.places.devices.height) * self.places.device_columns,
            Focus::Pane => return self.below.scroll.key(key),
        }
        .max(1);
        let at = match self.view.focus {
            Focus::Devices => self.view.device.at(),
            _ => self.view.selected.at(),
        };
        let to = match key {
            Key::Up => at.saturating_sub(1),
            Key::Down => at.saturating_add(1),
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at.saturating_add(page),
            Key::Home => 0,
            Key::End => usize::MAX,
            _ => return,
        };
        self.go(to);
    }

    fn go(&mut self, to: usize) {
        match self.view.focus {
            Focus::Processes => {
                let rows = &self.view.rows;
                self.view.selected.go(to, |at| rows[at].id.clone());
            }
            Focus::Devices => {
                let Some(shown) = &self.view.shown else { return };
                self.view.device.go(to, |at| shown.devices[at].id.clone());
            }
            Focus::Pane => {}
        }
    }

    /// Makes the list a tree, or the tree a list. A process that was selected stays it.
    fn turn_into_tree(&mut self) {
        let who = self.view.selected_process().filter(|_| self.view.selected.is_chosen());
        self.view.settings.tree = !self.view.settings.tree;
        self.view.arrange();
        let Some((_, place)) = who else { return };
        if let Some(at) = self.view.rows.iter().position(|row| row.process == Some(place)) {
            let rows = &self.view.rows;
            self.view.selected.go(at, |at| rows[at].id.clone());
        }
    }

    /// Selects the row that the selected one is below of in the tree.
    fn go_up(&mut self) {
        let Some(depth) = self.view.selected_row().map(|row| row.depth) else { return };
        let above = &self.view.rows[..self.view.selected.at()];
        if let Some(at) = above.iter().rposition(|row| row.depth < depth) {
            self.go(at);
        }
    }

    /// Opens or closes the selected row of the tree; from one that has nothing to close, Left goes to
    /// the row above it.
    fn turn(&mut self, key: Key) {
        if key == Key::Left && self.view.selected_row().is_some_and(|row| row.open != Some(true)) {
            return self.go_up();
        }
        let Some((id, open)) =
            self.view.selected_row().and_then(|row| Some((row.id.clone(), row.open?)))
        else {
            return;
        };
        let wanted = match key {
            Key::Left | Key::Char('-') => false,
            Key::Right | Key::Char('+') => true,
            _ => !open,
        };
        if wanted != open {
            if !self.view.turned.remove(&id) {
                self.view.turned.insert(id);
            }
            self.view.arrange();
        }
    }

    /// Opens the dialog for the selected process, or says why not.
    fn open_signals(&mut self) {
        if self.view.terms.readonly {
            return self.tell("signals are refused: this view was opened with --readonly");
        }
        if self.view.fleet.is_some() {
            return self
                .tell("signals are for processes of one machine: open `telltale top` there");
        }
        if self.view.recorded.is_some() {
            return self.tell("signals are for the present, and this is a recording");
        }
        if self.view.past_words().is_some() {
            return self.tell("signals are for the present; p goes on with it");
        }
        let Some((_, place)) = self.view.selected_process() else {
            return self.tell("select a process first");
        };
        let Some(shown) = self.view.shown.clone() else { return };
        let process = &shown.processes[place];
        let (Some(pid), Some(identity)) = (process.pid, process.identity) else {
            return self.tell(
                "this process cannot be told from another with the same pid, so none is signalled",
            );
        };
        let name = crate::processes::command(process).text().to_owned();
        self.mode = Mode::Signal(Dialog::new(Target { pid, identity }, name));
    }

    fn pressed(&mut self, column: u16, row: u16) -> Option<Action> {
        if !matches!(self.mode, Mode::Browsing) {
            return self.pressed_over(column, row);
        }
        if let Some(key) = self.places.key_at(column, row) {
            return self.browse(key);
        }
        if let Some(pane) = self.places.tab_at(column, row) {
            self.below.show(pane, &mut self.view);
            return None;
        }
        if let Some(column) = self.places.heading_at(column, row) {
            sort_by(column, &mut self.view.settings);
            self.view.arrange();
            return None;
        }
        if let Some(at) = self.places.row_at(column, row).filter(|at| *at < self.view.rows.len()) {
            let again = self.view.focus == Focus::Processes && self.view.selected.at() == at;
            self.view.focus = Focus::Processes;
            self.go(at);
            if again {
                self.turn(Key::Enter);
            }
            return None;
        }
        let devices = self.view.shown.as_ref().map_or(0, |shown| shown.devices.len());
        let pointed = self.places.mark_at(column, row);
        let pointed = pointed.or_else(|| self.places.device_at(column, row));
        if let Some(at) = pointed.filter(|at| *at < devices) {
            self.view.focus = Focus::Devices;
            self.go(at);
        }
        None
    }

    /// A click while something lies over the panes: it selects a row of a menu, another one takes it.
    /// Beside the menu it closes it, as any click closes a page.
    fn pressed_over(&mut self, column: u16, row: u16) -> Option<Action> {
        let place = self.places.line_at(column, row);
        let is_beside = !self.places.window.contains((column, row).into());
        let chosen = match &mut self.mode {
            Mode::Page(..) => return self.key(Key::Escape),
            Mode::Menu(menu) => &mut menu.at,
            // What is asked there is answered by a key: no click sends a signal.
            Mode::Signal(dialog) if !dialog.asks => &mut dialog.chosen,
            _ => return None,
        };
        match place {
            Some(place) if *chosen == place => {
                let columns = matches!(&self.mode, Mode::Menu(menu) if menu.kind == Kind::Columns);
                self.key(if columns { Key::Char(' ') } else { Key::Enter })
            }
            Some(place) => {
                *chosen = place;
                None
            }
            None if is_beside => self.key(Key::Escape),
            None => None,
        }
    }

    fn wheel(&mut self, up: bool, row: u16) {
        match &mut self.mode {
            Mode::Page(_, top) if up => *top = top.saturating_sub(WHEEL_ROWS),
            Mode::Page(_, top) => *top = top.saturating_add(WHEEL_ROWS),
            Mode::Browsing => {
                self.view.focus = match () {
                    () if self.places.is_on_devices(row) => Focus::Devices,
                    () if self.places.is_on_pane(row) && self.view.pane_scrolls() => Focus::Pane,
                    () => Focus::Processes,
                };
                for _ in 0..WHEEL_ROWS {
                    self.step(if up { Key::Up } else { Key::Down });
                }
            }
            Mode::Menu(menu) => {
                menu.key(if up { Key::Up } else { Key::Down }, &mut self.view.settings);
            }
            Mode::Signal(dialog) if !dialog.asks => {
                dialog.key(if up { Key::Up } else { Key::Down });
            }
            _ => {}
        }
    }
}

/// Keys that change which rows there are and in which order.
fn change_order(key: Key, settings: &mut Settings) -> bool {
    let column = match key {
        Key::Char('I') => {
            settings.descending = !settings.descending;
            return true;
        }
        Key::Char('M') => Column::Dram,
        Key::Char('L') => Column::L1,
        Key::Char('N') => Column::Pid,
        Key::Char('U') => Column::User,
        Key::Char('T') => Column::Up,
        Key::Char('D') => Column::Device,
        _ => return false,
    };
    sort_by(column, settings);
    true
}
