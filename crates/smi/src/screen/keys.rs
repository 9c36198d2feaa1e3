//! What events do.

use super::column::Column;
use super::device_picker::{DevicePicker, Picked};
use super::event::{Action, InputEvent, PressedKey, ProcessTarget};
use super::filter_line::{FilterLine, Typed};
use super::menu::{Menu, MenuKind, sort_by};
use super::pane::Pane;
use super::process_page::ProcessPage;
use super::settings::ViewSettings;
use super::signal::{Dialog, DialogAnswer};
use super::view::Focus;
use super::{KeyMode, OverlayPage, Screen};

/// Rows that a turn of the wheel goes.
const WHEEL_ROWS: usize = 3;

impl Screen {
    /// Takes an event; returns the action for the view's driver.
    pub fn event(&mut self, event: InputEvent) -> Option<Action> {
        self.message = None;
        match event {
            InputEvent::Key(PressedKey::Control('c'))
                if !matches!(self.mode, KeyMode::Filter(_) | KeyMode::Devices(_)) =>
            {
                return Some(Action::Quit);
            }
            InputEvent::Key(PressedKey::Control('z')) => return Some(Action::Suspend),
            InputEvent::Key(PressedKey::Control('l')) => return Some(Action::Repaint),
            InputEvent::Key(key) => return self.key(key),
            InputEvent::Pressed { column, row } => return self.pressed(column, row),
            InputEvent::Wheel { up, row } => self.wheel(up, row),
        }
        None
    }

    fn key(&mut self, key: PressedKey) -> Option<Action> {
        match &mut self.mode {
            KeyMode::Browsing => return self.browse(key),
            KeyMode::Filter(line) => match line.key(key) {
                Typed::Open => {}
                Typed::Closed => self.mode = KeyMode::Browsing,
                Typed::Taken(filter) => {
                    self.mode = KeyMode::Browsing;
                    self.view.filter = filter;
                    self.view.select();
                }
            },
            KeyMode::Page(_, top) => match key {
                PressedKey::Down => *top = top.saturating_add(1),
                PressedKey::Up => *top = top.saturating_sub(1),
                PressedKey::PageDown | PressedKey::Char(' ') => *top = top.saturating_add(10),
                PressedKey::PageUp => *top = top.saturating_sub(10),
                PressedKey::Home => *top = 0,
                // Painting stops at the last line.
                PressedKey::End => *top = usize::MAX,
                _ => self.mode = KeyMode::Browsing,
            },
            KeyMode::Menu(menu) => {
                if !menu.key(key, &mut self.view.settings) {
                    self.mode = KeyMode::Browsing;
                }
                self.view.arrange();
            }
            KeyMode::Devices(_) => self.key_in_picker(key),
            KeyMode::Signal(dialog) => match dialog.key(key) {
                DialogAnswer::Open => {}
                DialogAnswer::Closed => self.mode = KeyMode::Browsing,
                DialogAnswer::Send(signal) => {
                    let target = dialog.target;
                    self.mode = KeyMode::Browsing;
                    return Some(Action::Signal(target, signal));
                }
            },
        }
        None
    }

    /// Opens the list of devices.
    fn open_picker(&mut self) {
        if self.view.shown.as_ref().is_none_or(|shown| shown.devices.is_empty()) {
            return self.tell("there is no device to choose");
        }
        let chosen = self.view.chosen_device.as_ref().map(|chosen| chosen.id().to_owned());
        self.mode = KeyMode::Devices(DevicePicker::new(chosen));
    }

    fn key_in_picker(&mut self, key: PressedKey) {
        let KeyMode::Devices(picker) = &mut self.mode else { return };
        let rows = self.view.picker_rows(picker);
        match picker.key(key, &rows) {
            Picked::Open => {}
            Picked::Closed => self.mode = KeyMode::Browsing,
            Picked::Device(place) => {
                self.mode = KeyMode::Browsing;
                self.view.settings.details = true;
                self.view.settings.pane = Pane::Details;
                self.view.set_focus(Focus::Devices);
                self.view.go_to_device(place);
            }
        }
    }

