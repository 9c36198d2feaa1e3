//! Contexts: when one goes, all its blocks go.

use std::ffi::{c_int, c_uint};

use super::driver::{Function, Opaque, SUCCESS, Status};
use crate::session::Session;

static PRIMARY_STATE: Function<unsafe extern "C" fn(c_int, *mut c_uint, *mut c_int) -> Status> =
    Function::new(c"cuDevicePrimaryCtxGetState");

/// Calls `real`, which destroys a context.
pub(crate) fn destroy(context: Opaque, real: impl FnOnce() -> Status) -> Status {
    let status = real();
    if let (SUCCESS, Some(session)) = (status, Session::begun()) {
        let context = context as usize;
        session.blocks().forget(|block| block.context == context);
    }
    status
}

/// Calls `real`, which resets a device's own context.
pub(crate) fn reset(device: c_int, real: impl FnOnce() -> Status) -> Status {
    let status = real();
    if status == SUCCESS {
        forget(device);
    }
    status
}

/// Calls `real`, which lets go of a device's own context; the last one destroys it.
pub(crate) fn release(device: c_int, real: impl FnOnce() -> Status) -> Status {
    let status = real();
    let (mut flags, mut active) = (0, 1);
    // SAFETY: both are writable.
    let reported =
        PRIMARY_STATE.get().map(|of| unsafe { of(device, &raw mut flags, &raw mut active) });
    if status == SUCCESS && reported == Some(SUCCESS) && active == 0 {
        forget(device);
    }
    status
}

fn forget(device: c_int) {
    if let (Some(session), Ok(device)) = (Session::begun(), usize::try_from(device)) {
        session.blocks().forget(|block| block.device == device);
    }
}
