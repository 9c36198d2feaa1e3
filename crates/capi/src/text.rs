//! Texts from C: bounded, copied, and UTF-8 or made so.

use std::ffi::{CStr, c_char};

use crate::status::Wrong;

/// Bytes of the longest text taken from a caller, such as a path.
const MAX_TEXT_BYTES: usize = 4096;

/// A copy of a text; none for null.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and stay as they are during the call.
pub(crate) unsafe fn optional(text: *const c_char) -> Result<Option<String>, Wrong> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller of this function vouches for the terminating zero.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Wrong::Invalid);
    }
    Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
}

/// A copy of a text that must be there.
///
/// # Safety
/// As [`optional`].
pub(crate) unsafe fn required(text: *const c_char) -> Result<String, Wrong> {
    // SAFETY: the caller of this function vouches for the text.
    unsafe { optional(text) }?.ok_or(Wrong::Null)
}

/// The elements of an array, which may be null if it has none.
///
/// # Safety
/// `first` is null or points to `count` elements that stay as they are during the call.
pub(crate) unsafe fn array<'call, T>(
    first: *const T,
    count: usize,
    limit: usize,
) -> Result<&'call [T], Wrong> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() => Err(Wrong::Null),
        _ if count > limit => Err(Wrong::Invalid),
        // SAFETY: not null, and the caller of this function vouches for the elements.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}
