//! Which buffer is live at which address, so that a free needs no more than the address.
//!
//! Sharded hash tables that the only thread to record uses without a lock, and several through
//! spin locks that never park a thread (docs/decisions/0022-biased-index.md has what was
//! measured). Nothing here counts memory; addresses never leave it.

use std::sync::Arc;

use hashbrown::HashTable;
use telltale_ledger::{Access, BiasedShards};
use telltale_schema::memory::{MemoryKind, MemorySpace};

/// Shards; a power of two. Enough that two threads seldom meet.
const SHARDS: usize = 16;
/// Live buffers that one shard keeps; 16 Mi in all. Beyond that they are not recorded.
const MAX_LIVE_PER_SHARD: usize = 1 << 20;
/// Freed addresses that one shard remembers, to tell a double free from an unknown one.
const REMEMBERED_FREES: usize = 64;
/// Bytes that an entry can hold: 256 TiB less one. A larger buffer is not recorded.
pub(crate) const MAX_BUFFER_BYTES: u64 = (1 << BYTES_BITS) - 1;

/// A slot's second word, from the low end: size, code of the kind, space, device.
const BYTES_BITS: u32 = 48;
const TAG_SHIFT: u32 = 56;
const SPACE_BITS: u32 = 2;
/// Devices that fit above the space.
pub(crate) const MAX_DEVICE: u8 = 63;

/// Where a buffer is: devices and memory spaces have addresses of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The device's number in the tracker, at most [`MAX_DEVICE`].
    pub(crate) device: u8,
    /// The space.
    pub(crate) space: MemorySpace,
    /// The address in it.
    pub(crate) address: u64,
}

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// What it is for.
    pub(crate) kind: MemoryKind,
    /// Its size, at most [`MAX_BUFFER_BYTES`].
    pub(crate) bytes: u64,
}

/// What became of an attempt to note a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The place was free.
    Fresh,
    /// The place held this buffer, which is forgotten now.
    Replaced(Buffer),
    /// There is no room, or no access, or the buffer is too large to be noted.
    Refused,
}

/// What was at a place that is to be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// This buffer; it is forgotten now.
    Live(Buffer),
    /// Nothing, but a buffer there was freed lately.
    FreedBefore,
    /// Nothing, as far as is known.
    Unknown,
    /// That could not be looked up.
    Refused,
}

/// All live buffers of a session.
pub(crate) struct AddressIndex {
    shards: Arc<BiasedShards<Table, SHARDS>>,
}

/// One thread's way to them.
pub(crate) struct AddressAccess(Access<Table, SHARDS>);

struct Table {
    live: HashTable<Slot>,
    /// A part of the hash of each place freed lately, at the spot that another part gives: a later
    /// free may take the spot. Zero is none.
    freed: [u32; REMEMBERED_FREES],
}

/// A live buffer in 16 bytes: its address, and everything else in one word.
#[derive(Clone, Copy)]
struct Slot {
    address: u64,
    packed: u64,
}

impl Slot {
    fn new(place: Place, buffer: Buffer) -> Self {
        let kind = u64::from(buffer.kind.code()) << BYTES_BITS;
        let packed = buffer.bytes | kind | u64::from(place.tag()) << TAG_SHIFT;
        Self { address: place.address, packed }
    }

    fn buffer(self) -> Buffer {
        let [_, code, ..] = self.packed.to_be_bytes();
        let kind = MemoryKind::from_code(code.into()).expect("only kinds were packed");
        Buffer { kind, bytes: self.packed & MAX_BUFFER_BYTES }
    }

    fn tag(self) -> u8 {
        let [tag, ..] = self.packed.to_be_bytes();
        tag
    }

    fn hash(self) -> u64 {
        hash(self.address, self.tag())
    }
}

impl Place {
    /// Device and space in one byte.
    fn tag(self) -> u8 {
        debug_assert!(self.device <= MAX_DEVICE, "the tracker bounds its devices");
        let space = match self.space {
            MemorySpace::Dram => 0,
            MemorySpace::L1 => 1,
            MemorySpace::Host => 2,
        };
        self.device << SPACE_BITS | space
    }
}

