//! A recording in the place of the present.

use telltale_schema::quantity;

use super::event::{Action, PressedKey};
use super::view::View;

/// Where in a recording the view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The place of the snapshot that is shown, from 0.
    pub place: usize,
    /// How many there are.
    pub count: usize,
    /// Whether the next one follows by itself.
    pub plays: bool,
}

impl View {
    /// What a key does to a recording; none for other keys, and where there is none.
    pub(super) fn key_in_recording(&self, key: PressedKey) -> Option<Action> {
        self.recorded?;
        let step = |back, steps| Some(Action::Step { back, steps });
        match key {
            PressedKey::Char('[') => step(true, 1),
            PressedKey::Char(']') => step(false, 1),
            PressedKey::Char('{') => step(true, super::past::STRIDE),
            PressedKey::Char('}') => step(false, super::past::STRIDE),
            PressedKey::Char('p') => Some(Action::Play),
            _ => None,
        }
    }

    /// Where in a recording the view is, in words.
    pub(super) fn recorded_words(&self) -> Option<String> {
        let Recorded { place, count, plays } = self.recorded?;
        let number = |number: usize| quantity::count(u64::try_from(number).unwrap_or(u64::MAX));
        let key = if plays { "p: halt" } else { "p: play" };
        Some(format!("RECORDED {} of {} ({key})", number(place + 1), number(count)))
    }
}
