//! Where each event of a capture is, and what is known of it without its data: for programs that choose
//! events by number and read only these.
//!
//! The data of an event file is passed over, so damage to it is found when its event is read. All other
//! damage is found here, and left out as [`super::Sequential`] leaves it out.

mod building;
mod records;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::event_file::{self, Parsed};
use super::{CaptureReadError, CapturedEvent, Item, OpenError, Payload, lines};
use crate::filter::Filter;
use crate::{EventKind, Statistics};

/// The most gaps that are kept of a capture; those behind them are counted.
pub const MAX_GAPS: usize = 65_536;
/// The most events of a capture that are indexed: each takes about 100 bytes of memory.
pub const MAX_INDEXED_EVENTS: usize = 1 << 26;
/// The most combinations of kind, core, pipe, prefix, data type and shape. There may be one for each event of a
/// directory.
pub const MAX_FORMS: usize = 1 << 20;
const _: () = assert!(MAX_FORMS < MAX_INDEXED_EVENTS);
const _: () = assert!(MAX_INDEXED_EVENTS < u32::MAX as usize, "events have numbers of 32 bits");

/// The events of a capture by number.
#[derive(Debug)]
pub struct CaptureIndex {
    /// The file; none for a directory.
    file: Option<File>,
    entries: Vec<Entry>,
    forms: Vec<Arc<Form>>,
    gaps: Vec<Gap>,
    more_gaps: u64,
}

/// How large an index may become. Above these limits there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexLimits {
    /// The most events; [`MAX_INDEXED_EVENTS`] by default, which is also the most that can be set.
    pub events: usize,
    /// The most combinations of kind, core, pipe, prefix, data type and shape; [`MAX_FORMS`] by default,
    /// which is also the most that can be set.
    pub forms: usize,
}

/// What is not in a capture, and in front of which event.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// The number of the event behind it.
    pub before: usize,
    /// What it is; never an event.
    pub item: Item,
}

/// What is known of an event without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFacts<'index> {
    /// What it is.
    pub kind: EventKind,
    /// The logical core that it comes from.
    pub core: Option<u32>,
    /// See [`crate::EventView::pipe`].
    pub pipe: u32,
    /// What the kernel's author called it.
    pub prefix: &'index str,
    /// The name of its data type; empty where there is none.
    pub dtype: &'index str,
    /// Its dimensions.
    pub shape: &'index [u64],
    /// How many bytes of data it had.
    pub bytes: u64,
    /// See [`crate::EventView::sequence`].
    pub sequence: Option<u64>,
    /// See [`crate::EventView::time_ns`].
    pub time_ns: Option<u64>,
    /// See [`crate::Event::iteration`].
    pub iteration: Option<u64>,
}

/// Why a capture has no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] CaptureReadError),
    /// It has more events than [`IndexLimits::events`].
    #[error(
        "the capture cannot be indexed: it has more than {0} events; give a part of it, which \
         `telltale events --convert` writes"
    )]
    TooManyEvents(usize),
    /// Its events differ more than [`IndexLimits::forms`] allows.
    #[error(
        "the capture cannot be indexed: its events have more than {0} combinations of core, prefix, \
         data type and shape; give a part of it, which `telltale events --convert` writes"
    )]
    TooManyForms(usize),
    /// The caller did not want to go on.
    #[error("reading was interrupted")]
    Interrupted,
}

/// What many events have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Form {
    kind: EventKind,
    core: Option<u32>,
    pipe: u32,
    prefix: String,
    dtype: String,
    shape: Vec<u64>,
}

#[derive(Debug)]
struct Entry {
    form: u32,
    place: EventPlace,
    bytes: u64,
    sequence: Option<u64>,
    time_ns: Option<u64>,
    iteration: Option<u64>,
}

/// Where an event is.
#[derive(Debug)]
enum EventPlace {
    Record {
        at: u64,
        bytes: usize,
    },
    Line {
        at: u64,
        bytes: usize,
    },
    File(Box<Path>),
    /// Nowhere but in the index: the capture has no data of it.
    Facts(Option<Box<Statistics>>),
}

// === impl CaptureIndex ===

impl CaptureIndex {
    /// Goes through a directory or a file. Before each read, `goes_on` is asked; it should return quickly.
    ///
    /// # Errors
    /// When it cannot be opened, is no capture or has too many events, or `goes_on` returns false.
    pub fn open(path: &Path, goes_on: impl FnMut() -> bool) -> Result<Self, IndexError> {
        Self::open_within(path, IndexLimits::default(), goes_on)
    }

