//! Reading many ledgers at once, for a service that does so periodically.
//!
//! One system call copies all of them from maps into a buffer of our own. The maps are never
//! touched by this process itself: a ledger that was cut short stops the kernel's copy there, which
//! is an error for that ledger and no signal. Whatever does not go this way (no anonymous file, no
//! map, a torn or grown ledger) is read as [`LedgerReader::read`] does.

mod buffer;

use crate::layout::PAGE_BYTES;
use crate::mapping::Mapping;
use crate::reader::{LedgerReader, LedgerReading, ReadError};

use buffer::{CopyBuffer, CopySource};

/// The longest used part of a ledger that goes through the map; a longer one is read alone. A map
/// of a file with holes gives them memory when it is read, so this also bounds what a lying
/// ledger can make us use.
const MOST_SWEPT_BYTES: usize = 64 * 1024;

/// A set of open ledgers.
#[derive(Debug, Default)]
pub struct LedgerSweep {
    /// By key; a hole is where one was removed.
    swept: Vec<Option<Swept>>,
    holes: Vec<usize>,
    buffer: Option<CopyBuffer>,
    /// The kernel cannot copy for us here, so that we do not ask again.
    refused: bool,
    sources: Vec<CopySource>,
    keys: Vec<usize>,
}

/// A ledger's place in a [`LedgerSweep`]; given to another one after it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SweepKey(usize);

#[derive(Debug)]
struct Swept {
    reader: LedgerReader,
    mapping: Option<Mapping>,
    outcome: Result<(), ReadError>,
}

// === impl LedgerSweep ===

impl LedgerSweep {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a ledger into the set and reads it once.
    pub fn insert(&mut self, mut reader: LedgerReader) -> SweepKey {
        let outcome = reader.read().map(|_| ());
        let mut swept = Swept { reader, mapping: None, outcome };
        swept.map_what_is_used();
        let swept = Some(swept);
        let key = self.holes.pop().unwrap_or(self.swept.len());
        match self.swept.get_mut(key) {
            Some(hole) => *hole = swept,
            None => self.swept.push(swept),
        }
        SweepKey(key)
    }

    /// Takes a ledger out of the set.
    pub fn remove(&mut self, key: SweepKey) -> Option<LedgerReader> {
        let swept = self.swept.get_mut(key.0)?.take()?;
        self.holes.push(key.0);
        Some(swept.reader)
    }

    /// How many ledgers are in the set.
    pub fn len(&self) -> usize {
        self.swept.len() - self.holes.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads all of them.
    pub fn read_all(&mut self) {
        let needed = self.list_sources();
        if !self.make_room(needed) {
            return self.swept.iter_mut().flatten().for_each(Swept::read_alone);
        }
        let buffer = self.buffer.as_mut().expect("there is room, so there is a buffer");
        buffer.copy_all(&mut self.sources);
        for (&key, source) in self.keys.iter().zip(&self.sources) {
            let swept = self.swept[key].as_mut().expect("only ledgers in the set are listed");
            match source.copied(buffer) {
                Some(copy) => swept.take(copy),
                None => swept.read_alone(),
            }
        }
        // Those that are not listed.
        for swept in self.swept.iter_mut().flatten().filter(|swept| swept.source().is_none()) {
            swept.read_alone();
        }
    }

    /// The last reading of a ledger, or why there is none.
    pub fn get(&self, key: SweepKey) -> Option<Result<&LedgerReading, &ReadError>> {
        self.swept.get(key.0)?.as_ref().map(Swept::last)
    }

    /// The last readings of all.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (SweepKey, Result<&LedgerReading, &ReadError>)> + '_ {
        let keys = self.swept.iter().enumerate();
        keys.filter_map(|(key, swept)| Some((SweepKey(key), swept.as_ref()?.last())))
    }

    /// Lists what the kernel is to copy. Gives its total size.
    fn list_sources(&mut self) -> usize {
        self.sources.clear();
        self.keys.clear();
        let mut needed = 0;
        for (key, swept) in self.swept.iter().enumerate() {
            if let Some((address, length)) = swept.as_ref().and_then(Swept::source) {
                self.sources.push(CopySource::new(address, length, needed));
                self.keys.push(key);
                needed += length;
            }
        }
        needed
    }

    fn make_room(&mut self, needed: usize) -> bool {
        if self.buffer.as_ref().is_none_or(|buffer| buffer.length() < needed) && !self.refused {
            let length = needed.next_power_of_two().max(PAGE_BYTES);
            self.buffer = CopyBuffer::new(length).ok();
            self.refused = self.buffer.is_none();
        }
        !self.refused
    }
}

// === impl Swept ===

impl Swept {
    /// Where the used part of the ledger is mapped, and its length; none if it is read alone.
    fn source(&self) -> Option<(*const u8, usize)> {
        let length = self.reader.expected_bytes();
        let mapping = self.mapping.as_ref().filter(|mapping| length <= mapping.length())?;
        Some((mapping.address(), length))
    }

    fn take(&mut self, copy: &[u8]) {
        match self.reader.take_copy(copy) {
            Ok(true) => self.outcome = Ok(()),
            Ok(false) => self.read_alone(),
            Err(error) => self.outcome = Err(error),
        }
    }

    fn read_alone(&mut self) {
        self.outcome = self.reader.read().map(|_| ());
        self.map_what_is_used();
    }

    /// Maps the pages that are used now, if they were not: the kernel gives memory of this process
    /// to pages around the one that is touched, but to none beyond the map. Without a map, the
    /// ledger is read alone.
    fn map_what_is_used(&mut self) {
        let length = self.reader.expected_bytes().next_multiple_of(PAGE_BYTES);
        let mapped = self.mapping.as_ref().map_or(0, Mapping::length);
        if length > mapped && length <= MOST_SWEPT_BYTES {
            self.mapping = Mapping::readable(self.reader.descriptor(), length).ok();
        }
    }

    fn last(&self) -> Result<&LedgerReading, &ReadError> {
        self.outcome.as_ref().map(|()| self.reader.last())
    }
}
