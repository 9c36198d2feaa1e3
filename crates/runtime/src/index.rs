//! Which buffer is live at which address, so that a free needs no more than the address.
//!
//! Sharded tables that the only thread to record uses without a lock, and several through
//! spin locks that never park a thread (docs/decisions/0022-biased-index.md and
//! 0023-lines-of-seven.md have what was measured). Nothing here counts memory; addresses never leave it.

use std::sync::Arc;

use telltale_ledger::{BiasedShards, ThreadAccess};
use telltale_schema::memory::{MemoryKind, MemorySpace};

mod line;
mod table;

use table::IndexTable;

/// Shards, as a power of two. Enough that two threads seldom meet.
const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;
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
pub(crate) struct BufferLocation {
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

/// What was at a place to free.
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
    shards: Arc<BiasedShards<IndexTable, SHARDS>>,
}

/// One thread's way to them.
pub(crate) struct AddressAccess(ThreadAccess<IndexTable, SHARDS>);

/// A live buffer in 16 bytes, any buffer: its address, and everything else in one word.
#[derive(Clone, Copy)]
struct Slot {
    address: u64,
    packed: u64,
}

impl Slot {
    fn new(address: u64, tag: u8, buffer: Buffer) -> Self {
        let kind = u64::from(buffer.kind.code()) << BYTES_BITS;
        let packed = buffer.bytes | kind | u64::from(tag) << TAG_SHIFT;
        Self { address, packed }
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

impl BufferLocation {
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

    #[inline(always)]
    fn hash_and_tag(self) -> (u64, u8) {
        let tag = self.tag();
        (hash(self.address, tag), tag)
    }
}

/// The low half of a product with the golden ratio, whose highest bits spread equally spaced
/// addresses more evenly than chance would: shard and line are chosen by them. The other half of
/// it, where addresses that end in many zeros still differ, goes into the low bits.
#[inline(always)]
fn hash(address: u64, tag: u8) -> u64 {
    const MULTIPLIER: u128 = 0x9E37_79B9_7F4A_7C15;
    let key = address ^ u64::from(tag) << TAG_SHIFT ^ 0x5BD1_E995_1234_5677;
    let product = u128::from(key) * MULTIPLIER;
    let [low, high] = [product, product >> u64::BITS].map(|half| half as u64);
    low ^ (high & u64::from(u32::MAX))
}

impl AddressIndex {
    pub(crate) fn new() -> Self {
        Self { shards: Arc::new(BiasedShards::new(IndexTable::new)) }
    }

    /// Access for the calling thread, which must not be using one just now. None if the second
    /// thread cannot have any.
    pub(crate) fn access(&self) -> Option<AddressAccess> {
        self.shards.ask().map(AddressAccess)
    }

    /// Forgets all buffers of `device`. The calling thread must not be using its access just now.
    pub(crate) fn forget_device(&self, device: u8) {
        // If it is refused, the entries stay until their addresses are used again.
        self.shards.for_each(|table| table.retain(|tag| tag >> SPACE_BITS != device));
    }
}

impl AddressAccess {
    /// Notes that `buffer` is at `place` from now on, if that is quickly done. False, and nothing
    /// noted, if it takes [`Self::insert`].
    #[inline(always)]
    pub(crate) fn insert_quickly(&self, place: BufferLocation, buffer: Buffer) -> bool {
        let (hash, tag) = place.hash_and_tag();
        self.0
            .with(shard(hash), |table| table.insert_in_line(hash, place.address, tag, buffer))
            .unwrap_or(false)
    }

    /// Forgets the buffer at `place` and gives its bytes, if it is of `kind` and that is quickly
    /// done. None, and nothing forgotten, if it takes [`Self::remove`].
    #[inline(always)]
    pub(crate) fn remove_quickly(&self, place: BufferLocation, kind: MemoryKind) -> Option<u64> {
        let (hash, tag) = place.hash_and_tag();
        self.0
            .with(shard(hash), |table| table.remove_in_line(hash, place.address, tag, kind))
            .flatten()
    }

    /// Notes that `buffer` is at `place` from now on.
    pub(crate) fn insert(&self, place: BufferLocation, buffer: Buffer) -> Inserted {
        let (hash, tag) = place.hash_and_tag();
        self.0
            .with(shard(hash), |table| table.insert(hash, place.address, tag, buffer))
            .unwrap_or(Inserted::Refused)
    }

    /// Forgets the buffer at `place` and says what it was.
    pub(crate) fn remove(&self, place: BufferLocation) -> Removed {
        let (hash, tag) = place.hash_and_tag();
        self.0
            .with(shard(hash), |table| table.remove(hash, place.address, tag))
            .unwrap_or(Removed::Refused)
    }
}

/// The shard of a place, by the highest bits of its hash.
#[inline(always)]
fn shard(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::{
        AddressAccess, AddressIndex, BiasedShards, Buffer, BufferLocation, IndexTable, Inserted,
        MAX_BUFFER_BYTES, Removed, SHARDS,
    };
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use telltale_schema::memory::{MemoryKind, MemorySpace};

    fn place(address: u64) -> BufferLocation {
        BufferLocation { device: 0, space: MemorySpace::Dram, address }
    }

    fn buffer(bytes: u64) -> Buffer {
        Buffer { kind: MemoryKind::Dram, bytes }
    }

    fn of_tables(
        index: &AddressAccess,
        value: impl Fn(&IndexTable) -> usize,
    ) -> impl Iterator<Item = usize> {
        (0..SHARDS).map(move |shard| index.0.with(shard, |table| value(table)).unwrap())
    }

    #[test]
    fn a_place_is_device_space_and_address() {
        let index = AddressIndex::new().access().unwrap();
        let places = [
            place(64),
            BufferLocation { device: 1, ..place(64) },
            BufferLocation { space: MemorySpace::L1, ..place(64) },
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
        let there = BufferLocation { device: 63, space: MemorySpace::Host, address: u64::MAX };
        assert_eq!(index.insert(there, largest), Inserted::Fresh);
        assert_eq!(index.remove(there), Removed::Live(largest));
        assert_eq!(index.insert(place(0), buffer(MAX_BUFFER_BYTES + 1)), Inserted::Refused);
    }

    #[test]
    fn closing_a_device_forgets_its_buffers_only() {
        let all = AddressIndex::new();
        let index = all.access().unwrap();
        // The second address fits no line's slot.
        for (device, address) in [(0, 32), (1, 32), (0, 33), (1, 33)] {
            index.insert(BufferLocation { device, ..place(address) }, buffer(1));
        }
        all.forget_device(0);
        for address in [32, 33] {
            assert_eq!(index.remove(place(address)), Removed::Unknown);
            let other = BufferLocation { device: 1, ..place(address) };
            assert_eq!(index.remove(other), Removed::Live(buffer(1)));
        }
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
            let largest = of_tables(&index, |table| table.len()).max();
            assert!(largest < Some(3 * count / SHARDS), "shift {shift}: {largest:?}");
        }
    }

    /// The promise is 48 bytes a live buffer, also just after tables have grown, and for buffers
    /// that fit no line's slot.
    #[test]
    fn a_live_buffer_costs_at_most_48_bytes() {
        for (count, bytes) in [(1_000u64, 1), (100_000, 1), (100_000, 1_025)] {
            let index = AddressIndex::new().access().unwrap();
            for number in 0..2 * count {
                index.insert(place(number << 12), buffer(bytes));
                let live = number + 1;
                if live < count || live % 64 != 0 {
                    continue;
                }
                let tables: usize = of_tables(&index, |table| table.allocated_bytes()).sum();
                let shards = size_of::<BiasedShards<IndexTable, SHARDS>>();
                let each = u64::try_from(tables + shards).unwrap() / live;
                assert!(each <= 48, "{live} live buffers of {bytes} bytes: {each} bytes each");
            }
        }
    }

    /// As the tracker does it.
    fn insert(index: &AddressAccess, place: BufferLocation, buffer: Buffer) -> Inserted {
        if index.insert_quickly(place, buffer) {
            return Inserted::Fresh;
        }
        index.insert(place, buffer)
    }

    fn remove(index: &AddressAccess, place: BufferLocation, kind: MemoryKind) -> Removed {
        match index.remove_quickly(place, kind) {
            Some(bytes) => Removed::Live(Buffer { kind, bytes }),
            None => index.remove(place),
        }
    }

    /// Addresses on both sides of what fits a line's slot, few enough to be used again.
    fn addresses() -> impl Strategy<Value = u64> {
        prop_oneof![
            12 => (0..600u64).prop_map(|number| number << 11),
            2 => (0..40u64).prop_map(|number| number * 8),
            1 => (0..8u64).prop_map(|number| (1 << 43) - 64 + 16 * number),
            1 => (0..8u64).prop_map(|number| u64::MAX - number),
        ]
    }

    fn sizes() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => (1..64u64).prop_map(|number| number << 11),
            1 => 0..1_100u64,
            1 => (0..48u32, 500..530u64).prop_map(|(shift, odd)| odd << shift),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// What fits a line's slot and what does not take each other's places, lines overflow and
        /// grow, and nothing is lost or found twice.
        #[test]
        fn any_buffers_are_kept_as_a_map_keeps_them(
            steps in vec((addresses(), sizes(), 0..9u16, 0..4u8, 0..5u8), 0..3_000)
        ) {
            let index = AddressIndex::new().access().unwrap();
            let mut model = HashMap::new();
            for (address, bytes, code, device, action) in steps {
                let kind = MemoryKind::from_code(code).unwrap();
                let place = BufferLocation { device: device / 3, space: kind.space(), address };
                let key = (place.device, place.space, address);
                let buffer = Buffer { kind, bytes };
                if action < 3 {
                    let expected = match model.get(&key) {
                        _ if bytes > MAX_BUFFER_BYTES => Inserted::Refused,
                        Some(old) => Inserted::Replaced(*old),
                        None => Inserted::Fresh,
                    };
                    if expected != Inserted::Refused {
                        model.insert(key, buffer);
                    }
                    prop_assert_eq!(insert(&index, place, buffer), expected);
                } else {
                    let found = remove(&index, place, kind);
                    match model.remove(&key) {
                        Some(buffer) => prop_assert_eq!(found, Removed::Live(buffer)),
                        None => prop_assert!(!matches!(found, Removed::Live(_))),
                    }
                }
                let live: usize = of_tables(&index, IndexTable::len).sum();
                prop_assert_eq!(live, model.len());
            }
            for ((device, space, address), buffer) in model {
                let found = remove(&index, BufferLocation { device, space, address }, buffer.kind);
                prop_assert_eq!(found, Removed::Live(buffer));
            }
        }
    }
}
