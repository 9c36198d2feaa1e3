//! Blocks: allocated at an address, and freed by it.

use super::blocks::Block;
use super::device;
use super::driver::{OUT_OF_MEMORY, Pointer, SUCCESS, Status};
use crate::recording::cuda_session;
use crate::session::Session;

/// Where a block's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the device, or wherever the driver moves managed memory.
    Device,
    /// There too, behind a handle that is no address.
    Array,
    /// In the host's memory, locked there for the device.
    Host,
}

/// Calls `real` and notes what it allocated.
///
/// # Safety
/// `target` is null or one to which `real` writes the block's address.
pub(crate) unsafe fn allocate(
    place: Place,
    target: *mut Pointer,
    bytes: usize,
    real: impl FnOnce() -> Status,
) -> Status {
    let status = real();
    // SAFETY: the driver has written it, as it succeeded.
    let block = || unsafe { *target };
    note(place, status, block, bytes);
    status
}

/// The same, of rows that the driver makes longer.
///
/// # Safety
/// As [`allocate`], and `pitch` likewise.
pub(crate) unsafe fn allocate_pitch(
    (target, pitch, height): (*mut Pointer, *mut usize, usize),
    real: impl FnOnce() -> Status,
) -> Status {
    let status = real();
    // SAFETY: the driver has written both, as it succeeded.
    let pitch = if status == SUCCESS { unsafe { *pitch } } else { 0 };
    // SAFETY: as above.
    note(Place::Device, status, || unsafe { *target }, pitch.saturating_mul(height));
    status
}

/// Notes what the driver did; `block` is asked where it succeeded.
pub(super) fn note(place: Place, status: Status, block: impl FnOnce() -> Pointer, bytes: usize) {
    if status != SUCCESS && status != OUT_OF_MEMORY {
        return;
    }
    let Some(session) = cuda_session() else { return };
    let address = (status == SUCCESS).then(block);
    let number = match (place, address) {
        (Place::Device, Some(address)) => device::of_block(address),
        _ => device::current(),
    };
    let Some((number, accounts)) =
        number.and_then(|number| Some((number, session.device(number)?)))
    else {
        return session.unrecorded();
    };
    let account = match place {
        Place::Device | Place::Array => accounts.dram,
        Place::Host => accounts.system,
    };
    let Some(address) = address else { return account.failed() };
    let context = device::context();
    let block = Block { account, bytes: bytes as u64, device: number, context };
    if !session.blocks().add(address, block) {
        session.unrecorded();
    }
}

/// Calls `real`, which frees a block, and notes that.
pub(crate) fn free(address: Pointer, real: impl FnOnce() -> Status) -> Status {
    let session = Session::begun();
    // Before the call, because afterwards another thread may have the address.
    let block = session.and_then(|session| session.blocks().take(address));
    let status = real();
    if let (Some(session), Some(block)) = (session, block) {
        match status {
            SUCCESS => block.account.freed(block.bytes),
            _ => session.blocks().put_back(address, block),
        }
    }
    status
}
