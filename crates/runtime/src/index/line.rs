//! A cache line of live buffers: seven slots of eight bytes, and a word that says what is in them.
//!
//! Knows what fits a slot and how to find it again. What does not fit is not its matter, except
//! that each line counts what had to go elsewhere.

use telltale_schema::memory::MemoryKind;

use super::Buffer;

/// A slot, from the low end: the address in units of 16 bytes, device and space, kind, and the
/// size as an odd number below 512 times a power of two.
const ADDRESS_BITS: u32 = 39;
const ALIGNMENT_SHIFT: u32 = 4;
const KEY_BITS: u32 = ADDRESS_BITS + 8;
const KIND_BITS: u32 = 4;
const EXPONENT_SHIFT: u32 = KEY_BITS + KIND_BITS;
const EXPONENT_BITS: u32 = 5;
const ODD_SHIFT: u32 = EXPONENT_SHIFT + EXPONENT_BITS;

const _: () = assert!(MemoryKind::ALL.len() <= 1 << KIND_BITS, "a kind has four bits in a slot");

/// What fits one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compact(u64);

/// The part of a slot that says where its buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotKey(u64);

/// The first word has a mark for each slot, eight bits of its hash and never zero, or zero if the
/// slot is free; and in the highest byte how many buffers belong here but are elsewhere.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Line([u64; 8]);

/// One in each byte of the marks.
const ONES: u64 = 0x0001_0101_0101_0101;
const HIGH_BITS: u64 = ONES << 7;
const LOW_BITS: u64 = HIGH_BITS - ONES;
const ELSEWHERE_SHIFT: u32 = 56;
const MOST_ELSEWHERE: u64 = u8::MAX as u64;

impl SlotKey {
    /// None if the address is not a multiple of 16 or not below 2^43.
    #[inline(always)]
    pub(super) fn new(address: u64, tag: u8) -> Option<Self> {
        // Bits that are lost below come out at the top.
        let units = address.rotate_right(ALIGNMENT_SHIFT);
        (units < 1 << ADDRESS_BITS).then(|| Self(units | u64::from(tag) << ADDRESS_BITS))
    }

    pub(super) fn address(self) -> u64 {
        (self.0 & ((1 << ADDRESS_BITS) - 1)) << ALIGNMENT_SHIFT
    }

    pub(super) fn tag(self) -> u8 {
        let [_, tag, ..] = (self.0 << (u64::BITS - KEY_BITS) >> 8).to_be_bytes();
        tag
    }
}

impl Compact {
    /// None if the size has no room.
    #[inline(always)]
    pub(super) fn new(key: SlotKey, buffer: Buffer) -> Option<Self> {
        let exponent = buffer.bytes.trailing_zeros();
        // A size of zero has 64 trailing zeros and is turned away with the large exponents.
        let odd = buffer.bytes.checked_shr(exponent)?;
        let fits = exponent < 1 << EXPONENT_BITS && odd >> 1 < 1 << (u64::BITS - ODD_SHIFT);
        let kind = u64::from(buffer.kind.code()) << KEY_BITS;
        let size = odd >> 1 << ODD_SHIFT | u64::from(exponent) << EXPONENT_SHIFT;
        fits.then_some(Self(key.0 | kind | size))
    }

    pub(super) fn key(self) -> SlotKey {
        SlotKey(self.0 & ((1 << KEY_BITS) - 1))
    }

    pub(super) fn buffer(self) -> Buffer {
        let code = self.0 >> KEY_BITS & ((1 << KIND_BITS) - 1);
        let kind = u16::try_from(code).ok().and_then(MemoryKind::from_code);
        Buffer { kind: kind.expect("only kinds were packed"), bytes: self.bytes() }
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> u64 {
        let exponent = self.0 >> EXPONENT_SHIFT & ((1 << EXPONENT_BITS) - 1);
        (self.0 >> ODD_SHIFT << 1 | 1) << exponent
    }

    #[inline(always)]
    fn is_at(self, key: SlotKey) -> bool {
        (self.0 ^ key.0) << (u64::BITS - KEY_BITS) == 0
    }

    #[inline(always)]
    fn is_of(self, key: SlotKey, kind: MemoryKind) -> bool {
        let wanted = key.0 | u64::from(kind.code()) << KEY_BITS;
        (self.0 ^ wanted) << (u64::BITS - EXPONENT_SHIFT) == 0
    }
}

impl Line {
    pub(super) const EMPTY: Self = Self([0; 8]);

