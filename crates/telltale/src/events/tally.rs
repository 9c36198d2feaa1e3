//! What was read in all, and the exit status that it stands for.

use telltale_debug_stream::capture::{Item, NoTensor};
use telltale_schema::quantity::count;

use super::words::plural;
use crate::exit::{self, Status};

/// Counts of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) events: u64,
    pub(super) malformed: u64,
    pub(super) unreadable: u64,
    pub(super) lost: u64,
    pub(super) missing: u64,
    /// Among the last ones that were asked for, but too large to be held back.
    pub(super) not_held: u64,
}

impl Tally {
    pub(super) fn count(&mut self, item: &Item) {
        match item {
            Item::Event(event) => {
                self.events += 1;
                let is_malformed = matches!(event.tensor(), Err(NoTensor::Malformed(_)));
                self.malformed += u64::from(is_malformed);
            }
            Item::Lost(losses) => self.lost = self.lost.saturating_add(losses.sum()),
            Item::Missing { events, .. } => self.missing = self.missing.saturating_add(*events),
            Item::Unreadable(_) => self.unreadable += 1,
        }
    }

    /// All of it in a line.
    pub(super) fn words(&self) -> String {
        let mut words = plural(self.events, "event");
        for (number, what) in [
            (self.lost, "lost"),
            (self.missing, "not in the capture"),
            (self.malformed, "malformed"),
        ] {
            if number > 0 {
                words.push_str(&format!(", {} {what}", count(number)));
            }
        }
        if self.unreadable > 0 {
            words.push_str(&format!(", {} unreadable", plural(self.unreadable, "place")));
        }
        words
    }

    /// Tells on standard error what a long list may hide.
    pub(super) fn tell(&self) {
        if self.malformed > 0 || self.unreadable > 0 {
            exit::tell(&format!("telltale: {}", self.words()));
        }
        if self.not_held > 0 {
            let events = plural(self.not_held, "event");
            exit::tell(&format!(
                "telltale: {events} of the last ones left out, for too much data; name fewer with \
                 --last, or give a directory"
            ));
        }
    }

    pub(super) fn status(&self) -> Status {
        if self.events == 0 && self.unreadable > 0 {
            return Status::Nothing;
        }
        Status::Fine.after(self.malformed > 0 || self.unreadable > 0 || self.not_held > 0)
    }
}