/// Both halves of a 128-bit product: addresses differ in a few bits in the middle, and the table
/// looks at the lowest and the highest bits of a hash, the choice of a shard at others.
fn hash(address: u64, tag: u8) -> u64 {
    const MULTIPLIER: u128 = 0x9E37_79B9_7F4A_7C15;
    let key = address ^ u64::from(tag) << TAG_SHIFT ^ 0x5BD1_E995_1234_5677;
    let product = (u128::from(key) * MULTIPLIER).to_le_bytes();
    let [low, high] = [&product[..8], &product[8..]]
        .map(|half| u64::from_le_bytes(half.try_into().expect("half of 16 bytes")));
    low ^ high
}

impl AddressIndex {
    pub(crate) fn new() -> Self {
        Self { shards: Arc::new(BiasedShards::new(Table::new)) }
    }

    /// Access for the calling thread, which must not be using one just now. None if the second
    /// thread cannot have any.
    pub(crate) fn access(&self) -> Option<AddressAccess> {
        self.shards.ask().map(AddressAccess)
    }

    /// Forgets all buffers of `device`. The calling thread must not be using its access just now.
    pub(crate) fn forget_device(&self, device: u8) {
        // If it is refused, the entries stay until their addresses are used again.
        self.shards.for_each(|table| table.live.retain(|slot| slot.tag() >> SPACE_BITS != device));
    }
}

impl AddressAccess {
    /// Notes that `buffer` is at `place` from now on.
    #[inline(always)]
    pub(crate) fn insert(&self, place: Place, buffer: Buffer) -> Inserted {
        if buffer.bytes > MAX_BUFFER_BYTES {
            return Inserted::Refused;
        }
        let hash = hash(place.address, place.tag());
        let slot = Slot::new(place, buffer);
        self.0.with(shard(hash), |table| table.insert(hash, slot)).unwrap_or(Inserted::Refused)
    }

    /// Forgets the buffer at `place` and says what it was.
    #[inline(always)]
    pub(crate) fn remove(&self, place: Place) -> Removed {
        let tag = place.tag();
        let hash = hash(place.address, tag);
        self.0
            .with(shard(hash), |table| table.remove(hash, place.address, tag))
            .unwrap_or(Removed::Refused)
    }
}

/// The shard of a place, from bits of its hash that a table does not look at: it takes the lowest
/// ones and the highest seven.
#[inline(always)]
fn shard(hash: u64) -> usize {
    let [_, _, _, _, number, ..] = hash.to_le_bytes();
    usize::from(number) % SHARDS
}

impl Table {
    fn new() -> Self {
        Self { live: HashTable::new(), freed: [0; REMEMBERED_FREES] }
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64, slot: Slot) -> Inserted {
        let is_there = |found: &Slot| found.address == slot.address && found.tag() == slot.tag();
        if let Some(found) = self.live.find_mut(hash, is_there) {
            return Inserted::Replaced(std::mem::replace(found, slot).buffer());
        }
        if self.live.len() >= MAX_LIVE_PER_SHARD {
            return Inserted::Refused;
        }
        // Uses the places of removed slots again. Reserving room first would count these as taken
        // and double a table that is three quarters full, which at 100,000 buffers costs 10 ns.
        self.live.insert_unique(hash, slot, |found| found.hash());
        Inserted::Fresh
    }

