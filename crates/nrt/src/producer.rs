//! `telltale_debug.h`: what a runtime in C publishes with, and waits for.

use std::ffi::{c_char, c_int, c_void};
use std::slice;
use std::time::Duration;

use telltale_debug_stream::{
    LossCause, MAX_DIMENSIONS, MAX_DTYPE_BYTES, MAX_PREFIX_BYTES, Published, TensorEvent,
};
use telltale_runtime::debug_output;

use crate::cores;
use crate::forks::refuse_child;
use crate::status::{Status, guarded};

/// Publishes a tensor of a core.
///
/// # Safety
/// `prefix` and `dtype` are null or point to bytes that end with a zero, `shape` to `rank` numbers
/// and `data` to `data_size` bytes, all of which stay as they are during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_debug_publish_tensor(
    logical_nc_idx: c_int,
    prefix: *const c_char,
    pipe: u32,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    data: *const c_void,
    data_size: usize,
) -> Status {
    // Without a reader, this is all that a call costs.
    if refuse_child().is_ok() && cores::is_idle(logical_nc_idx) {
        return Status::CLOSED;
    }
    // SAFETY: the caller of this function vouches for all of it.
    unsafe { publish(logical_nc_idx, prefix, pipe, dtype, shape, rank, data, data_size) }
}

/// What is behind the glance of [`telltale_debug_publish_tensor`], in a function of its own so that
/// the glance saves no registers.
///
/// # Safety
/// As there.
#[inline(never)]
#[allow(clippy::too_many_arguments)]
unsafe fn publish(
    logical_nc_idx: c_int,
    prefix: *const c_char,
    pipe: u32,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    data: *const c_void,
    data_size: usize,
) -> Status {
    guarded(|| {
        refuse_child()?;
        let core = cores::one(logical_nc_idx)?;
        if !core.publisher.is_connected() {
            return Err(Status::CLOSED);
        }
        if rank > MAX_DIMENSIONS || isize::try_from(data_size).is_err() {
            return Err(Status::INVALID);
        }
        // SAFETY: the caller vouches for each pointer unless it is null.
        let (prefix, dtype, shape, data) = unsafe {
            (
                text(prefix, MAX_PREFIX_BYTES)?,
                text(dtype, MAX_DTYPE_BYTES)?,
                array(shape, rank)?,
                array(data.cast::<u8>(), data_size)?,
            )
        };
        let prefix = String::from_utf8_lossy(prefix);
        let dtype = String::from_utf8_lossy(dtype);
        let event = TensorEvent { prefix: &prefix, dtype: &dtype, shape, data, pipe };
        match core.publisher.tensor(&event) {
            // What is unwanted is no failure of the publisher.
            Published::Queued | Published::Filtered => Ok(()),
            Published::Lost(LossCause::Events | LossCause::Bytes) => Err(Status::QUEUE_FULL),
            Published::Lost(LossCause::Memory) => Err(Status::RESOURCE),
            Published::Disconnected => Err(Status::CLOSED),
            Published::Unrepresentable => Err(Status::INVALID),
        }
    })
}

/// Waits until everything published so far has been read, or written by the default consumer.
#[unsafe(no_mangle)]
pub extern "C" fn telltale_debug_drain(timeout_ms: u32) -> Status {
    guarded(|| {
        refuse_child()?;
        let in_time = debug_output::drain(Duration::from_millis(timeout_ms.into()));
        if in_time { Ok(()) } else { Err(Status::TIMEOUT) }
    })
}

/// The bytes of a text, no more than one beyond what is kept of it.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and stay as they are during the call.
unsafe fn text<'call>(text: *const c_char, kept: usize) -> Result<&'call [u8], Status> {
    if text.is_null() {
        return Err(Status::INVALID);
    }
    // SAFETY: not null; no byte behind the zero is checked.
    let length = unsafe { libc::strnlen(text, kept + 1) };
    // SAFETY: so many bytes were just found to be there.
    Ok(unsafe { slice::from_raw_parts(text.cast(), length) })
}

/// The elements of an array, which may be null if it has none.
///
/// # Safety
/// `first` is null or points to `count` elements, not more bytes than an `isize` counts, that stay
/// as they are during the call.
unsafe fn array<'call, T>(first: *const T, count: usize) -> Result<&'call [T], Status> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() || !first.is_aligned() => Err(Status::INVALID),
        // SAFETY: not null, and the caller of this function vouches for the elements.
        _ => Ok(unsafe { slice::from_raw_parts(first, count) }),
    }
}
