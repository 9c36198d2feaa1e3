//! Menus: the column to sort by, and the columns that are shown.

use super::column::Column;
use super::event::Key;
use super::settings::Settings;

/// An open menu.
#[derive(Debug, Clone)]
pub(super) struct Menu {
    pub(super) kind: Kind,
    /// The columns in the menu's order.
    pub(super) columns: Vec<Column>,
    pub(super) at: usize,
}

/// What a menu is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sort,
    Columns,
}

impl Menu {
    pub(super) fn new(kind: Kind, settings: &Settings) -> Self {
        let mut columns = Column::ALL.to_vec();
        if kind == Kind::Columns {
            // Those that are shown come first, in the order in which they are.
            let place = |column: &Column| {
                settings.columns.iter().position(|it| it == column).unwrap_or(usize::MAX)
            };
            columns.sort_by_key(place);
        }
        let at = match kind {
            Kind::Sort => columns.iter().position(|it| *it == settings.sort).unwrap_or(0),
            Kind::Columns => 0,
        };
        Self { kind, columns, at }
    }

    /// Takes a key; false closes the menu.
    pub(super) fn key(&mut self, key: Key, settings: &mut Settings) -> bool {
        let last = self.columns.len() - 1;
        match key {
            Key::Escape | Key::Char('q') | Key::Function(2 | 6 | 10) => return false,
            Key::Up => self.at = self.at.saturating_sub(1),
            Key::Down => self.at = (self.at + 1).min(last),
            Key::Home => self.at = 0,
            Key::End => self.at = last,
            Key::Enter if self.kind == Kind::Sort => {
                sort_by(self.columns[self.at], settings);
                return false;
            }
            Key::Enter => return false,
            Key::Char(' ') if self.kind == Kind::Columns => self.turn(settings),
            Key::Char('[' | '-') if self.kind == Kind::Columns && self.at > 0 => {
                self.columns.swap(self.at, self.at - 1);
                self.at -= 1;
                self.reorder(settings);
            }
            Key::Char(']' | '+') if self.kind == Kind::Columns && self.at < last => {
                self.columns.swap(self.at, self.at + 1);
                self.at += 1;
                self.reorder(settings);
            }
            _ => {}
        }
        true
    }

    /// Shows or hides the column; the last one stays.
    fn turn(&self, settings: &mut Settings) {
        let column = self.columns[self.at];
        match settings.columns.iter().position(|it| *it == column) {
            Some(at) if settings.columns.len() > 1 => {
                settings.columns.remove(at);
            }
            Some(_) => {}
            None => {
                settings.columns.push(column);
                self.reorder(settings);
            }
        }
    }

    fn reorder(&self, settings: &mut Settings) {
        let place = |column: &Column| self.columns.iter().position(|it| it == column);
        settings.columns.sort_by_key(place);
    }
}

/// Sorts by a column: figures by the largest, words by the alphabet, and the same column once more
/// the other way round.
pub(super) fn sort_by(column: Column, settings: &mut Settings) {
    settings.descending =
        if settings.sort == column { !settings.descending } else { column.is_figure() };
    settings.sort = column;
}
