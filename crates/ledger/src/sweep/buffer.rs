//! A buffer into which the kernel copies from maps that this process does not dare to touch.
//!
//! It is an anonymous file, sealed so that its size never changes, with one map of it. Writing
//! to it from a foreign map is the copy: the kernel reads the source, and where the source has no
//! memory any more, it stops there and says how far it came.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};

use crate::mapping::Mapping;

/// Sources in one call (the kernel's UIO_MAXIOV).
const MOST_SOURCES: usize = 1024;

/// What to copy, and where to.
#[derive(Debug)]
pub(super) struct CopySource {
    address: *const u8,
    length: usize,
    offset: usize,
    copied: bool,
}

// SAFETY: the address is only ever given to the kernel, by the owner of the map at that time; it
// is no access by itself.
unsafe impl Send for CopySource {}
// SAFETY: as for Send.
unsafe impl Sync for CopySource {}

/// The buffer.
#[derive(Debug)]
pub(super) struct CopyBuffer {
    file: OwnedFd,
    mapping: Mapping,
}

// === impl CopySource ===

impl CopySource {
    /// `length` bytes at `address`, to be copied to `offset` in the buffer.
    pub(super) fn new(address: *const u8, length: usize, offset: usize) -> Self {
        Self { address, length, offset, copied: false }
    }

    /// The copy, if the last [`CopyBuffer::copy_all`] could make it.
    pub(super) fn copied<'buffer>(&self, buffer: &'buffer CopyBuffer) -> Option<&'buffer [u8]> {
        self.copied.then(|| &buffer.bytes()[self.offset..self.offset + self.length])
    }
}

// === impl CopyBuffer ===

impl CopyBuffer {
    /// A buffer of `length` bytes that all have memory.
    pub(super) fn new(length: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("telltale-sweep", flags)?;
        let bytes = u64::try_from(length).expect("a buffer's length fits in 64 bits");
        fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Mapping::readable(std::os::fd::AsFd::as_fd(&file), length)?;
        Ok(Self { file, mapping })
    }

    /// Bytes in the buffer.
    pub(super) fn length(&self) -> usize {
        self.mapping.length()
    }

    /// Copies all sources, whose offsets follow one another. A source that cannot be copied in
    /// full is left out. At most as many system calls as there are batches and bad sources.
    pub(super) fn copy_all(&mut self, sources: &mut [CopySource]) {
        let mut rest = sources;
        while !rest.is_empty() {
            let batch = rest.len().min(MOST_SOURCES);
            let copied = self.copy_batch(&rest[..batch]).unwrap_or(0);
            let mut whole = 0;
            let mut left = copied;
            while whole < batch && rest[whole].length <= left {
                left -= rest[whole].length;
                rest[whole].copied = true;
                whole += 1;
            }
            // The one after the last whole one is bad, unless the batch is done.
            let done = if whole < batch { whole + 1 } else { whole };
            rest = &mut rest[done..];
        }
    }

    fn copy_batch(&mut self, sources: &[CopySource]) -> io::Result<usize> {
        let vectors: Vec<libc::iovec> = sources
            .iter()
            .map(|source| libc::iovec {
                iov_base: source.address.cast_mut().cast(),
                iov_len: source.length,
            })
            .collect();
        let count = libc::c_int::try_from(vectors.len()).expect("at most MOST_SOURCES");
        let offset = libc::off_t::try_from(sources[0].offset).expect("the buffer is small");
        loop {
            // SAFETY: the vectors live through the call; the kernel only reads what they point
            // to and reports memory it cannot read. The file is ours alone, and `&mut self` means
            // that no caller holds a slice of its map while it is written.
            let copied =
                unsafe { libc::pwritev(self.file.as_raw_fd(), vectors.as_ptr(), count, offset) };
            if let Ok(copied) = usize::try_from(copied) {
                return Ok(copied);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the map covers exactly the file, which is sealed against shrinking and has
        // memory for every byte; only `copy_batch` of this value writes to it, with `&mut self`.
        unsafe { std::slice::from_raw_parts(self.mapping.address(), self.mapping.length()) }
    }
}
