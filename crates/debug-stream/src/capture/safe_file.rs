//! Opening files that a stranger may have put there: only regular ones, without waiting for one
//! that never comes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file, not through a symbolic link; none for anything else.
pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    open_with(path, libc::O_NOFOLLOW)
}

/// Opens a regular file that a person named, through symbolic links too; none for anything else.
pub(super) fn open_following(path: &Path) -> io::Result<Option<File>> {
    open_with(path, 0)
}

fn open_with(path: &Path, flags: i32) -> io::Result<Option<File>> {
    // A pipe without a writer would have us wait for one.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | flags).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}
