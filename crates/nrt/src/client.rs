//! `ndebug_stream.h`: connect, read one event, close.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{EventHeader, Made};
use crate::connections;
use crate::forks::refuse_child;
use crate::status::{Status, guarded};

/// Connects to the debug stream of a core.
///
/// # Safety
/// `stream_fd` is null or points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_debug_client_connect(
    logical_nc_idx: c_int,
    stream_fd: *mut c_int,
) -> Status {
    if stream_fd.is_null() {
        return Status::INVALID;
    }
    guarded(|| {
        // SAFETY: not null, and the caller vouches for the rest.
        unsafe { stream_fd.write(-1) };
        refuse_child()?;
        let number = connections::connect(logical_nc_idx)?;
        // SAFETY: as above.
        unsafe { stream_fd.write(number) };
        Ok(())
    })
}

/// Closes a connection. No effect on anything else than a descriptor of this library.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_debug_client_connect_close(stream_fd: c_int) {
    // A failure has no receiver.
    let _ = guarded(|| {
        refuse_child()?;
        connections::close(stream_fd);
        Ok(())
    });
}

/// Takes one event. On any error `*payload` is null and the header is zeros.
///
/// # Safety
/// `header` and `payload` are null or point to memory for what they are called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_debug_client_read_one_event(
    stream_fd: c_int,
    header: *mut EventHeader,
    payload: *mut *mut c_void,
) -> Status {
    let outcome = || {
        refuse_child()?;
        // Nothing is taken that could not be handed over.
        if header.is_null() || payload.is_null() {
            return Err(Status::INVALID);
        }
        let Made::Payload(head, body) = connections::read(stream_fd)? else {
            return Err(Status::RESOURCE);
        };
        // SAFETY: neither is null, and the caller vouches for the rest.
        unsafe {
            header.write(head);
            payload.write(body.as_ptr());
        }
        Ok(())
    };
    let status = guarded(outcome);
    if status != Status::SUCCESS {
        // SAFETY: only what is not null is written; the caller vouches for the rest.
        unsafe {
            if !header.is_null() {
                header.write(EventHeader::NONE);
            }
            if !payload.is_null() {
                payload.write(ptr::null_mut());
            }
        }
    }
    status
}
