//! Files that another process has mapped, as that process sees them.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::read::elf::{ElfFile64, ProgramHeader};

/// Maps the file that the process has mapped: by the kernel's own link to it, or else by its path as the
/// process sees it.
pub(crate) fn mapped_file(pid: u32, path: &Path, addresses: &Range<u64>) -> Option<Mmap> {
    let Range { start, end } = addresses;
    let link = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
    let inside = path.strip_prefix("/").ok()?;
    let seen = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
    let file = [link, seen].iter().find_map(|path| open_regular(path))?;
    // SAFETY: nothing here relies on the bytes staying the same. A file that is cut meanwhile ends this
    // process by SIGBUS, which is a process of its own for that reason (`take`).
    unsafe { Mmap::map(&file) }.ok()
}

fn open_regular(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    // A FIFO or a device in its place must neither block nor be opened for what it does.
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
    let file = options.open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// What is added to an address of a file to get one of the process, where a part of the file from `offset` on
/// is mapped at `start`.
pub(crate) fn load_bias(elf: &ElfFile64<'_>, start: u64, offset: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    let endian = elf.endian();
    let loaded =
        elf.elf_program_headers().iter().filter(|one| one.p_type(endian) == object::elf::PT_LOAD);
    let mut parts =
        loaded.map(|one| (one.p_offset(endian), one.p_filesz(endian), one.p_vaddr(endian)));
    let (part, _, address) = parts.find(|(part, length, _)| {
        (*part..part.saturating_add(*length)).contains(&offset) || *part / PAGE == offset / PAGE
    })?;
    let stated = address.wrapping_add(offset).wrapping_sub(part);
    Some(start.wrapping_sub(stated))
}
