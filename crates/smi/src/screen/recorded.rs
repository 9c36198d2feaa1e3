//! A recording in the place of the present.

use std::sync::Arc;

use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;

use super::Screen;
use super::event::{Action, Key};

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

impl Screen {
    /// Shows a snapshot of a recording from now on.
    pub fn update_recorded(&mut self, snapshot: Arc<Snapshot>, recorded: Recorded) {
        self.recorded = Some(recorded);
        // Graphs have what was before this moment, whichever way one came here.
        self.history.rewind(snapshot.taken_at);
        let now = snapshot.taken_at;
        self.update(snapshot, now);
    }

    /// What a key does to a recording; none for other keys, and where there is none.
    pub(super) fn key_in_recording(&self, key: Key) -> Option<Action> {
        self.recorded?;
        let step = |back, steps| Some(Action::Step { back, steps });
        match key {
            Key::Char('[') => step(true, 1),
            Key::Char(']') => step(false, 1),
            Key::Char('{') => step(true, super::past::STRIDE),
            Key::Char('}') => step(false, super::past::STRIDE),
            Key::Char('p') => Some(Action::Play),
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