    #[inline(always)]
    fn remove(&mut self, hash: u64, address: u64, tag: u8) -> Removed {
        let is_there = |found: &Slot| found.address == address && found.tag() == tag;
        let found = self.live.find_entry(hash, is_there).ok();
        match found.map(|entry| entry.remove().0) {
            Some(slot) => {
                self.remember(hash);
                Removed::Live(slot.buffer())
            }
            None if self.remembers(hash) => Removed::FreedBefore,
            None => Removed::Unknown,
        }
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

/// Where a freed place is remembered, and by what. Two places in four thousand million share
/// both, so that one unknown free in as many is taken for a double one.
fn freed_mark(hash: u64) -> (usize, u32) {
    let [a, b, c, d, _, spot, ..] = hash.to_le_bytes();
    (usize::from(spot) % REMEMBERED_FREES, u32::from_le_bytes([a, b, c, d]) | 1)
}

#[cfg(test)]
mod tests {
    use super::{
        AddressAccess, AddressIndex, BiasedShards, Buffer, Inserted, MAX_BUFFER_BYTES, Place,
        Removed, SHARDS, Table,
    };
    use telltale_schema::memory::{MemoryKind, MemorySpace};

    fn place(address: u64) -> Place {
        Place { device: 0, space: MemorySpace::Dram, address }
    }

    fn buffer(bytes: u64) -> Buffer {
        Buffer { kind: MemoryKind::Dram, bytes }
    }

    fn of_tables(
        index: &AddressAccess,
        figure: impl Fn(&Table) -> usize,
    ) -> impl Iterator<Item = usize> {
        (0..SHARDS).map(move |shard| index.0.with(shard, |table| figure(table)).unwrap())
    }

    #[test]
    fn a_place_is_device_space_and_address() {
        let index = AddressIndex::new().access().unwrap();
        let places = [
            place(64),
            Place { device: 1, ..place(64) },
            Place { space: MemorySpace::L1, ..place(64) },
            place(96),
        ];
        for (bytes, place) in (1..).zip(places) {
            let kind = match place.space {
                MemorySpace::L1 => MemoryKind::Cb,
                _ => MemoryKind::Trace,
            };
            assert_eq!(index.insert(place, Buffer { kind, bytes }), Inserted::Fresh);
        }
        for (bytes, place) in (1..).zip(places) {
            let Removed::Live(found) = index.remove(place) else { panic!("{place:?} is live") };
            assert_eq!((found.bytes, found.kind.space()), (bytes, place.space));
            assert_eq!(index.remove(place), Removed::FreedBefore);
        }
        assert_eq!(index.remove(place(1)), Removed::Unknown);
    }

    #[test]
    fn an_address_used_again_while_live_gives_up_its_old_buffer() {
        let index = AddressIndex::new().access().unwrap();
        assert_eq!(index.insert(place(0), buffer(5)), Inserted::Fresh);
        assert_eq!(index.insert(place(0), buffer(7)), Inserted::Replaced(buffer(5)));
        assert_eq!(index.remove(place(0)), Removed::Live(buffer(7)));
    }

    #[test]
    fn extreme_sizes_and_addresses_are_kept_or_refused() {
        let index = AddressIndex::new().access().unwrap();
        let largest = Buffer { kind: MemoryKind::SystemMemory, bytes: MAX_BUFFER_BYTES };
        let there = Place { device: 63, space: MemorySpace::Host, address: u64::MAX };
        assert_eq!(index.insert(there, largest), Inserted::Fresh);
        assert_eq!(index.remove(there), Removed::Live(largest));
        assert_eq!(index.insert(place(0), buffer(MAX_BUFFER_BYTES + 1)), Inserted::Refused);
    }

    #[test]
    fn closing_a_device_forgets_its_buffers_only() {
        let all = AddressIndex::new();
        let index = all.access().unwrap();
        for device in 0..2 {
            index.insert(Place { device, ..place(32) }, buffer(1));
        }
        all.forget_device(0);
        assert_eq!(index.remove(place(32)), Removed::Unknown);
        assert_eq!(index.remove(Place { device: 1, ..place(32) }), Removed::Live(buffer(1)));
    }

    #[test]
    fn aligned_addresses_spread_over_all_shards() {
        for shift in [5, 12, 15, 21] {
            let index = AddressIndex::new().access().unwrap();
            let count = 64 * SHARDS;
            for number in 0..count {
                let address = u64::try_from(number).unwrap() << shift;
                index.insert(place(address), buffer(1));
            }
            let largest = of_tables(&index, |table| table.live.len()).max();
            assert!(largest < Some(3 * count / SHARDS), "shift {shift}: {largest:?}");
        }
    }

    /// The promise is 48 bytes a live buffer, also just after tables have doubled. A table has 17
    /// bytes for each bucket: 16 of the slot, one of control data.
    #[test]
    fn a_live_buffer_costs_at_most_48_bytes() {
        for count in [1_000u64, 100_000] {
            let index = AddressIndex::new().access().unwrap();
            for number in 0..2 * count {
                index.insert(place(number << 12), buffer(1));
                let live = number + 1;
                if live < count || live % 64 != 0 {
                    continue;
                }
                let tables: usize = of_tables(&index, |table| table.live.allocation_size()).sum();
                let bytes = u64::try_from(tables + size_of::<BiasedShards<Table, SHARDS>>())
                    .unwrap()
                    / live;
                assert!(bytes <= 48, "{live} live buffers: {bytes} bytes each");
            }
        }
    }
}
