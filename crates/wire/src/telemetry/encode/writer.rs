//! Writes protobuf fields one after the other into one buffer, without building messages first.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::super::codes::Code;
use super::super::message::numbers::{absence, whole_reading};

/// How a field's value is written, see <https://protobuf.dev/programming-guides/encoding/>.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const DELIMITED: u64 = 2;

/// Lengths below this take one byte.
const ONE_BYTE_LENGTH: usize = 0x80;

/// The bytes of a message that grows.
#[derive(Debug, Default)]
pub(super) struct MessageWriter(Vec<u8>);

/// What a reading's value is written as.
pub(super) trait ReadingValue {
    /// Writes the value as the field `value` of its reading, also where it is 0 or empty.
    fn write(&self, to: &mut MessageWriter);
}

impl MessageWriter {
    pub(super) fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            if value < 0x80 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
            value >>= 7;
        }
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    fn length(&mut self, length: usize) {
        self.varint(u64::try_from(length).expect("a length fits into 64 bits"));
    }

    /// A whole number, left out where it is 0 as protobuf does without `optional`.
    pub(super) fn whole(&mut self, field: u32, value: impl Into<u64>) {
        let value = value.into();
        if value != 0 {
            self.set(field, value);
        }
    }

    /// A whole number that is written also where it is 0.
    pub(super) fn set(&mut self, field: u32, value: impl Into<u64>) {
        self.key(field, VARINT);
        self.varint(value.into());
    }

    /// A whole number that may not be there.
    pub(super) fn maybe(&mut self, field: u32, value: Option<impl Into<u64>>) {
        if let Some(value) = value {
            self.set(field, value);
        }
    }

    /// A number of 64 bits that is written also where it is 0.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A point in time, left out where it is 0.
    pub(super) fn time(&mut self, field: u32, Timestamp(at): Timestamp) {
        if at != 0 {
            self.fixed(field, at);
        }
    }

    /// A fraction, written also where it is 0.
    pub(super) fn number(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    pub(super) fn code(&mut self, field: u32, value: impl Code) {
        self.whole(field, value.code());
    }

    /// Text or bytes, left out where they are empty.
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.set_bytes(field, value);
        }
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Text or bytes that are written also where they are empty.
    pub(super) fn set_bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, DELIMITED);
        self.length(value.len());
        self.0.extend_from_slice(value);
    }

    /// A message within this one. Its length is known afterwards; what was written is moved if the
    /// length takes more than one byte.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, DELIMITED);
        let start = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - start - 1;
        if length < ONE_BYTE_LENGTH {
            self.0[start] = u8::try_from(length).expect("below 128");
            return;
        }
        let mut prefix = Self::default();
        prefix.length(length);
        let more = prefix.0.len() - 1;
        let end = self.0.len();
        self.0.extend_from_slice(&prefix.0[..more]);
        self.0.copy_within(start + 1..end, start + 1 + more);
        self.0[start..=start + more].copy_from_slice(&prefix.0);
    }

    /// Numbers in one run, as `repeated` ones are written.
    pub(super) fn packed(&mut self, field: u32, fill: impl FnOnce(&mut Packed<'_>)) {
        self.message(field, |to| fill(&mut Packed(to)));
    }

    /// A reading: its value with the time, or why there is none. All messages of readings have
    /// these in the fields of `WholeReading`.
    pub(super) fn reading<T: ReadingValue>(&mut self, field: u32, reading: &Reading<T>) {
        self.message(field, |to| match reading {
            Reading::Value { value, at } => {
                value.write(to);
                to.time(whole_reading::AT_UNIX_NS, *at);
            }
            Reading::Absent { absent, detail } => {
                to.absence(whole_reading::ABSENCE, *absent, detail);
            }
        });
    }

    fn absence(&mut self, field: u32, reason: Absence, detail: &str) {
        self.message(field, |to| {
            to.code(absence::REASON, reason);
            to.text(absence::DETAIL, detail);
        });
    }
}

/// A run of numbers.
#[derive(Debug)]
pub(super) struct Packed<'a>(&'a mut MessageWriter);

impl Packed<'_> {
    pub(super) fn number(&mut self, value: f64) {
        self.0.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn whole(&mut self, value: u64) {
        self.0.varint(value);
    }
}

impl ReadingValue for u64 {
    fn write(&self, to: &mut MessageWriter) {
        to.set(whole_reading::VALUE, *self);
    }
}

impl ReadingValue for u32 {
    fn write(&self, to: &mut MessageWriter) {
        to.set(whole_reading::VALUE, *self);
    }
}

impl ReadingValue for f64 {
    fn write(&self, to: &mut MessageWriter) {
        to.number(whole_reading::VALUE, *self);
    }
}

impl ReadingValue for String {
    fn write(&self, to: &mut MessageWriter) {
        to.set_bytes(whole_reading::VALUE, self.as_bytes());
    }
}