    /// Puts a buffer in where its place is free. False, and nothing done, if it is not, or if the
    /// line is full.
    #[inline(always)]
    pub(super) fn put(&mut self, hash: u64, slot: Compact) -> bool {
        if self.find(hash, |found| found.is_at(slot.key())).is_some() {
            return false;
        }
        let Some(place) = SlotMark::first(bytes_equal(self.0[0], 0)) else { return false };
        self.0[0] |= mark(hash) << place.shift();
        self.0[place.word()] = slot.0;
        true
    }

    /// Takes out what is at `key`.
    pub(super) fn take(&mut self, hash: u64, key: SlotKey) -> Option<Compact> {
        self.find(hash, |found| found.is_at(key)).map(|place| self.empty(place))
    }

    /// Takes out what is at `key`, if it is of `kind`.
    #[inline(always)]
    pub(super) fn take_of(&mut self, hash: u64, key: SlotKey, kind: MemoryKind) -> Option<Compact> {
        self.find(hash, |found| found.is_of(key, kind)).map(|place| self.empty(place))
    }

    #[inline(always)]
    fn empty(&mut self, place: SlotMark) -> Compact {
        self.0[0] &= !(0xff << place.shift());
        Compact(self.0[place.word()])
    }

    #[inline(always)]
    fn find(&self, hash: u64, is_it: impl Fn(Compact) -> bool) -> Option<SlotMark> {
        let mut found = bytes_equal(self.0[0], mark(hash));
        while let Some(place) = SlotMark::first(found) {
            if is_it(Compact(self.0[place.word()])) {
                return Some(place);
            }
            found &= found - 1;
        }
        None
    }

    /// What is in the slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = Compact> {
        let [marks, slots @ ..] = &self.0;
        let marks = marks.to_le_bytes();
        slots.iter().zip(marks).filter(|(_, mark)| *mark != 0).map(|(slot, _)| Compact(*slot))
    }

    /// Whether something that belongs here may be elsewhere.
    #[inline(always)]
    pub(super) fn has_elsewhere(&self) -> bool {
        self.0[0] >> ELSEWHERE_SHIFT != 0
    }

    /// Counts one more elsewhere. At 255 the count stays for as long as the line does.
    pub(super) fn add_elsewhere(&mut self) {
        if self.0[0] >> ELSEWHERE_SHIFT < MOST_ELSEWHERE {
            self.0[0] += 1 << ELSEWHERE_SHIFT;
        }
    }

    /// Counts one less elsewhere.
    pub(super) fn remove_elsewhere(&mut self) {
        let count = self.0[0] >> ELSEWHERE_SHIFT;
        if count > 0 && count < MOST_ELSEWHERE {
            self.0[0] -= 1 << ELSEWHERE_SHIFT;
        }
    }
}

/// One of the seven slots, as the high bit of its mark.
#[derive(Clone, Copy)]
struct SlotMark(u32);

impl SlotMark {
    /// That of the lowest bit of `found`.
    #[inline(always)]
    fn first(found: u64) -> Option<Self> {
        (found != 0).then(|| Self(found.trailing_zeros()))
    }

    #[inline(always)]
    fn shift(self) -> u32 {
        self.0 & !7
    }

    #[inline(always)]
    fn word(self) -> usize {
        (self.0 as usize / 8 + 1) & 7
    }
}

/// The high bit of each mark in `marks` that is `mark`, and of no other.
#[inline(always)]
fn bytes_equal(marks: u64, mark: u64) -> u64 {
    let differences = marks ^ (ONES * mark);
    !(((differences & LOW_BITS) + LOW_BITS) | differences) & HIGH_BITS
}

/// A line's mark, from bits that choose neither shard nor line.
#[inline(always)]
fn mark(hash: u64) -> u64 {
    (hash >> 24 & 0xff).max(1)
}
