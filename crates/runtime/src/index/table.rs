//! One shard of the index: cache lines of seven buffers each, and a hash table for those that do
//! not fit (docs/decisions/0023-lines-of-seven.md).
//!
//! A buffer is in one of the two. A line counts what belongs to it and is in the hash table, so
//! that nearly every look-up ends at the line.

use hashbrown::HashTable;
use telltale_schema::memory::MemoryKind;

use super::line::{Compact, Line, SlotKey};
use super::{Buffer, Inserted, MAX_BUFFER_BYTES, Removed, SHARD_BITS, Slot, hash};

/// Live buffers that one shard keeps; 16 Mi in all. Beyond that they are not recorded.
const MAX_LIVE: usize = 1 << 20;
/// Freed addresses that one shard remembers, to distinguish a double free from an unknown one.
const REMEMBERED_FREES: usize = 64;
/// Lines to begin with: 16 KiB in all shards. Growing from fewer leaves the C library with small
/// blocks that it counts as in use, up to 20 bytes for each of 1,000 buffers.
const FIRST_LINES: usize = 16;
/// Slots of a line.
const SLOTS: usize = 7;

pub(super) struct IndexTable {
    lines: Vec<Line>,
    /// Buffers that the lines take before there are more of them.
    room: usize,
    /// Everything else.
    wide: HashTable<Slot>,
    /// A part of the hash of each place freed lately, at the spot that another part gives: a later
    /// free may take the spot. Zero is none.
    freed: [u32; REMEMBERED_FREES],
}

impl IndexTable {
    pub(super) fn new() -> Self {
        let wide = HashTable::new();
        Self { lines: Vec::new(), room: 0, wide, freed: [0; REMEMBERED_FREES] }
    }

    /// Notes a buffer at a free place, if that takes no more than a check of its line. False, and
    /// nothing done, if it takes more: then [`Self::insert`] is for it.
    #[inline(always)]
    pub(super) fn insert_in_line(
        &mut self,
        hash: u64,
        address: u64,
        tag: u8,
        buffer: Buffer,
    ) -> bool {
        let Some(slot) = SlotKey::new(address, tag).and_then(|key| Compact::new(key, buffer))
        else {
            return false;
        };
        let Some(room) = self.room.checked_sub(1) else { return false };
        let Some(line) = line_mut(&mut self.lines, hash) else { return false };
        if line.has_elsewhere() || !line.put(hash, slot) {
            return false;
        }
        self.room = room;
        true
    }

    /// Forgets a buffer of `kind` that is in its line, and gives its bytes. None, and nothing done,
    /// if that is not where it is: then [`Self::remove`] is for it.
    #[inline(always)]
    pub(super) fn remove_in_line(
        &mut self,
        hash: u64,
        address: u64,
        tag: u8,
        kind: MemoryKind,
    ) -> Option<u64> {
        let key = SlotKey::new(address, tag)?;
        let slot = line_mut(&mut self.lines, hash)?.take_of(hash, key, kind)?;
        self.room += 1;
        self.remember(hash);
        Some(slot.bytes())
    }

    /// Notes a buffer, whatever it takes.
    pub(super) fn insert(&mut self, hash: u64, address: u64, tag: u8, buffer: Buffer) -> Inserted {
        if buffer.bytes > MAX_BUFFER_BYTES {
            return Inserted::Refused;
        }
        let old = self.take(hash, address, tag);
        if old.is_none() && self.len() >= MAX_LIVE {
            return Inserted::Refused;
        }
        if self.room == 0 && SlotKey::new(address, tag).is_some() {
            self.rebuild(more_lines(self.lines.len()));
        }
        self.put(hash, address, tag, buffer);
        old.map_or(Inserted::Fresh, Inserted::Replaced)
    }

    /// Forgets what is at a place, wherever it is kept.
    pub(super) fn remove(&mut self, hash: u64, address: u64, tag: u8) -> Removed {
        match self.take(hash, address, tag) {
            Some(buffer) => {
                self.remember(hash);
                Removed::Live(buffer)
            }
            None if self.remembers(hash) => Removed::FreedBefore,
            None => Removed::Unknown,
        }
    }

    /// Takes out what is at a place.
    fn take(&mut self, hash: u64, address: u64, tag: u8) -> Option<Buffer> {
        let line = line_mut(&mut self.lines, hash);
        let key = SlotKey::new(address, tag);
        if let Some(slot) = line.zip(key).and_then(|(line, key)| line.take(hash, key)) {
            self.room += 1;
            return Some(slot.buffer());
        }
        self.take_wide(hash, address, tag)
    }

