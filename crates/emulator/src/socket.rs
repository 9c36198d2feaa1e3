//! Paths of Unix sockets, which may be longer than an address has room for.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// What fits into an address, without the zero at its end.
const LONGEST_PATH: usize = 107;

/// A new packet socket.
pub(crate) fn packet_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Calls `with` with an address of `path`: the path itself, or one through an open descriptor
/// of its directory when it is too long.
pub(crate) fn with_address<T>(
    path: &Path,
    with: impl FnOnce(&SocketAddrUnix) -> rustix::io::Result<T>,
) -> io::Result<T> {
    if path.as_os_str().len() <= LONGEST_PATH {
        return Ok(with(&SocketAddrUnix::new(path)?)?);
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = File::from(open(directory, flags, Mode::empty())?);
    let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
    Ok(with(&SocketAddrUnix::new(short)?)?)
}
