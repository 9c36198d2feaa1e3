//! Where the program asks the driver for functions by name: `cuGetProcAddress`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use super::driver::{SUCCESS, Status, adopt};
use super::wrapped::{WRAPPED, Wrapped};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

/// Ours for the driver's `address` of `one`, if it is the one that is known.
pub(super) fn replaced(one: &Wrapped, address: *mut c_void) -> *mut c_void {
    if adopt(one.real, address) { one.ours.cast_mut().cast() } else { address }
}

/// The driver's function where `address` is one of ours; any other as it is.
pub(crate) fn real_of(address: *mut c_void) -> *mut c_void {
    match WRAPPED.iter().find(|one| one.ours.cast() == address.cast_const()) {
        Some(one) => one.real.load(Ordering::Acquire),
        None => address,
    }
}

/// What the driver answered to `cuGetProcAddress`, ours in its place.
///
/// # Safety
/// As the driver's function, which has succeeded.
pub(crate) unsafe fn answer(
    (name, target, version, flags): (*const c_char, *mut *mut c_void, c_int, u64),
    status: Status,
) -> Status {
    if status != SUCCESS || name.is_null() || target.is_null() {
        return status;
    }
    // SAFETY: the driver has just read the one and written the other.
    let (asked, found) = unsafe { (CStr::from_ptr(name), *target) };
    let is_it = |one: &&Wrapped| {
        let per_thread = one.per_thread.is_none_or(|wanted| wanted == (flags & PER_THREAD != 0));
        one.asked == asked && one.versions.contains(&version) && per_thread
    };
    if !found.is_null()
        && let Some(one) = WRAPPED.iter().find(is_it)
    {
        // SAFETY: as above.
        unsafe { *target = replaced(one, found) };
    }
    status
}
