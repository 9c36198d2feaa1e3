//! An entry of a class, and the parts that were found in it.

use std::collections::BTreeMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::HostPartKind;
use crate::tree::Directory;

/// The longest name of an owner, a channel or a label, in characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// What a part's files said, by the names of readings.
pub(super) type Readings = BTreeMap<&'static str, Reading<f64>>;

/// A part as it was found, and how it is read.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) kind: HostPartKind,
    /// Its number in the entry, from 1 on; it stays the same.
    pub(super) item: u32,
    /// What has it: the driver of a chip of sensors, an interface.
    pub(super) owner: String,
    /// Where the owner is, which tells it from another one of the same name.
    pub(super) place: Option<String>,
    /// Which of the owner's parts it is; none where it is the owner itself.
    pub(super) channel: Option<String>,
    /// What the driver calls the channel, where that is known.
    pub(super) label: Option<String>,
    /// The names of its readings.
    pub(super) names: &'static [&'static str],
    /// Reads them from the entry's directory.
    pub(super) read: fn(&Directory, &Found, Timestamp) -> Readings,
}

/// An entry that is listed.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its tasks' group.
    pub(super) group: u32,
    found: Vec<Found>,
    labels: BTreeMap<u32, String>,
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(group: u32) -> Self {
        Self { group, found: Vec::new(), labels: BTreeMap::new() }
    }

    /// Its parts are now these.
    pub(super) fn update(&mut self, found: Vec<Found>) {
        self.labels.retain(|item, _| found.iter().any(|part| part.item == *item));
        self.found = found;
    }

    /// Its parts, with labels as far as known.
    pub(super) fn found(&self) -> impl Iterator<Item = Found> {
        self.found
            .iter()
            .map(|part| Found { label: self.labels.get(&part.item).cloned(), ..part.clone() })
    }

    /// Keeps the label that was read; the first one stays, so that names do not change.
    pub(super) fn keep_label(&mut self, item: u32, label: Option<String>) -> Option<String> {
        if let Some(label) = label {
            self.labels.entry(item).or_insert(label);
        }
        self.labels.get(&item).cloned()
    }
}

// === impl Found ===

impl Found {
    /// The label, unless it is known, and the readings.
    pub(super) fn read(&self, directory: &Directory, now: Timestamp) -> (Option<String>, Readings) {
        let channel = self.channel.as_deref().filter(|_| self.label.is_none());
        let label =
            channel.and_then(|channel| directory.attribute(&format!("{channel}_label")).ok());
        let label = label.map(|bytes| cleaned(&String::from_utf8_lossy(&bytes)));
        (label.filter(|label| !label.is_empty()), (self.read)(directory, self, now))
    }

    /// Its readings when nothing could be read.
    pub(super) fn absent(&self, reason: Absence, detail: &str) -> Readings {
        self.names.iter().map(|name| (*name, Reading::absent(reason, detail))).collect()
    }

    /// What it is called. `by_place` where another owner has the same name.
    pub(super) fn name(&self, by_place: bool) -> String {
        let mut name = self.owner.clone();
        if let Some(place) = self.place.as_deref().filter(|_| by_place) {
            name = format!("{name}-{place}");
        }
        match self.label.as_ref().or(self.channel.as_ref()) {
            Some(channel) => format!("{name}/{channel}"),
            None => name,
        }
    }
}

/// A text of the machine as part of a name: one line without control characters.
pub(super) fn cleaned(text: &str) -> String {
    let clean = text.trim().chars().filter(|letter| !letter.is_control());
    clean.take(MAX_NAME_CHARACTERS).collect()
}
