//! Python pickles as data: what `json` could hold, and nothing else.
//!
//! A pickle is a program for a stack machine, and Python's own reader lets it import and call anything.
//! This one knows the opcodes that make values ([`pickletools`](https://docs.python.org/3/library/pickletools.html),
//! protocols 0 to 5 as far as they are binary) and refuses the others by name. Time and memory grow with
//! the input and never faster: values are kept once however often they are referred to, and what is read
//! of them is counted.
#![forbid(unsafe_code)]

mod deserializer;
mod error;
mod machine;
mod value;

use serde::Deserialize;

pub use error::PickleError;

/// The longest input that is read.
pub const MAX_BYTES: usize = 1 << 30;

/// Reads a value of `T`, as serde describes it, from a pickle. Texts are borrowed where `T` borrows them.
///
/// # Errors
/// When the input is no pickle of plain data, is cut, or is not what `T` needs.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, PickleError> {
    if bytes.len() > MAX_BYTES {
        return Err(PickleError::TooLong { bytes: bytes.len() });
    }
    let values = machine::run(bytes)?;
    let budget = deserializer::Budget::of(bytes.len());
    T::deserialize(deserializer::ValueDeserializer::root(&values, &budget))
}
