//! Keys: canonical bytes that say everything structural about a program or about what a program is
//! made from, and a hash of them. The hash finds, the bytes decide. Values of dispatch words and
//! addresses are never in a key.

mod values;

use std::fmt;

pub use telltale_program_key_derive::ProgramKey;

/// What these bytes mean. It is the first byte of each key, and changes with any change of how
/// something is written.
pub const KEY_VERSION: u8 = 2;

/// What a key is the key of; its second byte, so that the two never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeyKind {
    /// A described program.
    Program = 1,
    /// An operation with its attributes and the specifications of its operands.
    Operation = 2,
}

/// Something that can be part of a key: it writes what type it is, and its value.
///
/// `#[derive(ProgramKey)]` implements it for structs and enums, with every field. Implement it by
/// hand only for what has a normal form to be found first.
///
/// ```
/// use telltale_program_cache::{KeyEncoder, KeyKind, ProgramKey};
///
/// #[derive(ProgramKey)]
/// struct Softmax {
///     dimension: u32,
///     scale: Option<f32>,
/// }
///
/// let mut encoder = KeyEncoder::new();
/// encoder.begin(KeyKind::Operation);
/// Softmax { dimension: 3, scale: None }.encode(&mut encoder);
/// let one = encoder.key().to_owned();
/// encoder.begin(KeyKind::Operation);
/// Softmax { dimension: 3, scale: Some(1.0) }.encode(&mut encoder);
/// assert_ne!(one, encoder.key());
/// ```
///
/// A field that has no key does not compile:
///
/// ```compile_fail,E0277
/// # use telltale_program_cache::ProgramKey;
/// #[derive(ProgramKey)]
/// struct Unordered {
///     sizes: std::collections::HashMap<String, u32>,
/// }
/// ```
///
/// Nor does one that may change while it is a key, or that is a place and not a value:
///
/// ```compile_fail,E0277
/// # use telltale_program_cache::ProgramKey;
/// #[derive(ProgramKey)]
/// struct Counted {
///     calls: std::cell::Cell<u32>,
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use telltale_program_cache::ProgramKey;
/// #[derive(ProgramKey)]
/// struct Placed {
///     address: *const u8,
/// }
/// ```
///
/// A field cannot be left out, and a union has no key:
///
/// ```compile_fail
/// # use telltale_program_cache::ProgramKey;
/// #[derive(ProgramKey)]
/// struct Skipping {
///     #[program_key(skip)]
///     window: u32,
/// }
/// ```
///
/// ```compile_fail
/// # use telltale_program_cache::ProgramKey;
/// #[derive(ProgramKey)]
/// union Either {
///     whole: u32,
///     scale: f32,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a program's key",
    note = "what is not in the key must not decide what the program is: pass it as a dispatch word",
    note = "for a struct or enum of your own, add `#[derive(ProgramKey)]`",
    note = "pointers, cells, and maps without an order have no canonical form"
)]
pub trait ProgramKey {
    /// Writes the identity of the type, with its parameters.
    fn encode_type(encoder: &mut KeyEncoder);

    /// Writes the value so that, knowing the type, a reader could tell where it ends and what it
    /// was. Equal values write equal bytes, different values different ones.
    fn encode_value(&self, encoder: &mut KeyEncoder);

    /// Writes both.
    fn encode(&self, encoder: &mut KeyEncoder) {
        Self::encode_type(encoder);
        self.encode_value(encoder);
    }
}

/// Writes keys into a buffer that is kept from one key to the next.
///
/// Numbers are little-endian with their full width; texts and sequences begin with their length.
#[derive(Clone, Default)]
pub struct KeyEncoder {
    /// The key is in the front; behind it is room that was already initialised.
    bytes: Vec<u8>,
    used: usize,
    /// Kept for those who write in sorted order.
    pub(crate) order: Vec<usize>,
}

/// A key in an encoder's buffer.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    hash: u64,
    bytes: &'a [u8],
}

/// A key of its own, as a cache keeps it.
#[derive(Clone)]
pub struct OwnedKey {
    hash: u64,
    bytes: Box<[u8]>,
}

// === impl KeyEncoder ===

impl KeyEncoder {
    /// An encoder with an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a key, forgetting what was written before.
    #[inline]
    pub fn begin(&mut self, kind: KeyKind) {
        self.used = 0;
        self.put([KEY_VERSION, kind as u8]);
    }

