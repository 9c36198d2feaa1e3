//! The list in which a device is chosen: what is typed leaves those that have it in their name, number,
//! PCI address or holders.

use telltale_schema::snapshot::{Device, Snapshot};

use super::event::PressedKey;
use super::pointer::Pointer;
use crate::processes;

/// Characters that are typed at most.
const MAX_TYPED: usize = 100;
/// Rows that a page goes.
const PAGE: usize = 10;

/// The open list.
#[derive(Debug, Clone, Default)]
pub(super) struct DevicePicker {
    typed: String,
    /// The selected device, by its id.
    pub(super) selected: Pointer<String>,
    /// Where a click selects: the first row that was painted last.
    pub(super) first: usize,
}

/// A device in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PickerRow {
    /// Its place in what is shown.
    pub(super) place: usize,
    /// Its place among all devices, as `telltale smi -i` counts.
    pub(super) index: usize,
    pub(super) id: String,
    /// Its PCI address; empty without one.
    pub(super) pci: String,
    /// Names and users of its holders, the one with most memory first.
    pub(super) holders: String,
}

/// What a key did to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picked {
    Open,
    /// It is closed, and nothing is chosen.
    Closed,
    /// The device in this place of what is shown is chosen.
    Device(usize),
}

// === impl PickerRow ===

impl PickerRow {
    fn of(shown: &Snapshot, whole: &Snapshot, place: usize) -> Self {
        let device = &shown.devices[place];
        let is_it = |other: &Device| other.id == device.id;
        let holders = shown.holders(place);
        let name = |process| {
            let (command, owner) = (processes::command(process), processes::owner(process));
            let name = command.text().split_whitespace().next().unwrap_or_default();
            format!("{name} ({})", owner.text())
        };
        let mut names: Vec<String> = Vec::new();
        for name in holders.known.iter().map(|(process, _)| name(process)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self {
            place,
            index: whole.devices.iter().position(is_it).unwrap_or(place),
            id: device.id.clone(),
            pci: device.identity.pci().map_or_else(String::new, |pci| pci.to_string()),
            holders: names.join(", "),
        }
    }

    /// How well a word fits: 0 as the whole number or name, 1 as a part of something.
    fn fit(&self, word: &str) -> Option<u8> {
        let texts = [&self.id, &self.pci, &self.holders].map(|text| text.to_lowercase());
        if self.index.to_string() == word || texts[..2].iter().any(|text| text == word) {
            return Some(0);
        }
        texts.iter().any(|text| text.contains(word)).then_some(1)
    }
}

// === impl DevicePicker ===

impl DevicePicker {
    /// A list with this device selected, if it has it.
    pub(super) fn new(selected: Option<String>) -> Self {
        let mut list = Self::default();
        if let Some(id) = selected {
            list.selected.seek(id);
        }
        list
    }

    pub(super) fn typed(&self) -> &str {
        &self.typed
    }

    /// The devices that have each word that was typed; those that are called so come first.
    pub(super) fn rows(&mut self, shown: &Snapshot, whole: &Snapshot) -> Vec<PickerRow> {
        let typed = self.typed.to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        let fitting = (0..shown.devices.len()).filter_map(|place| {
            let row = PickerRow::of(shown, whole, place);
            let fits: Option<Vec<u8>> = words.iter().map(|word| row.fit(word)).collect();
            Some((fits?.into_iter().sum::<u8>(), row))
        });
        let mut fitting: Vec<_> = fitting.collect();
        fitting.sort_by_key(|(fit, _)| *fit);
        let rows: Vec<PickerRow> = fitting.into_iter().map(|(_, row)| row).collect();
        self.selected.find(rows.len(), |at| rows[at].id.clone());
        rows
    }

    /// Takes a key, where these rows are listed.
    pub(super) fn key(&mut self, key: PressedKey, rows: &[PickerRow]) -> Picked {
        let at = self.selected.at();
        let to = match key {
            PressedKey::Escape | PressedKey::Control('c' | 'g') | PressedKey::Function(10) => {
                return Picked::Closed;
            }
            PressedKey::Enter => {
                return rows.get(at).map_or(Picked::Open, |row| Picked::Device(row.place));
            }
            PressedKey::Char(typed) if !typed.is_control() => {
                if self.typed.chars().count() < MAX_TYPED {
                    self.narrow(|text| text.push(typed));
                }
                return Picked::Open;
            }
            PressedKey::Backspace => {
                self.narrow(|text| {
                    text.pop();
                });
                return Picked::Open;
            }
            PressedKey::Control('u') => {
                self.narrow(String::clear);
                return Picked::Open;
            }
            PressedKey::Up => at.saturating_sub(1),
            PressedKey::Down => at.saturating_add(1),
            PressedKey::PageUp => at.saturating_sub(PAGE),
            PressedKey::PageDown => at.saturating_add(PAGE),
            PressedKey::Home => 0,
            PressedKey::End => usize::MAX,
            _ => return Picked::Open,
        };
        self.go(to, rows);
        Picked::Open
    }

    /// Selects another row.
    pub(super) fn go(&mut self, to: usize, rows: &[PickerRow]) {
        self.selected.go(to, |at| rows[at].id.clone());
    }

    /// Changes what is typed; what fits best is selected then.
    fn narrow(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.typed);
        self.selected = Pointer::default();
    }
}
