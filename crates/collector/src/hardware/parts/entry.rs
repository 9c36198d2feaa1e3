//! An entry of a class, and the parts that were found in it.

use std::collections::BTreeMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::HostPartKind;
use super::infiniband::gids::GidTable;
use crate::tree::Directory;

/// The longest name of an owner, in characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// What a part's files said, by the names of readings.
pub(super) type Readings = BTreeMap<&'static str, Reading<f64>>;

/// What one read of a part gave.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) readings: Readings,
    /// A port's table of GIDs, for the next read.
    pub(super) gids: Option<GidTable>,
}

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
    /// A port's table of GIDs, as it was read last.
    pub(super) gids: Option<GidTable>,
    /// The names of its readings.
    pub(super) names: &'static [&'static str],
    /// Reads them from the entry's directory.
    pub(super) read: fn(&Directory, &Found, Timestamp) -> Answer,
}

/// An entry that is listed.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its tasks' group.
    pub(super) group: u32,
    found: Vec<Found>,
    /// Whether its parts are called by where it is. That is decided when they are read first, so that a
    /// second owner of the same name changes no names.
    by_place: Option<bool>,
    gids: BTreeMap<u32, GidTable>,
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(group: u32) -> Self {
        Self { group, found: Vec::new(), by_place: None, gids: BTreeMap::new() }
    }

    /// Its parts are now these.
    pub(super) fn update(&mut self, found: Vec<Found>) {
        self.gids.retain(|item, _| found.iter().any(|part| part.item == *item));
        self.found = found;
    }

    /// Its parts, with what is known of them.
    pub(super) fn found(&self) -> impl Iterator<Item = Found> {
        let part =
            |part: &Found| Found { gids: self.gids.get(&part.item).cloned(), ..part.clone() };
        self.found.iter().map(part)
    }

    /// Keeps what the next read needs.
    pub(super) fn keep(&mut self, item: u32, gids: Option<GidTable>) {
        self.gids.extend(gids.map(|gids| (item, gids)));
    }

    /// What a part of it is called. `is_shared` where another owner has the same name.
    pub(super) fn name(&mut self, part: &Found, is_shared: bool) -> String {
        part.name(*self.by_place.get_or_insert(is_shared))
    }
}

// === impl Answer ===

impl From<Readings> for Answer {
    fn from(readings: Readings) -> Self {
        Self { readings, gids: None }
    }
}

impl<const COUNT: usize> From<[(&'static str, Reading<f64>); COUNT]> for Answer {
    fn from(readings: [(&'static str, Reading<f64>); COUNT]) -> Self {
        Readings::from(readings).into()
    }
}

// === impl Found ===

impl Found {
    /// Its readings when nothing could be read.
    pub(super) fn absent(&self, reason: Absence, detail: &str) -> Readings {
        self.names.iter().map(|name| (*name, Reading::absent(reason, detail))).collect()
    }

    /// What it is called. Labels are no names: they are free text, several channels may have the same,
    /// and one may be read late.
    fn name(&self, by_place: bool) -> String {
        let mut name = self.owner.clone();
        if let Some(place) = self.place.as_deref().filter(|_| by_place) {
            name = format!("{name}-{place}");
        }
        match &self.channel {
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
