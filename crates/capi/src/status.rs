//! What a call returns, and the border that no panic crosses.

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `telltale_status_e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// A pointer is null.
    NullArgument = 1,
    /// A number, text or structure size is not allowed.
    InvalidArgument = 2,
    /// A defect in Telltale: what the call reports may be unrecorded.
    Internal = 3,
}

/// The two ways in which a caller can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Null,
    Invalid,
}

/// Runs a call and turns its outcome into a status.
#[inline]
pub(crate) fn guarded(call: impl FnOnce() -> Result<(), Wrong>) -> Status {
    // A call that panics leaves at worst something unrecorded: the runtime's state is atomics and
    // locks that know no poison.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(Wrong::Null)) => Status::NullArgument,
        Ok(Err(Wrong::Invalid)) => Status::InvalidArgument,
        Err(_) => Status::Internal,
    }
}

/// The value behind a pointer that the caller passed to be read.
///
/// # Safety
/// `pointer` is null or points to a `T` that is not changed or freed until the call returns.
#[inline]
pub(crate) unsafe fn borrowed<'call, T>(pointer: *const T) -> Result<&'call T, Wrong> {
    // SAFETY: the caller of this function vouches for the pointer unless it is null.
    unsafe { pointer.as_ref() }.ok_or(Wrong::Null)
}

/// Stores a result where the caller wants it.
///
/// # Safety
/// `place` is null or points to memory for a `T` that is the caller's to write.
pub(crate) unsafe fn store<T>(place: *mut T, value: T) -> Result<(), Wrong> {
    if place.is_null() {
        return Err(Wrong::Null);
    }
    // SAFETY: not null, and the caller of this function vouches for the rest. `write` does not
    // read what was there, which may be uninitialised.
    unsafe { place.write(value) };
    Ok(())
}

/// Hands an owned handle to the caller.
///
/// # Safety
/// As [`store`].
pub(crate) unsafe fn give<T>(
    place: *mut *mut T,
    make: impl FnOnce() -> Result<T, Wrong>,
) -> Result<(), Wrong> {
    if place.is_null() {
        return Err(Wrong::Null);
    }
    let handle = Box::into_raw(Box::new(make()?));
    // SAFETY: the caller of this function vouches for the place, which is not null.
    unsafe { store(place, handle) }
}

/// Takes an owned handle back.
///
/// # Safety
/// `handle` is null or came from [`give`] and is given back for the first time, and no other
/// thread uses it.
pub(crate) unsafe fn take_back<T>(handle: *mut T) -> Result<(), Wrong> {
    if handle.is_null() {
        return Err(Wrong::Null);
    }
    // SAFETY: it came from `Box::into_raw` in `give`, and is not used after this.
    drop(unsafe { Box::from_raw(handle) });
    Ok(())
}

/// What a status means.
///
/// # Safety
/// `text` is null or points to memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_status_text(status: u32, text: *mut *const c_char) -> Status {
    const TEXTS: [&CStr; 4] = [
        c"it was done",
        c"a pointer that must point to something is null",
        c"a number, text or structure size is not allowed",
        c"a defect in telltale; the call may be unrecorded",
    ];
    guarded(|| {
        let found = usize::try_from(status).ok().and_then(|index| TEXTS.get(index));
        // SAFETY: the caller vouches for `text` unless it is null.
        unsafe { store(text, found.ok_or(Wrong::Invalid)?.as_ptr()) }
    })
}
