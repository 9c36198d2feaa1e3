//! The recording of this process: a file mapped shared, whose blocks are reserved beforehand.
//!
//! Since the kernel owns the pages, what was recorded survives any death of the process; since
//! the blocks are reserved, a full disk shortens the recording and never raises SIGBUS. Whether
//! to record is kept on a page that the kernel clears in a forked child, so children, however
//! made, do not record. No lock, no allocation, no descriptor kept open.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::file;
use crate::raw;
use crate::table::{AddressTable, Inserted};

/// Slots for a million live allocations; 16 MiB of address space, touched as used.
static LIVE: AddressTable<{ 1 << 17 }> = AddressTable::new();

/// Null until a recording has begun, and for ever if none was asked for.
static RECORDING: AtomicPtr<Recording> = AtomicPtr::new(null_mut());

/// What the hooks need, on a page that is all zero in a forked child: then nothing is recorded.
pub(crate) struct Recording {
    /// 0: off, 1: recording, 2: full.
    state: AtomicU32,
    threshold_bytes: AtomicUsize,
    capacity: AtomicU64,
    base: AtomicPtr<u8>,
}

const RECORDS: u32 = 1;
const FULL: u32 = 2;

/// The recording, if this process has one.
pub(crate) fn current() -> Option<&'static Recording> {
    // SYNC: recording begun.
    let recording = RECORDING.load(Ordering::Acquire);
    // SAFETY: null, or the page that `begin` filled before it stored the pointer and that is
    // never unmapped; all zero, as in a forked child, is a valid value too.
    let recording = unsafe { recording.as_ref() }?;
    (recording.state.load(Ordering::Relaxed) != 0).then_some(recording)
}

/// Begins to record into `path`, or says why not.
pub(crate) fn begin(
    path: &CStr,
    threshold_bytes: usize,
    records: usize,
    arguments: &[*const c_char],
) -> Result<(), &'static CStr> {
    let (base, capacity) = file::create_and_map(path, records)?;
    let Some(page) = file::map_wiped_on_fork(size_of::<Recording>()) else {
        return Err(c"cannot map memory that a forked child sees cleared (Linux 4.14 can)");
    };
    write_header(base, threshold_bytes, capacity, arguments);
    let page = page.cast::<Recording>();
    let recording = Recording {
        state: AtomicU32::new(RECORDS),
        threshold_bytes: AtomicUsize::new(threshold_bytes.max(1)),
        capacity: AtomicU64::new(capacity as u64),
        base: AtomicPtr::new(base),
    };
    // SAFETY: a fresh mapping of at least this size, aligned to a page, that nobody else knows.
    unsafe { page.write(recording) };
    // SYNC: recording begun.
    RECORDING.store(page, Ordering::Release);
    Ok(())
}

impl Recording {
    /// Notes a successful allocation. Call it after the allocator returned.
    pub(crate) fn allocated(&self, address: usize, size_bytes: usize) {
        if size_bytes < self.threshold_bytes.load(Ordering::Relaxed) || address == 0 {
            return;
        }
        if LIVE.insert(address as u64, size_bytes as u64) != Inserted::Full {
            self.append(raw::KIND_ALLOCATE, address as u64, size_bytes as u64);
        } else {
            self.counter(raw::OVERFLOWED).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes a free and returns the block's size if it was recorded. Call it before the allocator
    /// gets the block, or another thread could be given the address first.
    pub(crate) fn freeing(&self, address: usize) -> Option<usize> {
        let size_bytes = LIVE.remove(address as u64)?;
        self.append(raw::KIND_FREE, address as u64, 0);
        usize::try_from(size_bytes).ok()
    }

    fn append(&self, kind: u32, address: u64, size_bytes: u64) {
        if self.state.load(Ordering::Relaxed) == FULL {
            self.counter(raw::DROPPED).fetch_add(1, Ordering::Relaxed);
            return;
        }
        let index = self.counter(raw::NEXT).fetch_add(1, Ordering::Relaxed);
        if index >= self.capacity.load(Ordering::Relaxed) {
            self.state.store(FULL, Ordering::Relaxed);
            self.counter(raw::DROPPED).fetch_add(1, Ordering::Relaxed);
            return;
        }
        let offset = raw::HEADER_BYTES + index as usize * raw::RECORD_BYTES;
        let base = self.base.load(Ordering::Relaxed);
        // SAFETY: the index is below the capacity, so the record lies in the mapping, aligned to
        // 8 bytes; the index was claimed by this call alone, and nothing else reads it.
        unsafe {
            let record = base.add(offset);
            record.add(raw::THREAD).cast::<u32>().write(thread_id());
            record.add(raw::TIME_NS).cast::<u64>().write(now_ns());
            record.add(raw::ADDRESS).cast::<u64>().write(address);
            record.add(raw::SIZE_BYTES).cast::<u64>().write(size_bytes);
            // SYNC: record finished. Last, so that a process killed before it leaves a 0.
            AtomicU32::from_ptr(record.add(raw::KIND).cast()).store(kind, Ordering::Release);
        }
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        let base = self.base.load(Ordering::Relaxed);
        // SAFETY: every header offset is a multiple of 8 inside the mapped, never unmapped header
        // page, and these words are only ever used as atomics after the recording began.
        unsafe { AtomicU64::from_ptr(base.add(offset).cast()) }
    }
}

fn write_header(
    base: *mut u8,
    threshold_bytes: usize,
    capacity: usize,
    arguments: &[*const c_char],
) {
    // SAFETY: the header page is mapped and nobody else knows it yet; sysconf takes no pointer.
    let header = unsafe { std::slice::from_raw_parts_mut(base, raw::HEADER_BYTES) };
    // SAFETY: as above.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let mut used = 0;
    for argument in arguments {
        // SAFETY: the loader passed these pointers to zero-ended strings that live for ever.
        let bytes = unsafe { CStr::from_ptr(*argument) }.to_bytes_with_nul();
        if used + bytes.len() > raw::MAX_COMMAND_BYTES {
            break;
        }
        header[raw::COMMAND + used..][..bytes.len()].copy_from_slice(bytes);
        used += bytes.len();
    }
    for (offset, value) in [
        (raw::PAGE_BYTES, u64::try_from(page_bytes).unwrap_or(0)),
        (raw::THRESHOLD_BYTES, threshold_bytes as u64),
        (raw::CAPACITY, capacity as u64),
        (raw::COMMAND_LENGTH, used as u64),
    ] {
        header[offset..][..8].copy_from_slice(&value.to_le_bytes());
    }
    header[..raw::MAGIC.len()].copy_from_slice(&raw::MAGIC);
}

fn thread_id() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail. Called as a system call because old C
    // libraries have no wrapper for it.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}

fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; the monotonic clock exists on every Linux.
    let _: c_int = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// The end of a C array of strings is a null pointer; this is the slice before it.
///
/// # Safety
/// `strings` is null or points to pointers, the last of which is null, that live for ever.
pub(crate) unsafe fn until_null<'a>(strings: *const *const c_char) -> &'a [*const c_char] {
    if strings.is_null() {
        return &[];
    }
    let mut length = 0;
    // SAFETY: the caller's promise; no element after the null is read.
    unsafe {
        while !(*strings.add(length)).is_null() {
            length += 1;
        }
        std::slice::from_raw_parts(strings, length)
    }
}