    /// The key that was written since [`Self::begin`].
    #[inline]
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key::new(self.written())
    }

    /// The bytes that were written since [`Self::begin`].
    #[inline]
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Writes bytes as they are. They must be of a length that what was written before reports.
    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(room) = self.bytes.get_mut(self.used..).and_then(|room| room.first_chunk_mut())
        {
            *room = bytes;
            self.used += N;
        } else {
            self.put_growing(&bytes);
        }
    }

    /// Writes a number.
    #[inline]
    pub fn put_u32(&mut self, number: u32) {
        self.put(number.to_le_bytes());
    }

    /// Writes the low bytes of some numbers, as many of each as stand beside it: many small fields,
    /// put together in registers, and room found for all at once. Put together in memory they would
    /// have to be read back before they were all there.
    #[inline(always)]
    pub(crate) fn put_packed<const N: usize>(&mut self, fields: [(u128, usize); N]) {
        let mut room = self.room(fields.iter().map(|(_, width)| width).sum());
        for (packed, width) in fields {
            let (place, rest) = room.split_at_mut(width);
            if let Some(bytes) = packed.to_le_bytes().get(..width) {
                place.copy_from_slice(bytes);
            }
            room = rest;
        }
    }

    /// Writes how many elements follow.
    ///
    /// # Panics
    /// For 2^32 and more, which no part of a program has.
    #[inline]
    pub fn length(&mut self, length: usize) {
        self.put_u32(u32::try_from(length).expect("a sequence in a key is shorter than 2^32"));
    }

    /// Writes a text with its length.
    ///
    /// # Panics
    /// For 2^32 bytes and more.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes bytes with their length: what has a canonical form of its own.
    ///
    /// # Panics
    /// For 2^32 bytes and more.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let length = length_of(bytes);
        if let Some((place, room)) = self.room(4 + bytes.len()).split_first_chunk_mut() {
            *place = length;
            copy_short(room, bytes);
        }
    }

    /// Writes two texts with their lengths.
    #[inline]
    pub(crate) fn two_texts(&mut self, first: &str, second: &str) {
        let (first, second) = (first.as_bytes(), second.as_bytes());
        let lengths = [length_of(first), length_of(second)];
        let room = self.room(8 + first.len() + second.len());
        if let Some((place, room)) = room.split_first_chunk_mut() {
            *place = lengths[0];
            let (text, room) = room.split_at_mut(first.len());
            copy_short(text, first);
            if let Some((place, room)) = room.split_first_chunk_mut() {
                *place = lengths[1];
                copy_short(room, second);
            }
        }
    }

    /// Writes numbers, without their count.
    #[inline]
    pub fn words(&mut self, words: &[u32]) {
        let room = self.room(words.len() * 4);
        for (place, word) in room.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Writes which variant of an enum follows.
    #[inline]
    pub fn variant(&mut self, index: u16) {
        self.put(index.to_le_bytes());
    }

    /// Writes a type's name. Types of this library are numbered below 256; a name's length follows
    /// the number 0, so no name looks like a number.
    #[inline]
    pub fn type_name(&mut self, name: &str) {
        self.put([0]);
        self.text(name);
    }

    /// Where the next byte goes, to be named in [`Self::replace_u32`].
    pub(crate) fn position(&self) -> usize {
        self.used
    }

    /// Writes over a number that was written at `position`.
    pub(crate) fn replace_u32(&mut self, position: usize, number: u32) {
        debug_assert!(position + 4 <= self.used, "only what was written can be replaced");
        if let Some(place) =
            self.bytes.get_mut(position..).and_then(|place| place.first_chunk_mut())
        {
            *place = number.to_le_bytes();
        }
    }

    /// The next `count` bytes, to be written.
    #[inline]
    fn room(&mut self, count: usize) -> &mut [u8] {
        let start = self.used;
        let end = start + count;
        if end > self.bytes.len() {
            self.grow(end);
        }
        self.used = end;
        self.bytes.get_mut(start..end).unwrap_or_default()
    }

    #[cold]
    fn put_growing(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.bytes.resize(end.next_power_of_two().max(1024), 0);
    }
}

impl fmt::Debug for KeyEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeyEncoder").field("written", &self.written()).finish()
    }
}

// === impl Key ===

impl<'a> Key<'a> {
    #[inline]
    fn new(bytes: &'a [u8]) -> Self {
        Self { hash: hash_of(bytes), bytes }
    }

    /// What finds the key; different keys may have the same.
    #[inline]
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// What decides whether two keys are the same.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A copy to keep.
    #[must_use]
    pub fn to_owned(&self) -> OwnedKey {
        OwnedKey { hash: self.hash, bytes: self.bytes.into() }
    }
}

impl PartialEq for Key<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

impl Eq for Key<'_> {}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({:016x}, {} bytes)", self.hash, self.bytes.len())
    }
}

// === impl OwnedKey ===

impl OwnedKey {
    /// The key, borrowed.
    #[inline]
    #[must_use]
    pub fn as_key(&self) -> Key<'_> {
        Key { hash: self.hash, bytes: &self.bytes }
    }

    /// What finds the key.
    #[inline]
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// What decides.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for OwnedKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_key() == other.as_key()
    }
}

impl PartialEq<Key<'_>> for OwnedKey {
    #[inline]
    fn eq(&self, other: &Key<'_>) -> bool {
        self.as_key() == *other
    }
}

impl Eq for OwnedKey {}

impl fmt::Debug for OwnedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_key().fmt(formatter)
    }
}

#[inline]
fn length_of(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("a text in a key is shorter than 2^32").to_le_bytes()
}

/// Copies `bytes` to `room`, which is as long. Short ones are moved as two overlapping words, which
/// costs less than a call.
#[inline]
fn copy_short(room: &mut [u8], bytes: &[u8]) {
    match bytes.len() {
        4..8 => copy_ends::<4>(room, bytes),
        8..=16 => copy_ends::<8>(room, bytes),
        _ => room.copy_from_slice(bytes),
    }
}

/// Copies the first and the last `N` bytes, which are all there are.
#[inline]
fn copy_ends<const N: usize>(room: &mut [u8], bytes: &[u8]) {
    debug_assert!((N..=2 * N).contains(&bytes.len()) && room.len() == bytes.len());
    if let (Some(place), Some(first)) = (room.first_chunk_mut::<N>(), bytes.first_chunk()) {
        *place = *first;
    }
    if let (Some(place), Some(last)) = (room.last_chunk_mut::<N>(), bytes.last_chunk()) {
        *place = *last;
    }
}

#[inline]
fn hash_of(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}
