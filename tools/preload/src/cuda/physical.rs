//! Physical memory: created, held by handles, mapped, and gone when neither is left.

use std::ffi::c_int;

use super::device;
use super::driver::{Handle, OUT_OF_MEMORY, Pointer, SUCCESS, Status};
use crate::recording::cuda_session;
use crate::session::Session;

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const ON_DEVICE: c_int = 1;
/// Where `CUmemAllocationProp` has its location's type and number, counted in ints: behind the
/// allocation's type and that of its handles.
const LOCATION: (usize, usize) = (2, 3);

/// Calls `real`, which creates a piece, and notes it.
///
/// # Safety
/// As the driver's function, whose arguments these are.
pub(crate) unsafe fn create(
    (target, bytes, properties): (*mut Handle, usize, *const c_int),
    real: impl FnOnce() -> Status,
) -> Status {
    let status = real();
    if (status != SUCCESS && status != OUT_OF_MEMORY) || properties.is_null() {
        return status;
    }
    let Some(session) = cuda_session() else { return status };
    // SAFETY: the driver has read the structure, which is longer than these.
    let (kind, number) = unsafe { (*properties.add(LOCATION.0), *properties.add(LOCATION.1)) };
    let account = match kind {
        ON_DEVICE => {
            let number = usize::try_from(number).ok().or_else(device::current);
            number.and_then(|number| session.device(number)).map(|accounts| accounts.dram)
        }
        _ => Some(session.host()),
    };
    match account {
        None => session.unrecorded(),
        Some(account) if status != SUCCESS => account.failed(),
        Some(account) => {
            // SAFETY: the driver has written it, as it succeeded.
            let handle = unsafe { *target };
            if !session.blocks().add_piece(handle, account, bytes as u64) {
                session.unrecorded();
            }
        }
    }
    status
}

/// Calls `real`, which lets go of a handle.
pub(crate) fn release(handle: Handle, real: impl FnOnce() -> Status) -> Status {
    let session = Session::begun();
    // Before the call, because afterwards another thread may be given the handle.
    let piece = session.and_then(|session| session.blocks().release(handle));
    let status = real();
    if let (Some(session), Some(piece)) = (session, piece) {
        match status {
            SUCCESS => session.blocks().settle(piece),
            _ => session.blocks().unrelease(handle, piece),
        }
    }
    status
}

/// Calls `real`, which gives the handle of what is mapped at an address once more.
///
/// # Safety
/// `target` is null or one to which `real` writes the handle.
pub(crate) unsafe fn retain(target: *mut Handle, real: impl FnOnce() -> Status) -> Status {
    let status = real();
    if let (SUCCESS, Some(session)) = (status, Session::begun()) {
        // SAFETY: the driver has written it, as it succeeded.
        session.blocks().retain(unsafe { *target });
    }
    status
}

/// Calls `real`, which maps a piece.
pub(crate) fn map(
    (address, _bytes, handle): (Pointer, usize, Handle),
    real: impl FnOnce() -> Status,
) -> Status {
    let status = real();
    if let (SUCCESS, Some(session)) = (status, Session::begun()) {
        session.blocks().map(address, handle);
    }
    status
}

/// Calls `real`, which unmaps all that is in a range.
pub(crate) fn unmap(address: Pointer, bytes: usize, real: impl FnOnce() -> Status) -> Status {
    let session = Session::begun();
    let maps = session.map(|session| session.blocks().unmap(address, bytes as u64));
    let status = real();
    if let (Some(session), Some(maps)) = (session, maps) {
        let mut blocks = session.blocks();
        match status {
            SUCCESS => maps.into_iter().for_each(|(_, piece)| blocks.settle(piece)),
            _ => blocks.remap(maps),
        }
    }
    status
}
