//! The part of `nrt.h` that a client of the debug stream calls: begin, count cores, end.

use std::ffi::{c_char, c_int};

use telltale_runtime::debug_output;

use crate::forks::refuse_child;
use crate::status::{Status, guarded};
use crate::{connections, cores};

/// Begins the use of the library; its arguments mean nothing here. May be called again.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_init(
    _framework: c_int,
    _fw_version: *const c_char,
    _fal_version: *const c_char,
) -> Status {
    guarded(|| {
        refuse_child()?;
        cores::count();
        connections::open_table();
        debug_output::start();
        Ok(())
    })
}

/// Ends all connections, and the default consumer once it has written what waits.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_close() {
    // A failure has no receiver.
    let _ = guarded(|| {
        refuse_child()?;
        connections::close_table();
        debug_output::stop();
        Ok(())
    });
}

/// Reports how many logical cores the process has.
///
/// # Safety
/// `vnc_count` is null or points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_get_visible_nc_count(vnc_count: *mut u32) -> Status {
    if vnc_count.is_null() {
        return Status::INVALID;
    }
    guarded(|| {
        refuse_child()?;
        let count = cores::count();
        // SAFETY: not null, and the caller vouches for the rest.
        unsafe { vnc_count.write(count) };
        Ok(())
    })
}
