//! A region file mapped shared, seen only as atomic words at checked offsets.
//!
//! All unsafe code of regions is here. Nothing here knows what a word means, and no reference to
//! plain memory ever leaves: other processes write these bytes at any time.

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const _: () = assert!(cfg!(target_endian = "little"), "regions are little-endian in memory");

/// The mapping; unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the mapping is plain memory owned by this value alone until it is dropped; nothing about
// it belongs to a thread.
unsafe impl Send for Mapping {}

// SAFETY: all access goes through `&AtomicU32` and `&AtomicU64`, which threads may share.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves the first `size_bytes` of the file and maps them.
    ///
    /// Reserving first turns a full file system into an error here; without it, touching a page
    /// that cannot be had would kill the process. It lengthens an empty file and never shortens one.
    pub(super) fn new(file: impl AsFd, size_bytes: usize) -> Result<Self, Errno> {
        let length = u64::try_from(size_bytes).map_err(|_| Errno::FBIG)?;
        fallocate(&file, FallocateFlags::empty(), 0, length)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose an unused range, so no existing memory is
        // replaced. The memory is reached through atomics only, so writes by other processes are
        // no data race. Every page lies in the file: `size_bytes` were just reserved, and only the
        // file's owner can cut it shorter (see docs/regions.md). Safe code has no shared mapping.
        let address =
            unsafe { mmap(std::ptr::null_mut(), size_bytes, access, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, size_bytes })
    }

    /// The 32-bit word at `offset`.
    ///
    /// # Panics
    /// If it is not aligned or not inside; offsets come from the layout table.
    pub(super) fn u32(&self, offset: usize) -> &AtomicU32 {
        let at = self.checked(offset, size_of::<AtomicU32>());
        // SAFETY: `checked` proved that the word is inside the mapping and aligned (the base is
        // page-aligned). Any bit pattern is a u32. The reference cannot outlive the mapping, as it
        // borrows `self`, and the word is never accessed in another way. Safe code cannot turn a
        // file's memory into an atomic.
        unsafe { AtomicU32::from_ptr(at.cast::<u32>().as_ptr()) }
    }

    /// The 64-bit word at `offset`.
    ///
    /// # Panics
    /// As [`Self::u32`].
    pub(super) fn u64(&self, offset: usize) -> &AtomicU64 {
        let at = self.checked(offset, size_of::<AtomicU64>());
        // SAFETY: as in `u32`, with eight bytes and their alignment.
        unsafe { AtomicU64::from_ptr(at.cast::<u64>().as_ptr()) }
    }

    fn checked(&self, offset: usize, width: usize) -> NonNull<u8> {
        let end = offset.checked_add(width).expect("an offset in the layout is small");
        assert!(end <= self.size_bytes, "the word lies inside the region");
        assert!(offset.is_multiple_of(width), "the word is aligned");
        // SAFETY: the offset is below the mapping's size, so the result stays inside the one
        // mapped range.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the one that `new` mapped; references into it borrow `self`, so
        // none is left. A failure would leave the range mapped, which harms nobody.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size_bytes) };
    }
}