    /// The same with limits of the caller.
    ///
    /// # Errors
    /// As of [`CaptureIndex::open`].
    pub fn open_within(
        path: &Path,
        limits: IndexLimits,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Self, IndexError> {
        building::build(path, limits, &mut goes_on)
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the capture lacks, in its order.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Gaps beyond [`MAX_GAPS`].
    #[must_use]
    pub fn more_gaps(&self) -> u64 {
        self.more_gaps
    }

    /// What is known of an event.
    #[must_use]
    pub fn facts(&self, number: usize) -> Option<EventFacts<'_>> {
        let entry = self.entries.get(number)?;
        let form = self.forms.get(usize::try_from(entry.form).ok()?)?;
        Some(EventFacts {
            kind: form.kind,
            core: form.core,
            pipe: form.pipe,
            prefix: &form.prefix,
            dtype: &form.dtype,
            shape: &form.shape,
            bytes: entry.bytes,
            sequence: entry.sequence,
            time_ns: entry.time_ns,
            iteration: entry.iteration,
        })
    }

    /// Reads an event with its data; none if there is no such number.
    ///
    /// # Errors
    /// When it cannot be read, or is not what was there before.
    pub fn load(&self, number: usize) -> io::Result<Option<CapturedEvent>> {
        let (Some(entry), Some(facts)) = (self.entries.get(number), self.facts(number)) else {
            return Ok(None);
        };
        let item = match &entry.place {
            EventPlace::Record { at, bytes } => {
                match event_file::parse(&self.bytes(*at, *bytes)?) {
                    Parsed::Record(item, _) => item,
                    Parsed::Damaged(_) => return Err(io::Error::other(event_file::DAMAGED)),
                    Parsed::Broken(reason) => return Err(io::Error::other(reason)),
                    Parsed::Short(_) => return Err(io::Error::other(event_file::CUT_SHORT)),
                }
            }
            EventPlace::Line { at, bytes } => {
                lines::parse(&self.bytes(*at, *bytes)?).map_err(io::Error::other)?
            }
            EventPlace::File(path) => {
                let mut event = facts.event(Payload::File(path.to_path_buf()));
                event.load()?;
                return Ok(Some(event));
            }
            EventPlace::Facts(statistics) => {
                let statistics = statistics.as_deref().copied();
                return Ok(Some(facts.event(Payload::LeftOut(statistics))));
            }
        };
        match item {
            Item::Event(event) => Ok(Some(*event)),
            _ => Err(io::Error::other("the file has changed")),
        }
    }

    /// Those of `numbers` whose events a filter wants, in their order. `every` counts by core.
    #[must_use]
    pub fn select(&self, filter: &Filter, numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let wants = |form: &Arc<Form>| filter.wants_form(form.core, &form.prefix, &form.dtype);
        let wanted: Vec<bool> = self.forms.iter().map(wants).collect();
        let mut passed: HashMap<Option<u32>, u64> = HashMap::new();
        let is_wanted = |number: &u32| {
            let entry = usize::try_from(*number).ok().and_then(|number| self.entries.get(number));
            let Some(entry) = entry else { return false };
            let form = usize::try_from(entry.form).unwrap_or(usize::MAX);
            if !wanted.get(form).is_some_and(|wanted| *wanted) || !filter.wants_size(entry.bytes) {
                return false;
            }
            let Some(nth) = filter.nth() else { return true };
            let before = passed.entry(self.forms[form].core).or_default();
            *before += 1;
            (*before - 1).is_multiple_of(nth.get())
        };
        numbers.into_iter().filter(is_wanted).collect()
    }

    fn bytes(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut read = vec![0; bytes];
        file.read_exact_at(&mut read, at)?;
        Ok(read)
    }
}

// === impl IndexLimits ===

impl Default for IndexLimits {
    fn default() -> Self {
        Self { events: MAX_INDEXED_EVENTS, forms: MAX_FORMS }
    }
}

// === impl EventFacts ===

impl EventFacts<'_> {
    fn event(&self, payload: Payload) -> CapturedEvent {
        CapturedEvent {
            kind: self.kind,
            sequence: self.sequence,
            time_ns: self.time_ns,
            iteration: self.iteration,
            core: self.core,
            pipe: self.pipe,
            prefix: self.prefix.to_owned(),
            dtype: self.dtype.to_owned(),
            shape: self.shape.to_vec(),
            bytes: self.bytes,
            payload,
        }
    }
}
