//! The lock by which a writer shows that its ledger is still open or mapped somewhere, and the
//! question whether it does. Asking takes no lock, so that no reader can come in a writer's way.
//!
//! The lock is one of the open file (`F_OFD_SETLK`), not of the process. A map holds the open file
//! too, so the lock lasts until the writer has ended, or has neither a descriptor nor a map left
//! with which it could record; closing all descriptors does not end it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The byte that is locked. It is never written through this lock; any byte would do.
const LOCKED_BYTE: libc::off_t = 0;

/// Takes the lock for as long as `file`, or a map made by it, is there. Returns whether it could: a
/// file system need not have locks.
pub(crate) fn take(file: BorrowedFd<'_>) -> bool {
    ask(file, libc::F_OFD_SETLK).is_ok()
}

/// Whether the lock is free; an error if the file system does not report it.
pub(crate) fn is_free(file: BorrowedFd<'_>) -> io::Result<bool> {
    let found = ask(file, libc::F_OFD_GETLK)?;
    Ok(i32::from(found.l_type) == libc::F_UNLCK)
}

fn ask(file: BorrowedFd<'_>, command: libc::c_int) -> io::Result<libc::flock> {
    // SAFETY: `flock` consists of integers, for which zeroes are valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK.try_into().expect("a lock's type is a small number");
    lock.l_whence = libc::SEEK_SET.try_into().expect("SEEK_SET is a small number");
    lock.l_start = LOCKED_BYTE;
    lock.l_len = 1;
    // SAFETY: the descriptor is open for the length of the call, and both commands read and write
    // one `flock`, which is what the pointer refers to.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(lock),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_free, take};
    use crate::mapping::Mapping;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn the_lock_lasts_as_long_as_a_map_and_asking_does_not_take_it() {
        let scratch = telltale_harness::Scratch::new();
        let path = scratch.join("file");
        std::fs::write(&path, [0; 4096]).unwrap();
        let writer = File::options().read(true).write(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        assert!(is_free(reader.as_fd()).unwrap() && is_free(reader.as_fd()).unwrap());
        assert!(take(writer.as_fd()), "nobody who asked has it");
        assert!(!is_free(reader.as_fd()).unwrap());
        let map = Mapping::writable(writer.as_fd(), 4096).unwrap();
        drop(writer);
        assert!(!is_free(reader.as_fd()).unwrap(), "the map still holds the open file");
        drop(map);
        assert!(is_free(reader.as_fd()).unwrap());
    }
}
