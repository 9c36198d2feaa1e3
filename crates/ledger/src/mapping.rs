//! Memory maps: the writer's own file, a region that it keeps, and what a running reader copies
//! from.
//!
//! Nothing here interprets what is mapped. A map of a file that someone else may truncate is never
//! read by this process itself; only the kernel copies from it (see `sweep`). The exception is a
//! region, which has no other way to be kept (see docs/regions.md).

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::cell::Cell;
use crate::layout::{CELL_BYTES, CELLS_CAPACITY, CELLS_OFFSET};
use crate::sync::{AtomicU32, AtomicU64};

/// A shared map of a file's beginning, removed on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<c_void>,
    length: usize,
}

// SAFETY: a map belongs to the process, not to a thread, and all access through `&Mapping` is by
// atomics or by the kernel.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes for reading and writing.
    pub(crate) fn writable(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::new(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps the first `length` bytes for reading.
    pub(crate) fn readable(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::new(file, length, ProtFlags::READ)
    }

    fn new(file: BorrowedFd<'_>, length: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so no existing memory is touched; the new map is
        // owned by the value returned and unmapped once, on drop.
        let base =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    /// Bytes mapped.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Where the map begins, for the kernel to copy from.
    pub(crate) fn address(&self) -> *const u8 {
        self.base.as_ptr().cast_const().cast()
    }

    /// The 64-bit word at `offset`. Its page must have been reserved, otherwise using the word
    /// may kill the process when the file system is full.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length, "a word inside the map");
        // SAFETY: the assertion keeps the word inside the map and aligned (maps are page-aligned);
        // any bit pattern is a valid AtomicU64; the map lives as long as `self`; memory shared
        // with other processes is only ever accessed through atomics. The page's memory exists,
        // as this function's contract says.
        unsafe { self.base.byte_add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// The 32-bit word at `offset`. Its page must have been reserved, as for [`Self::word`].
    pub(crate) fn half_word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length, "a word inside the map");
        // SAFETY: as in `word`, with four bytes and their alignment.
        unsafe { self.base.byte_add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// Cell number `index`. Its page must have been reserved, as for [`Self::word`].
    pub(crate) fn cell(&self, index: usize) -> &Cell {
        let offset = CELLS_OFFSET + index * CELL_BYTES;
        assert!(index < CELLS_CAPACITY && offset + CELL_BYTES <= self.length, "a cell of the map");
        // SAFETY: the assertion keeps the cell inside the map; CELLS_OFFSET is a multiple of 64
        // (checked in `layout`) and maps are page-aligned, so the cell is aligned; a Cell is eight
        // AtomicU64, valid for any bit pattern; it lives as long as `self`.
        unsafe { self.base.byte_add(offset).cast::<Cell>().as_ref() }
    }

    /// Leaves the map out of what a forked child gets. Callers must not use the map there.
    pub(crate) fn keep_from_children(&self) -> io::Result<()> {
        // SAFETY: the range is exactly this map, whose content and place do not change. In a child
        // its addresses are not mapped, and the caller promises not to touch them there.
        unsafe { madvise(self.base.as_ptr(), self.length, Advice::LinuxDontFork)? };
        Ok(())
    }

    /// Replaces the map by private zeroes at the same place, so that a thread that still writes there
    /// writes to memory that no other sees. Async-signal-safe: one system call.
    pub(crate) fn detach(&self) -> io::Result<()> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the range is exactly this map, which this value owns, so that MAP_FIXED replaces
        // nothing else; references to words and cells stay valid, as the new memory is at the same
        // place, readable, writable and zero.
        let base = unsafe { mmap_anonymous(self.base.as_ptr(), self.length, protection, flags)? };
        assert_eq!(base, self.base.as_ptr(), "a fixed map is where it was asked for");
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the map made in `new`, unmapped only here; no
        // reference outlives `self`, because `word` and `cell` tie theirs to it, and the pointers
        // that `writer` keeps are used only while it holds the map.
        let result = unsafe { munmap(self.base.as_ptr(), self.length) };
        debug_assert!(result.is_ok(), "a map of ours can be unmapped");
    }
}
