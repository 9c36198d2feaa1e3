//! How the socket gets its name: made under another one with its final mode, listening, and only
//! then renamed, so that it is never found half made.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, RenameFlags, chmodat, fchmod, renameat, renameat_with};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use telltale_ledger::directory::{RuntimeDirectory, endpoint_name, temporary_name};
use telltale_schema::process::ProcessIdentity;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;
/// Temporary names tried: each is random, so that a second one is hardly ever needed.
const MAX_TEMPORARY_NAMES: u32 = 16;
/// What only the owner may use, until the final mode is set.
const PRIVATE_MODE: u32 = 0o600;

/// A socket that listens under its name.
pub(super) struct Published {
    pub(super) listener: OwnedFd,
    pub(super) name: String,
    /// The plain name and who holds it, if another user does.
    pub(super) held: Option<(String, u32)>,
}

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
pub(super) enum PublishError {
    #[error("cannot {step} the endpoint's socket")]
    System {
        step: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("both names of the endpoint are in use, the last one is {name}")]
    NamesTaken { name: String },
}

/// Makes the socket of the process `identity` in `directory`.
pub(super) fn publish(
    directory: &RuntimeDirectory,
    identity: &ProcessIdentity,
) -> Result<Published, PublishError> {
    let step = |step| move |error: Errno| PublishError::System { step, source: error.into() };
    let listener = new_socket().map_err(step("make"))?;
    // The kernel gives the entry the mode that the socket has when it is bound.
    fchmod(&listener, Mode::from_raw_mode(PRIVATE_MODE)).map_err(step("protect"))?;
    let temporary = bind_to_temporary(&listener, directory, identity).map_err(step("bind"))?;
    let finished = listen(&listener, BACKLOG)
        .and_then(|()| {
            let mode = Mode::from_raw_mode(directory.endpoint_mode());
            chmodat(directory, &*temporary, mode, AtFlags::empty())
        })
        .map_err(step("open"))
        .and_then(|()| give_name(directory, &temporary, identity));
    match finished {
        Ok((name, held)) => Ok(Published { listener, name, held }),
        Err(error) => {
            let _ = directory.remove(&temporary);
            Err(error)
        }
    }
}

fn new_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The path through the open directory: short enough for a socket's address wherever the directory
/// is, and the same directory whatever has its path now.
fn path_through(directory: &RuntimeDirectory, name: &str) -> PathBuf {
    let through = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    Path::new(&through).join(name)
}

fn bind_to_temporary(
    listener: &OwnedFd,
    directory: &RuntimeDirectory,
    identity: &ProcessIdentity,
) -> Result<String, Errno> {
    // Others can write into the directory, and must not be able to take the names first.
    let seed = RandomState::new();
    let mut refused = Errno::ADDRINUSE;
    for number in 0..MAX_TEMPORARY_NAMES {
        let random = seed.hash_one(number);
        let name = temporary_name(identity.pid, identity.start_time_ticks, random);
        let address = SocketAddrUnix::new(path_through(directory, &name))?;
        match bind(listener, &address) {
            Ok(()) => return Ok(name),
            Err(Errno::ADDRINUSE) => {}
            Err(error) => {
                refused = error;
                break;
            }
        }
    }
    Err(refused)
}

/// Gives the bound socket its plain name, or the one with the PID namespace if the plain one is
/// another user's or belongs to a process that listens there.
fn give_name(
    directory: &RuntimeDirectory,
    temporary: &str,
    identity: &ProcessIdentity,
) -> Result<(String, Option<(String, u32)>), PublishError> {
    let plain = endpoint_name(identity.pid, None);
    let with_namespace = endpoint_name(identity.pid, Some(identity.pid_namespace));
    let mut held = None;
    for name in [&plain, &with_namespace] {
        match take_name(directory, temporary, name) {
            Ok(SocketState::Ours) => return Ok((name.clone(), held)),
            Ok(SocketState::InUse) => {}
            Ok(SocketState::HeldBy(uid)) => held = Some((plain.clone(), uid)),
            Err(error) => {
                return Err(PublishError::System { step: "rename", source: error.into() });
            }
        }
    }
    Err(PublishError::NamesTaken { name: with_namespace })
}

enum SocketState {
    Ours,
    /// A process of this user listens there.
    InUse,
    /// The entry is this user's.
    HeldBy(u32),
}

fn take_name(
    directory: &RuntimeDirectory,
    temporary: &str,
    name: &str,
) -> Result<SocketState, Errno> {
    match renameat_with(directory, temporary, directory, name, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(SocketState::Ours),
        // The second is what a file system says that cannot do it.
        Err(Errno::EXIST | Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    if let Ok(status) = directory.entry_status(name) {
        if status.uid != rustix::process::geteuid().as_raw() {
            return Ok(SocketState::HeldBy(status.uid));
        }
        if status.is_socket && is_listening(&path_through(directory, name)) {
            return Ok(SocketState::InUse);
        }
    }
    renameat(directory, temporary, directory, name).map(|()| SocketState::Ours)
}

/// Whether a process listens at `path`; in doubt it does.
fn is_listening(path: &Path) -> bool {
    let attempt = SocketAddrUnix::new(path).and_then(|address| connect(new_socket()?, &address));
    !matches!(attempt, Err(Errno::CONNREFUSED | Errno::NOENT))
}
