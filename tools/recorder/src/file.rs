//! Makes and maps the file of a recording, with system calls and stack memory only.

use std::ffi::{CStr, c_char, c_int};
use std::io::{Cursor, Write};
use std::ptr::null_mut;

use crate::raw::{HEADER_BYTES, RECORD_BYTES};

/// Fewer records than this are not worth a recording.
const MIN_RECORDS: usize = 128;
/// A file of this name and this many alternatives are tried.
const MAX_NAMES: u32 = 16;
const MAX_PATH_BYTES: usize = 4096;

/// Creates a new file, reserves room for `records` or as many as fit, and maps it shared.
/// Returns the mapping and the number of records it has room for.
pub(crate) fn create_and_map(
    path: &CStr,
    records: usize,
) -> Result<(*mut u8, usize), &'static CStr> {
    let file = create(path)?;
    let result = reserve(file, records).and_then(|capacity| {
        let length = HEADER_BYTES + capacity * RECORD_BYTES;
        map(length, libc::MAP_SHARED, file)
            .map(|base| (base, capacity))
            .ok_or(c"cannot map TELLTALE_RECORD_FILE")
    });
    // SAFETY: the descriptor is ours; the mapping outlives it.
    unsafe { libc::close(file) };
    result
}

/// An anonymous mapping that a forked child finds cleared, or `None` where the kernel cannot.
pub(crate) fn map_wiped_on_fork(length: usize) -> Option<*mut u8> {
    let page = map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
    // SAFETY: the range was just mapped and is ours.
    let advised = unsafe { libc::madvise(page.cast(), length, libc::MADV_WIPEONFORK) };
    (advised == 0).then_some(page)
}

/// A file that exists belongs to another recording, perhaps one that still runs: a child that
/// executed a program, or the program that this process was before. Then the process id, and if
/// need be a number, is appended.
fn create(path: &CStr) -> Result<c_int, &'static CStr> {
    let mut name = [0u8; MAX_PATH_BYTES];
    // SAFETY: getpid takes nothing and cannot fail.
    let pid = unsafe { libc::getpid() };
    for attempt in 0..MAX_NAMES {
        // The last byte is kept for the zero that ends the name.
        let mut text = Cursor::new(&mut name[..MAX_PATH_BYTES - 1]);
        let written = text.write_all(path.to_bytes()).and_then(|()| match attempt {
            0 => Ok(()),
            1 => write!(text, ".{pid}"),
            _ => write!(text, ".{pid}.{attempt}"),
        });
        if written.is_err() {
            return Err(c"the name in TELLTALE_RECORD_FILE is too long");
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the name ends with the zero that the cursor cannot reach, and later names are
        // longer than earlier ones; O_EXCL opens neither an existing file nor a link.
        let file = unsafe { libc::open(name.as_ptr().cast::<c_char>(), flags, 0o600) };
        if file >= 0 {
            return Ok(file);
        }
        if errno() != libc::EEXIST {
            return Err(c"cannot create TELLTALE_RECORD_FILE");
        }
    }
    Err(c"TELLTALE_RECORD_FILE and its alternatives exist; remove them")
}

/// Reserves blocks for the header and as many records as the disk and the file size limit allow.
fn reserve(file: c_int, wanted: usize) -> Result<usize, &'static CStr> {
    let mut records = wanted.max(MIN_RECORDS);
    while records >= MIN_RECORDS {
        let length = (HEADER_BYTES + records * RECORD_BYTES) as libc::off_t;
        // Beyond the limit the kernel would send a signal that ends the program.
        if length <= file_size_limit() {
            // SAFETY: the descriptor is ours; no memory is involved.
            if unsafe { libc::fallocate(file, 0, 0, length) } == 0 {
                return Ok(records);
            }
            if !matches!(errno(), libc::ENOSPC | libc::EFBIG | libc::EDQUOT | libc::EINTR) {
                return Err(c"the file system of TELLTALE_RECORD_FILE cannot reserve blocks");
            }
        }
        records /= 2;
    }
    Err(c"no space left for TELLTALE_RECORD_FILE")
}

fn file_size_limit() -> libc::off_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    let bytes = if known { limit.rlim_cur } else { 0 };
    // "Unlimited" is the greatest value and means the greatest offset here.
    libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX)
}

fn map(length: usize, flags: c_int, file: c_int) -> Option<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let base = unsafe { libc::mmap(null_mut(), length, access, flags, file, 0) };
    (base != libc::MAP_FAILED).then_some(base.cast())
}

fn errno() -> c_int {
    // SAFETY: the C library gives a valid pointer to this thread's errno.
    unsafe { *libc::__errno_location() }
}
