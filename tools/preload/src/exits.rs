//! Ends of a process that run no destructor: the ledger's file goes before them.

use std::ffi::c_int;

use crate::next;
use crate::recording;

/// See `_exit(2)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) -> ! {
    recording::end();
    // SAFETY: forwarded unchanged.
    unsafe { next::EXIT.get()(status) }
}

/// See `_Exit(2)`, which is the same.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: forwarded unchanged.
    unsafe { _exit(status) }
}
