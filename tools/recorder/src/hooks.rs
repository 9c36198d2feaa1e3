//! The C library's allocation functions, as the program sees them.
//!
//! Each calls the allocator behind and notes what it did. None adds a failure of its own, takes a
//! lock or allocates; without a recording they only forward.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::early::{copy_early, early, early_size};
use crate::next::next;
use crate::recording::current;

fn note(block: *mut c_void, size: usize) -> *mut c_void {
    if let Some(recording) = current() {
        recording.allocated(block as usize, size);
    }
    block
}

/// See `malloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let Some(next) = next() else { return early(1, size) };
    // SAFETY: forwarded unchanged.
    note(unsafe { (next.malloc)(size) }, size)
}

/// See `calloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(next) = next() else {
        return count.checked_mul(size).map_or(null_mut(), |bytes| early(1, bytes));
    };
    // SAFETY: forwarded unchanged. A product that overflows made it fail, and null is not noted.
    note(unsafe { (next.calloc)(count, size) }, count.wrapping_mul(size))
}

/// See `realloc(3)`. Recorded as a free and an allocation.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let Some(next) = next() else {
        let moved = early(1, size);
        if !block.is_null() && !moved.is_null() {
            // SAFETY: `moved` has `size` bytes; before the allocator behind is known, every block
            // is an early one.
            unsafe { copy_early(block, moved, size) };
        }
        return moved;
    };
    if early_size(block).is_some() {
        // SAFETY: forwarded; the early block stays where it is and is never reused.
        let moved = unsafe { (next.malloc)(size) };
        if !moved.is_null() {
            // SAFETY: `moved` has `size` bytes and `block` is an early one.
            unsafe { copy_early(block, moved, size) };
        }
        return note(moved, size);
    }
    let recording = current();
    // Noted before the call, because afterwards another thread may already have the address.
    let freed = recording.and_then(|recording| recording.freeing(block as usize));
    // SAFETY: forwarded unchanged.
    let moved = unsafe { (next.realloc)(block, size) };
    if let (Some(recording), Some(old_size)) = (recording, freed)
        && moved.is_null()
        && size != 0
    {
        // It failed, so the old block lives on.
        recording.allocated(block as usize, old_size);
    }
    note(moved, size)
}

/// See `free(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() || early_size(block).is_some() {
        return;
    }
    if let Some(recording) = current() {
        recording.freeing(block as usize);
    }
    if let Some(next) = next() {
        // SAFETY: forwarded unchanged; not an early block.
        unsafe { (next.free)(block) };
    }
}

/// See `memalign(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    let Some(next) = next() else { return early(alignment, size) };
    // SAFETY: forwarded unchanged.
    note(unsafe { (next.memalign)(alignment, size) }, size)
}

/// See `aligned_alloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    let Some(next) = next() else { return early(alignment, size) };
    // SAFETY: forwarded unchanged.
    note(unsafe { (next.aligned_alloc)(alignment, size) }, size)
}

/// See `posix_memalign(3)`.
///
/// # Safety
/// As the C function: `target` is writable.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(
    target: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    let Some(next) = next() else {
        let block = early(alignment, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the caller's promise.
        unsafe { *target = block };
        return 0;
    };
    // SAFETY: forwarded unchanged.
    let status = unsafe { (next.posix_memalign)(target, alignment, size) };
    if status == 0 {
        // SAFETY: the caller's promise; on success the allocator wrote it.
        note(unsafe { *target }, size);
    }
    status
}