    fn take_wide(&mut self, hash: u64, address: u64, tag: u8) -> Option<Buffer> {
        let is_there = |found: &Slot| found.address == address && found.tag() == tag;
        let (slot, _) = self.wide.find_entry(wide_hash(hash), is_there).ok()?.remove();
        if SlotKey::new(address, tag).is_some()
            && let Some(line) = line_mut(&mut self.lines, hash)
        {
            line.remove_elsewhere();
        }
        Some(slot.buffer())
    }

    /// Puts a buffer where nothing is: into its line if it fits, else into the hash table.
    fn put(&mut self, hash: u64, address: u64, tag: u8, buffer: Buffer) {
        let line = line_mut(&mut self.lines, hash);
        if let (Some(line), Some(key)) = (line, SlotKey::new(address, tag)) {
            let slot = Compact::new(key, buffer).filter(|_| self.room > 0);
            if slot.is_some_and(|slot| line.put(hash, slot)) {
                self.room -= 1;
                return;
            }
            line.add_elsewhere();
        }
        let slot = Slot::new(address, tag, buffer);
        self.wide.insert_unique(wide_hash(hash), slot, |found| wide_hash(found.hash()));
    }

    /// Rehashes everything into so many lines.
    fn rebuild(&mut self, lines: usize) {
        let old_lines = std::mem::replace(&mut self.lines, vec![Line::EMPTY; lines]);
        let old_wide = std::mem::take(&mut self.wide);
        self.room = capacity(lines);
        for slot in old_lines.iter().flat_map(Line::slots) {
            let (address, tag) = (slot.key().address(), slot.key().tag());
            self.put(hash(address, tag), address, tag, slot.buffer());
        }
        for slot in old_wide {
            self.put(slot.hash(), slot.address, slot.tag(), slot.buffer());
        }
    }

    /// Forgets the buffers whose device and space are not wanted any more.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(u8) -> bool) {
        let unwanted: Vec<SlotKey> = self
            .lines
            .iter()
            .flat_map(Line::slots)
            .map(Compact::key)
            .filter(|key| !is_wanted(key.tag()))
            .collect();
        for key in unwanted {
            let (address, tag) = (key.address(), key.tag());
            self.take(hash(address, tag), address, tag);
        }
        self.wide.retain(|slot| is_wanted(slot.tag()));
        // The lines recount what is elsewhere.
        self.rebuild(self.lines.len());
    }

    pub(super) fn len(&self) -> usize {
        capacity(self.lines.len()) - self.room + self.wide.len()
    }

    #[cfg(test)]
    pub(super) fn allocated_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>() + self.wide.allocation_size()
    }

    fn remember(&mut self, hash: u64) {
        let (spot, mark) = freed_mark(hash);
        self.freed[spot] = mark;
    }

    fn remembers(&self, hash: u64) -> bool {
        let (spot, mark) = freed_mark(hash);
        self.freed[spot] == mark
    }
}

/// The line of a place, by the bits of its hash below those that choose the shard. None while there are no lines.
#[inline(always)]
fn line_mut(lines: &mut [Line], hash: u64) -> Option<&mut Line> {
    // A shard's lines are far fewer than 2^32.
    let number = ((hash << SHARD_BITS >> 32) * lines.len() as u64) >> 32;
    lines.get_mut(usize::try_from(number).ok()?)
}

/// A hash for the hash table, which checks the lowest and the highest bits: in a shard, the
/// highest are the same for all.
fn wide_hash(hash: u64) -> u64 {
    hash.rotate_left(32)
}

/// Buffers that so many lines take before there are more of them: half of the slots. A fuller
/// line overflows so often that this costs more than smaller tables gain.
fn capacity(lines: usize) -> usize {
    lines * SLOTS / 2
}

/// By a half or by a third more, which are powers of two and three times powers of two in turn.
fn more_lines(lines: usize) -> usize {
    match lines {
        0 => FIRST_LINES,
        lines if lines.is_power_of_two() => lines / 2 * 3,
        lines => lines / 3 * 4,
    }
}

/// Where a freed place is remembered, and by what: both from the low half of its hash, because
/// device and space change little of the high one. Of two thousand million pairs of places in a
/// shard one shares both, and one unknown free in as many is taken for a double one.
fn freed_mark(hash: u64) -> (usize, u32) {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    (usize::from(c) % REMEMBERED_FREES, u32::from_le_bytes([a, b, c, d]) | 1)
}
