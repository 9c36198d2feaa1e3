//! Whether a number still stands for the descriptor that it was given out for.
//!
//! A program may close a descriptor with `close` and get the same number for something else. The
//! number is the program's, so nothing here reads from it, writes to it or closes it.

use std::ffi::c_int;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// `F_DUPFD_QUERY` of Linux 6.10 (include/uapi/linux/fcntl.h): 1 if both are one open file.
const F_DUPFD_QUERY: c_int = 1024 + 3;
/// Bytes of `/proc/self/fdinfo/N` that hold an eventfd's fields; there are about 100.
const MAX_DETAIL_BYTES: usize = 4096;
/// The field of an eventfd there, unique among those that exist, since Linux 5.2.
const IDENTIFIER: &str = "eventfd-id:";
/// Whether the kernel has not known the question.
static NO_QUERY: AtomicBool = AtomicBool::new(false);

/// Whether `number` is another descriptor of the same open file as `ours`, which is an eventfd.
pub(crate) fn is_same_file(ours: BorrowedFd<'_>, number: RawFd) -> bool {
    by_query(ours, number).unwrap_or_else(|| by_identifier(ours, number))
}

/// Asks the kernel; none if it does not know the question.
fn by_query(ours: BorrowedFd<'_>, number: RawFd) -> Option<bool> {
    if NO_QUERY.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: this call changes nothing and reads no memory, whatever the numbers are.
    match unsafe { libc::fcntl(number, F_DUPFD_QUERY, ours.as_raw_fd()) } {
        0 => Some(false),
        1 => Some(true),
        _ if !is_open(number) => Some(false),
        _ => {
            NO_QUERY.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// Compares what the kernel calls them. Where it calls eventfds nothing (before Linux 5.2, or
/// without `/proc`), any open descriptor passes.
fn by_identifier(ours: BorrowedFd<'_>, number: RawFd) -> bool {
    match identifier(ours.as_raw_fd()) {
        Some(expected) => identifier(number) == Some(expected),
        None => is_open(number),
    }
}

fn identifier(number: RawFd) -> Option<u64> {
    let text = fs::read(format!("/proc/self/fdinfo/{number}")).ok()?;
    let text = std::str::from_utf8(text.get(..MAX_DETAIL_BYTES.min(text.len()))?).ok()?;
    text.lines().find_map(|line| line.strip_prefix(IDENTIFIER))?.trim().parse().ok()
}

fn is_open(number: RawFd) -> bool {
    // SAFETY: this call changes nothing and reads no memory, whatever the number is.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn each_way_reports_a_duplicate_from_everything_else() {
        let new = || eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let (ours, other, file) = (new(), new(), fs::File::open("/dev/null").unwrap());
        let duplicate = ours.try_clone().unwrap();
        for (number, expected) in [
            (ours.as_raw_fd(), true),
            (duplicate.as_raw_fd(), true),
            (other.as_raw_fd(), false),
            (file.as_raw_fd(), false),
            (1_000_000, false),
            (-1, false),
        ] {
            assert_eq!(is_same_file(ours.as_fd(), number), expected, "{number}");
            assert!(by_query(ours.as_fd(), number).is_none_or(|same| same == expected));
            if identifier(ours.as_raw_fd()).is_some() {
                assert_eq!(by_identifier(ours.as_fd(), number), expected, "{number}");
            }
        }
    }
}
