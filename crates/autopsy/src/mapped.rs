//! Files that another process has mapped, as that process sees them.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

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
