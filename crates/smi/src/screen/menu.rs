//! Menus: the column to sort by, and the columns that are shown.

use super::column::Column;
use super::event::PressedKey;
use super::settings::ViewSettings;

/// An open menu.
#[derive(Debug, Clone)]
pub(super) struct Menu {
    pub(super) kind: MenuKind,
    /// The columns in the menu's order.
    pub(super) columns: Vec<Column>,
    pub(super) at: usize,
}

/// What a menu is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MenuKind {
    Sort,
    Columns,
}

impl Menu {
    pub(super) fn new(kind: MenuKind, settings: &ViewSettings) -> Self {
        let mut columns = Column::ALL.to_vec();
        if kind == MenuKind::Columns {
            // Those that are shown come first, in the order in which they are.
            let place = |column: &Column| {
                settings.columns.iter().position(|it| it == column).unwrap_or(usize::MAX)
            };
            columns.sort_by_key(place);
        }
        let at = match kind {
            MenuKind::Sort => columns.iter().position(|it| *it == settings.sort).unwrap_or(0),
            MenuKind::Columns => 0,
        };
        Self { kind, columns, at }
    }

    /// Takes a key; false closes the menu.
    pub(super) fn key(&mut self, key: PressedKey, settings: &mut ViewSettings) -> bool {
        let last = self.columns.len() - 1;
        match key {
            PressedKey::Escape | PressedKey::Char('q') | PressedKey::Function(2 | 6 | 10) => {
                return false;
            }
            PressedKey::Up => self.at = self.at.saturating_sub(1),
            PressedKey::Down => self.at = (self.at + 1).min(last),
            PressedKey::Home => self.at = 0,
            PressedKey::End => self.at = last,
            PressedKey::Enter if self.kind == MenuKind::Sort => {
                sort_by(self.columns[self.at], settings);
                return false;
            }
            PressedKey::Enter => return false,
            PressedKey::Char(' ') if self.kind == MenuKind::Columns => self.turn(settings),
            PressedKey::Char('[' | '-') if self.kind == MenuKind::Columns && self.at > 0 => {
                self.columns.swap(self.at, self.at - 1);
                self.at -= 1;
                self.reorder(settings);
            }
            PressedKey::Char(']' | '+') if self.kind == MenuKind::Columns && self.at < last => {
                self.columns.swap(self.at, self.at + 1);
                self.at += 1;
                self.reorder(settings);
            }
            _ => {}
        }
        true
    }

    /// Shows or hides the column; the last one stays.
    fn turn(&self, settings: &mut ViewSettings) {
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

    fn reorder(&self, settings: &mut ViewSettings) {
        let place = |column: &Column| self.columns.iter().position(|it| it == column);
        settings.columns.sort_by_key(place);
    }
}

/// Sorts by a column: numbers by the largest, text by the alphabet, and the same column once more
/// the other way round.
pub(super) fn sort_by(column: Column, settings: &mut ViewSettings) {
    settings.descending =
        if settings.sort == column { !settings.descending } else { column.is_number() };
    settings.sort = column;
}