    fn browse(&mut self, key: PressedKey) -> Option<Action> {
        if let Some(action) = self.key_in_time(key) {
            return action;
        }
        if self.below.key(key, &mut self.view) {
            return None;
        }
        match key {
            PressedKey::Char('q') | PressedKey::Function(10) => return Some(Action::Quit),
            PressedKey::Char('h' | '?') | PressedKey::Function(1) => {
                self.mode = KeyMode::Page(OverlayPage::Help, 0)
            }
            PressedKey::Char('e') => self.mode = KeyMode::Page(OverlayPage::Errors, 0),
            PressedKey::Char('E') => return self.open_process(),
            PressedKey::Char('/' | '\\') | PressedKey::Function(4) => {
                let text = self.view.filter.as_ref().map_or("", |filter| filter.text());
                self.mode = KeyMode::Filter(FilterLine::new(text));
            }
            PressedKey::Char('k') | PressedKey::Function(9) => self.open_signals(),
            PressedKey::Function(6) | PressedKey::Char('>' | '.' | '<' | ',') => {
                self.mode = KeyMode::Menu(Menu::new(MenuKind::Sort, &self.view.settings));
            }
            PressedKey::Function(2) | PressedKey::Char('S') => {
                self.mode = KeyMode::Menu(Menu::new(MenuKind::Columns, &self.view.settings));
            }
            PressedKey::Escape if self.view.show_all_devices() => {}
            PressedKey::Escape if self.view.filter.take().is_some() => self.view.select(),
            PressedKey::Char('d') => self.open_picker(),
            PressedKey::Char('a') => self.view.turn_idle_devices(),
            PressedKey::Enter
                if self.view.focus == Focus::Devices && self.view.selected_device().is_none() =>
            {
                self.view.turn_idle_devices();
            }
            PressedKey::Enter if self.view.focus == Focus::Devices => {
                self.view.choose_device(true);
                self.view.set_focus(Focus::Processes);
            }
            PressedKey::Tab => self.view.set_focus(self.view.next_focus()),
            PressedKey::Char('C') => self.view.settings.theme = self.view.settings.theme.next(),
            PressedKey::Char('g') => {
                self.view.settings.shown_metric = self.view.settings.shown_metric.next()
            }
            PressedKey::Char('i') | PressedKey::Function(3) => {
                self.view.settings.details = !self.view.settings.details;
                if self.view.focus == Focus::Pane {
                    self.view.set_focus(Focus::Processes);
                }
            }
            PressedKey::Char(' ' | '+' | '-')
            | PressedKey::Enter
            | PressedKey::Left
            | PressedKey::Right
                if self.view.focus != Focus::Pane =>
            {
                self.turn(key);
            }
            PressedKey::Char('t') | PressedKey::Function(5) => self.turn_into_tree(),
            _ if change_order(key, &mut self.view.settings) => self.view.arrange(),
            _ => self.step(key),
        }
        None
    }

