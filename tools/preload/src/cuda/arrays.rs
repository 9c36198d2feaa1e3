//! Arrays: memory whose layout is the driver's own, of elements in one to three dimensions, as images are. A handle
//! stands for one, and the driver does not tell how large it is: what is counted is its elements.

use std::ffi::c_uint;

use super::driver::{Opaque, SUCCESS, Status};
use super::extent::{Plane, Volume};
use super::memory::{Place, note};

/// Calls `real`, which creates an array in a plane.
///
/// # Safety
/// As the driver's function, whose arguments these are.
pub(crate) unsafe fn create_plane(
    (target, plane): (*mut Opaque, *const Plane),
    real: impl FnOnce() -> Status,
) -> Status {
    let status = real();
    // SAFETY: null, or a structure that the driver has just read.
    let volume = unsafe { plane.as_ref() }.map(Plane::volume);
    // SAFETY: the caller's promise.
    unsafe { note_array(target, volume.as_ref(), 1, status) };
    status
}

/// Calls `real`, which creates an array, or as many `levels` of one, each half as large as the one before.
///
/// # Safety
/// As the driver's functions, whose arguments these are.
pub(crate) unsafe fn create_volume(
    (target, volume, levels): (*mut Opaque, *const Volume, c_uint),
    real: impl FnOnce() -> Status,
) -> Status {
    let status = real();
    // SAFETY: null, or a structure that the driver has just read; the rest is the caller's promise.
    unsafe { note_array(target, volume.as_ref(), levels, status) };
    status
}

/// # Safety
/// The driver has written the target, if it succeeded.
unsafe fn note_array(target: *mut Opaque, volume: Option<&Volume>, levels: c_uint, status: Status) {
    let Some(volume) = volume.filter(|volume| volume.has_memory()) else { return };
    match volume.bytes(levels) {
        // SAFETY: the caller's promise.
        Some(bytes) => note(Place::Array, status, || unsafe { *target } as u64, bytes),
        None if status == SUCCESS => unrecorded(),
        None => {}
    }
}

/// Counts an array of a format that is not known here.
fn unrecorded() {
    if let Some(session) = crate::recording::cuda_session() {
        session.unrecorded();
    }
}
