//! The C library's allocation functions, as the program sees them.
//!
//! Each calls the allocator behind and notes what it did to large blocks. A block below the
//! threshold costs a comparison, its free a check of a byte; none adds a failure of its own, takes a
//! lock or allocates.

use std::ffi::{c_int, c_void};

use crate::early::{copy_early, early_size};
use crate::filter;
use crate::next;
use crate::recording::{current, threshold};

/// Notes what the allocator gave for `size` bytes.
#[inline(always)]
fn note(block: *mut c_void, size: usize) -> *mut c_void {
    if let Some(recording) = current() {
        match block.is_null() {
            false => recording.allocated(block as usize, size),
            true => recording.refused(),
        }
    }
    block
}

/// See `malloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if size < threshold() {
        // SAFETY: forwarded unchanged.
        return unsafe { next::MALLOC.get()(size) };
    }
    // SAFETY: forwarded unchanged.
    note(unsafe { next::MALLOC.get()(size) }, size)
}

/// See `calloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let bytes = count.saturating_mul(size);
    if bytes < threshold() {
        // SAFETY: forwarded unchanged.
        return unsafe { next::CALLOC.get()(count, size) };
    }
    // SAFETY: forwarded unchanged.
    note(unsafe { next::CALLOC.get()(count, size) }, bytes)
}

/// See `realloc(3)`. Counts as a free and an allocation.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if size < threshold() && !filter::is_marked(block as usize) {
        // SAFETY: forwarded unchanged.
        return unsafe { next::REALLOC.get()(block, size) };
    }
    // SAFETY: the caller's promise.
    unsafe { move_block(block, size) }
}

/// Changes the size of a block that was recorded or is going to be, and notes both. `reallocarray` is
/// not there, because the C library's calls `realloc`.
///
/// # Safety
/// As [`realloc`].
#[inline(never)]
unsafe fn move_block(block: *mut c_void, size: usize) -> *mut c_void {
    if early_size(block).is_some() {
        // The early block stays where it is and is never reused.
        // SAFETY: as the C function.
        let moved = unsafe { malloc(size) };
        if !moved.is_null() {
            // SAFETY: `moved` has `size` bytes and `block` is an early one.
            unsafe { copy_early(block, moved, size) };
        }
        return moved;
    }
    let recording = current();
    // Noted before the call, because afterwards another thread may already have the address.
    let freed = recording.and_then(|recording| recording.freeing(block as usize));
    // SAFETY: forwarded unchanged.
    let moved = unsafe { next::REALLOC.get()(block, size) };
    let Some(recording) = recording else { return moved };
    if let (Some(old_size), true) = (freed, moved.is_null() && size != 0) {
        // It failed, so the old block lives on.
        recording.allocated(block as usize, old_size);
    }
    if size >= threshold() { note(moved, size) } else { moved }
}

/// See `free(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if filter::is_marked(block as usize) {
        // SAFETY: the caller's promise.
        return unsafe { free_marked(block) };
    }
    // SAFETY: forwarded unchanged; the parts of the address space with early blocks are marked.
    unsafe { next::FREE.get()(block) }
}

/// # Safety
/// As [`free`].
#[inline(never)]
unsafe fn free_marked(block: *mut c_void) {
    if early_size(block).is_some() {
        return;
    }
    if let Some(recording) = current() {
        recording.freeing(block as usize);
    }
    // SAFETY: forwarded unchanged; not an early block.
    unsafe { next::FREE.get()(block) }
}

/// See `memalign(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: forwarded unchanged.
    let block = unsafe { next::MEMALIGN.get()(alignment, size) };
    if size < threshold() { block } else { note(block, size) }
}

/// See `aligned_alloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: forwarded unchanged.
    let block = unsafe { next::ALIGNED_ALLOC.get()(alignment, size) };
    if size < threshold() { block } else { note(block, size) }
}

/// See `valloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: forwarded unchanged.
    let block = unsafe { next::VALLOC.get()(size) };
    if size < threshold() { block } else { note(block, size) }
}

/// See `pvalloc(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: forwarded unchanged.
    let block = unsafe { next::PVALLOC.get()(size) };
    if size < threshold() { block } else { note(block, size) }
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
    // SAFETY: forwarded unchanged.
    let status = unsafe { next::POSIX_MEMALIGN.get()(target, alignment, size) };
    if size >= threshold()
        && let Some(recording) = current()
    {
        match status {
            // SAFETY: the caller's promise; on success the allocator wrote it.
            0 => recording.allocated(unsafe { *target } as usize, size),
            libc::ENOMEM => recording.refused(),
            _ => {}
        }
    }
    status
}
