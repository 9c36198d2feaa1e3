//! Memory that stands for a chip's, and kernels' stacks: one anonymous mapping, filled with zeros page
//! by page as it is touched, between two guards that cannot be touched. Every access of this crate is
//! checked against its size; a kernel's own that goes a little beyond it is a fault.

use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;

/// The address space before and behind each mapping.
pub(super) const GUARD_BYTES: usize = 128 << 10;

/// A range of this process's memory that nothing else refers to, except kernels while they run.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; any thread may use and unmap it.
unsafe impl Send for Memory {}

impl Memory {
    /// Reserves `bytes` of address space, or a little more; host memory is taken when a page is first
    /// touched.
    pub(crate) fn reserve(bytes: usize) -> io::Result<Self> {
        let whole = bytes.checked_next_multiple_of(page_size());
        let bytes = whole.ok_or(io::ErrorKind::OutOfMemory)?;
        let all = bytes.checked_add(2 * GUARD_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: no address is asked for, so the kernel chooses one that nothing else uses.
        let guard = unsafe { mmap_anonymous(ptr::null_mut(), all, ProtFlags::empty(), flags)? };
        // SAFETY: the result is inside the mapping, or its end.
        let start = unsafe { guard.cast::<u8>().add(GUARD_BYTES) };
        let start = NonNull::new(start).expect("a mapping without MAP_FIXED is not at zero");
        // From here on the mapping is removed if something fails.
        let memory = Self { start, bytes };
        if bytes > 0 {
            let access = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: the pages are this mapping's own, and nothing refers to them yet.
            unsafe { mprotect(start.as_ptr().cast(), bytes, access)? };
        }
        Ok(memory)
    }

    /// Its first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its lowest address and the one behind its highest.
    #[inline]
    pub(super) fn bounds(&self) -> (usize, usize) {
        let start = self.start.addr().get();
        (start, start + self.bytes)
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of the `length` bytes from `offset`, if they are inside.
    pub(crate) fn range(&self, offset: usize, length: usize) -> Option<*mut u8> {
        let end = offset.checked_add(length)?;
        // SAFETY: `offset` is at most the mapping's size, so the result is inside it or its end.
        (end <= self.bytes).then(|| unsafe { self.start.as_ptr().add(offset) })
    }

    /// Copies `from` to `offset`; false, and nothing is copied, if it does not fit.
    pub(crate) fn copy_in(&mut self, offset: usize, from: &[u8]) -> bool {
        let Some(to) = self.range(offset, from.len()) else { return false };
        // SAFETY: `range` checked the length, the mapping is readable and writable, and `from` is
        // no part of it, for no caller gets a slice of a mapping.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        true
    }

    /// A copy of the `length` bytes from `offset`, if they are inside.
    pub(crate) fn copy_out(&self, offset: usize, length: usize) -> Option<Vec<u8>> {
        let from = self.range(offset, length)?;
        let mut copy = Vec::with_capacity(length);
        // SAFETY: `range` checked the length, the mapping is always readable, and the vector's
        // capacity is new memory that all `length` bytes are written to before it gets its length.
        unsafe {
            from.copy_to_nonoverlapping(copy.as_mut_ptr(), length);
            copy.set_len(length);
        }
        Some(copy)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this mapping was made by `reserve` with this size and a guard on both sides, and
        // nothing refers to it once its owner lets go of it.
        let unmapped = unsafe {
            let guard = self.start.as_ptr().sub(GUARD_BYTES);
            munmap(guard.cast(), self.bytes + 2 * GUARD_BYTES)
        };
        debug_assert!(unmapped.is_ok(), "a mapping that was made can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn what_is_outside_is_refused() {
        let mut memory = Memory::reserve(4_096).unwrap();
        assert_eq!(memory.copy_out(4_090, 6).unwrap(), [0; 6]);
        assert!(memory.copy_in(4_090, &[1, 2, 3, 4, 5, 6]));
        assert_eq!(memory.copy_out(4_092, 3).unwrap(), [3, 4, 5]);
        assert!(!memory.copy_in(4_091, &[0; 6]));
        for (offset, length) in [(4_097, 0), (0, 4_097), (usize::MAX, 1), (1, usize::MAX)] {
            assert!(memory.copy_out(offset, length).is_none(), "{offset} {length}");
        }
    }
}
