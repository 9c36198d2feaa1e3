//! The memory of this library itself, straight from the real allocator: what it allocates is none
//! of the program's, and must not come back to the hooks.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;

use crate::early::early_size;
use crate::next;

struct OwnMemory;

#[global_allocator]
static OWN_MEMORY: OwnMemory = OwnMemory;

/// The alignment that every block of `malloc` has.
const USUAL_ALIGNMENT: usize = 16;

// SAFETY: the blocks are the C library's, which has the required size and alignment or is null, and
// nothing here unwinds. The default methods for zeroed and changed blocks build on these two.
unsafe impl GlobalAlloc for OwnMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= USUAL_ALIGNMENT {
            // SAFETY: the function has no conditions.
            return unsafe { next::MALLOC.get()(layout.size()) }.cast();
        }
        let mut block = null_mut();
        // SAFETY: `block` is writable; a layout's alignment is a power of two, and here a multiple
        // of a pointer's size.
        let status =
            unsafe { next::POSIX_MEMALIGN.get()(&raw mut block, layout.align(), layout.size()) };
        if status == 0 { block.cast() } else { null_mut() }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // A block from before the allocator was known stays where it is.
        if early_size(block.cast()).is_none() {
            // SAFETY: the caller's promise: a block that `alloc` gave and that is given back once.
            unsafe { next::FREE.get()(block.cast()) };
        }
    }
}