    /// Moves the selection of the pane that keys go to.
    fn step(&mut self, key: PressedKey) {
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
            PressedKey::Up => at.saturating_sub(1),
            PressedKey::Down => at.saturating_add(1),
            PressedKey::PageUp => at.saturating_sub(page),
            PressedKey::PageDown => at.saturating_add(page),
            PressedKey::Home => 0,
            PressedKey::End => usize::MAX,
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
                let rows = &self.view.device_rows;
                self.view.device.go(to, |at| rows[at].id(&shown.devices));
                self.view.choose_device(true);
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
    fn turn(&mut self, key: PressedKey) {
        if key == PressedKey::Left
            && self.view.selected_row().is_some_and(|row| row.open != Some(true))
        {
            return self.go_up();
        }
        let Some((id, open)) =
            self.view.selected_row().and_then(|row| Some((row.id.clone(), row.open?)))
        else {
            return;
        };
        let wanted = match key {
            PressedKey::Left | PressedKey::Char('-') => false,
            PressedKey::Right | PressedKey::Char('+') => true,
            _ => !open,
        };
        if wanted != open {
            if !self.view.turned.remove(&id) {
                self.view.turned.insert(id);
            }
            self.view.arrange();
        }
    }

    /// Opens the page of the selected process; returns what has to be read for it.
    fn open_process(&mut self) -> Option<Action> {
        let Some(page) = ProcessPage::of_selected(&self.view) else {
            self.tell("select a process first");
            return None;
        };
        let awaited = page.awaited();
        self.mode = KeyMode::Page(OverlayPage::Process(Box::new(page)), 0);
        awaited.map(Action::ReadTexts)
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
                "this process cannot be distinguished from another with the same pid, so none is signalled",
            );
        };
        let name = crate::processes::command(process).text().to_owned();
        self.mode = KeyMode::Signal(Dialog::new(ProcessTarget { pid, identity }, name));
    }

    fn pressed(&mut self, column: u16, row: u16) -> Option<Action> {
        if !matches!(self.mode, KeyMode::Browsing) {
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
            // The rows stay those that were clicked on.
            if self.view.focus == Focus::Devices {
                self.view.choose_device(true);
            }
            self.view.set_focus(Focus::Processes);
            self.go(at);
            if again {
                self.turn(PressedKey::Enter);
            }
            return None;
        }
        if let Some(place) = self.places.mark_at(column, row) {
            self.view.set_focus(Focus::Devices);
            self.view.go_to_device(place);
            return None;
        }
        let rows = self.view.device_rows.len();
        if let Some(at) = self.places.device_at(column, row).filter(|at| *at < rows) {
            let again = self.view.focus == Focus::Devices && self.view.device.at() == at;
            self.view.set_focus(Focus::Devices);
            self.go(at);
            if again && self.view.selected_device().is_none() {
                self.view.turn_idle_devices();
            }
        }
        None
    }

    /// A click while something lies over the panes: it selects a row of a menu, another one takes it.
    /// Beside the menu it closes it, as any click closes a page.
    fn pressed_over(&mut self, column: u16, row: u16) -> Option<Action> {
        if let KeyMode::Devices(picker) = &mut self.mode {
            let place = self.places.line_at(column, row).map(|line| picker.first + line);
            let rows = self.view.picker_rows(picker);
            match place.filter(|place| *place < rows.len()) {
                Some(place) if picker.selected.at() != place => picker.go(place, &rows),
                Some(_) => self.key_in_picker(PressedKey::Enter),
                None if !self.places.window.contains((column, row).into()) => {
                    self.mode = KeyMode::Browsing;
                }
                None => {}
            }
            return None;
        }
        let place = self.places.line_at(column, row);
        let is_beside = !self.places.window.contains((column, row).into());
        let chosen = match &mut self.mode {
            KeyMode::Page(..) => return self.key(PressedKey::Escape),
            KeyMode::Menu(menu) => &mut menu.at,
            // What is asked there is answered by a key: no click sends a signal.
            KeyMode::Signal(dialog) if !dialog.asks => &mut dialog.chosen,
            _ => return None,
        };
        match place {
            Some(place) if *chosen == place => {
                let columns =
                    matches!(&self.mode, KeyMode::Menu(menu) if menu.kind == MenuKind::Columns);
                self.key(if columns { PressedKey::Char(' ') } else { PressedKey::Enter })
            }
            Some(place) => {
                *chosen = place;
                None
            }
            None if is_beside => self.key(PressedKey::Escape),
            None => None,
        }
    }

    fn wheel(&mut self, up: bool, row: u16) {
        match &mut self.mode {
            KeyMode::Page(_, top) if up => *top = top.saturating_sub(WHEEL_ROWS),
            KeyMode::Page(_, top) => *top = top.saturating_add(WHEEL_ROWS),
            KeyMode::Browsing => {
                self.view.set_focus(match () {
                    () if self.places.is_on_devices(row) => Focus::Devices,
                    () if self.places.is_on_pane(row) && self.view.pane_scrolls() => Focus::Pane,
                    () => Focus::Processes,
                });
                for _ in 0..WHEEL_ROWS {
                    self.step(if up { PressedKey::Up } else { PressedKey::Down });
                }
            }
            KeyMode::Menu(menu) => {
                menu.key(
                    if up { PressedKey::Up } else { PressedKey::Down },
                    &mut self.view.settings,
                );
            }
            KeyMode::Devices(_) => {
                self.key_in_picker(if up { PressedKey::Up } else { PressedKey::Down });
            }
            KeyMode::Signal(dialog) if !dialog.asks => {
                dialog.key(if up { PressedKey::Up } else { PressedKey::Down });
            }
            _ => {}
        }
    }
}

/// Keys that change which rows there are and in which order.
fn change_order(key: PressedKey, settings: &mut ViewSettings) -> bool {
    let column = match key {
        PressedKey::Char('I') => {
            settings.descending = !settings.descending;
            return true;
        }
        PressedKey::Char('M') => Column::Dram,
        PressedKey::Char('L') => Column::L1,
        PressedKey::Char('N') => Column::Pid,
        PressedKey::Char('U') => Column::User,
        PressedKey::Char('T') => Column::Up,
        PressedKey::Char('D') => Column::Device,
        PressedKey::Char('P') => Column::Cpu,
        PressedKey::Char('R') => Column::Rss,
        _ => return false,
    };
    sort_by(column, settings);
    true
}
