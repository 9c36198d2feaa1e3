//! Memory for calls that come before the allocator behind is known: a small static buffer.
//!
//! Its blocks are zeroed and never reused, so it needs no lock and cannot be confused. It must not
//! call anything.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

const EARLY_BYTES: usize = 64 * 1024;
/// Space before each early block for its size; also the least alignment.
const EARLY_HEADER_BYTES: usize = 16;

#[repr(align(4096))]
struct EarlyBuffer(UnsafeCell<[u8; EARLY_BYTES]>);

// SAFETY: each byte belongs to at most one block, handed out once by the atomic EARLY_USED.
unsafe impl Sync for EarlyBuffer {}

static EARLY: EarlyBuffer = EarlyBuffer(UnsafeCell::new([0; EARLY_BYTES]));
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

/// A zeroed block from the static buffer, or null when that is used up or cannot align so far.
pub(crate) fn early(alignment: usize, size: usize) -> *mut c_void {
    if alignment > 4096 || size > EARLY_BYTES {
        return null_mut();
    }
    let alignment = alignment.max(EARLY_HEADER_BYTES).next_power_of_two();
    let mut used = EARLY_USED.load(Ordering::Relaxed);
    loop {
        let start = (used + EARLY_HEADER_BYTES).next_multiple_of(alignment);
        let end = start + size;
        if end > EARLY_BYTES {
            return null_mut();
        }
        match EARLY_USED.compare_exchange_weak(used, end, Ordering::Relaxed, Ordering::Relaxed) {
            Err(now) => used = now,
            Ok(_) => {
                let base = EARLY.0.get().cast::<u8>();
                // SAFETY: used..end is inside the buffer and is this call's alone from now on;
                // the header lies in it, before `start`.
                unsafe {
                    let block = base.add(start);
                    block.sub(EARLY_HEADER_BYTES).cast::<usize>().write_unaligned(size);
                    return block.cast();
                }
            }
        }
    }
}

/// The size of a block of [`early`], or `None` if it is not one.
pub(crate) fn early_size(block: *mut c_void) -> Option<usize> {
    let base = EARLY.0.get() as usize;
    if !(base + EARLY_HEADER_BYTES..base + EARLY_BYTES).contains(&(block as usize)) {
        return None;
    }
    // SAFETY: only `early` hands out addresses in this range, with the size written before them.
    Some(unsafe { block.cast::<u8>().sub(EARLY_HEADER_BYTES).cast::<usize>().read_unaligned() })
}

/// Copies an early block into `target`, for a reallocation of `size` bytes.
///
/// # Safety
/// `target` has room for `size` bytes and `block` came from [`early`].
pub(crate) unsafe fn copy_early(block: *mut c_void, target: *mut c_void, size: usize) {
    let length = early_size(block).unwrap_or(0).min(size);
    // SAFETY: the caller's promise; both have at least `length` bytes and do not overlap, since
    // early blocks are never handed out twice.
    unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), target.cast::<u8>(), length) };
}

#[cfg(test)]
mod tests {
    use super::{EARLY_BYTES, copy_early, early, early_size};

    #[test]
    fn blocks_are_aligned_sized_apart_and_finite() {
        let blocks: Vec<_> = [(1, 5), (64, 100), (4096, 1), (1, 0)]
            .map(|(alignment, size)| (alignment, size, early(alignment, size)))
            .into();
        for (alignment, size, block) in &blocks {
            assert_eq!(*block as usize % alignment, 0);
            assert_eq!(early_size(*block), Some(*size));
        }
        // SAFETY: the second block has 100 bytes, of which 5 are filled from the first.
        unsafe {
            blocks[0].2.cast::<u8>().write_bytes(7, 5);
            copy_early(blocks[0].2, blocks[1].2, 100);
            let copied = std::slice::from_raw_parts(blocks[1].2.cast::<u8>(), 6);
            assert_eq!(copied, [7, 7, 7, 7, 7, 0]);
        }
        assert!(early(8192, 1).is_null(), "alignment beyond a page is refused");
        assert!(early(1, EARLY_BYTES).is_null(), "there is no room for the header");
        assert!((0..100).any(|_| early(1, 1024).is_null()), "the buffer ends");
        assert_eq!(early_size(std::ptr::dangling_mut()), None);
    }
}
