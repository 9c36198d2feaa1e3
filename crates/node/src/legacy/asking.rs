//! Asks a service of this machine what its legacy clients reported, and believes no more of it than
//! of who may know.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, socket_with,
};
use telltale_ledger::directory::{OVERFLOW_UID, RuntimeDirectory};
use telltale_schema::reading::Absence;
use telltale_wire::{FrameError, FrameReader, Reply, ReplyError, Report};

use super::passing_on::SOCKET_NAME;
use super::roster::MAX_CLIENTS;

/// What a service says.
#[derive(Debug)]
pub(crate) struct PassedOn {
    /// The user whose processes it may speak for; none where it may for all.
    pub(crate) only_of: Option<u32>,
    /// Its clients, each once.
    pub(crate) reports: Vec<Report>,
}

/// Why nothing is known from a service.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("cannot ask the service; see whether it runs (`telltale health`)")]
    System(#[source] io::Error),
    #[error("it belongs to user {0}, who is neither root, nor you, nor the directory's owner")]
    Stranger(u32),
    #[error("user {0} has put something there that is not a socket; remove it")]
    NotASocket(u32),
    #[error("the service did not answer within the time allowed")]
    TimedOut,
    #[error("the service does not keep to the protocol")]
    Frame(#[from] FrameError),
    #[error("the service's answer cannot be used")]
    Reply(#[from] ReplyError),
    #[error("the service names more than {MAX_CLIENTS} processes")]
    TooMany,
}

impl AskError {
    /// What this means for what was asked.
    pub(crate) fn absence(&self) -> Absence {
        match self {
            Self::Stranger(_) | Self::NotASocket(_) => Absence::Refused,
            Self::TimedOut => Absence::TimedOut,
            _ => Absence::Failed,
        }
    }

    /// Who has put something there that is not a service's, if that is what is wrong.
    pub(crate) fn culprit(&self) -> Option<u32> {
        match self {
            Self::Stranger(user) | Self::NotASocket(user) => Some(*user),
            _ => None,
        }
    }
}

/// Asks the service of this directory; none where there is none that has legacy clients.
pub(crate) fn ask(
    directory: &RuntimeDirectory,
    timeout: Duration,
) -> Result<Option<PassedOn>, AskError> {
    let until = Instant::now() + timeout;
    let Ok(status) = directory.entry_status(SOCKET_NAME) else { return Ok(None) };
    let own = rustix::process::geteuid().as_raw();
    let allowed = [0, own, directory.owner()];
    if status.uid == OVERFLOW_UID || !allowed.contains(&status.uid) {
        return Err(AskError::Stranger(status.uid));
    }
    if !status.is_socket {
        return Err(AskError::NotASocket(status.uid));
    }
    let Some(socket) = connected(directory, until)? else { return Ok(None) };
    let system = |errno: Errno| AskError::System(errno.into());
    let peer =
        getsockopt(&socket, PeerCredentials).map_err(|errno| AskError::System(errno.into()))?.uid();
    if peer != status.uid {
        return Err(AskError::Stranger(peer));
    }
    // Of a private directory its owner speaks; to another user only for itself.
    let is_installed = directory.ledger_mode() != PRIVATE_MODE;
    let speaks_for_all = [0, own].contains(&peer) || is_installed;
    let mut reports = Vec::new();
    let (mut frames, mut buffer) = (FrameReader::default(), [0u8; 16 * 1024]);
    loop {
        let wanted = frames.wanted_bytes().min(buffer.len());
        match recv(&socket, &mut buffer[..wanted], RecvFlags::empty()) {
            Ok((_, 0)) => break,
            Ok((_, count)) => _ = frames.push(&buffer[..count])?,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => wait(&socket, until)?,
            Err(errno) => return Err(system(errno)),
        }
        if frames.is_complete() {
            let message = frames.take().unwrap_or_default();
            let Reply::Report(report) = Reply::decode(&message)? else { continue };
            if reports.len() >= MAX_CLIENTS {
                return Err(AskError::TooMany);
            }
            reports.push(*report);
        }
    }
    Ok(Some(PassedOn { only_of: (!speaks_for_all).then_some(peer), reports }))
}

/// The mode of ledgers in a directory that is one user's own.
const PRIVATE_MODE: u32 = 0o600;

/// A connection to the socket; none where nobody listens there, as after a service that was killed.
fn connected(directory: &RuntimeDirectory, until: Instant) -> Result<Option<OwnedFd>, AskError> {
    let system = |errno: Errno| AskError::System(errno.into());
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(system)?;
    // Through the open directory: short enough for an address wherever the directory is.
    let path = format!("/proc/self/fd/{}/{SOCKET_NAME}", directory.as_fd().as_raw_fd());
    let address = SocketAddrUnix::new(path).map_err(system)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(Some(socket)),
            Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(None),
            Err(Errno::INTR) => {}
            // Its queue is full, and nothing tells when it has room.
            Err(Errno::AGAIN) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(Errno::AGAIN) => return Err(AskError::TimedOut),
            Err(errno) => return Err(system(errno)),
        }
    }
}

/// Waits for something to receive.
fn wait(socket: &OwnedFd, until: Instant) -> Result<(), AskError> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(AskError::TimedOut);
    }
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    // A signal only means that we look earlier.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{AskError, PassedOn, ask};
    use crate::legacy::SOCKET_NAME;
    use std::io::Write;
    use std::os::unix::fs::chown;
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::thread::JoinHandle;
    use std::time::Duration;
    use telltale_harness::{Scratch, needs_root};
    use telltale_ledger::directory::{Purpose, RuntimeDirectory};

    const LONG: Duration = Duration::from_secs(20);

    fn asked(place: &Scratch, timeout: Duration) -> Result<Option<PassedOn>, AskError> {
        place.set_mode(0o700);
        ask(&RuntimeDirectory::open(place.path(), Purpose::Reading).unwrap(), timeout)
    }

    /// A service that sends `bytes` to the first that asks, and hangs up when the test joins it.
    fn service(place: &Path, bytes: Vec<u8>) -> JoinHandle<()> {
        let listener = UnixListener::bind(place.join(SOCKET_NAME)).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(&bytes);
        })
    }

    #[test]
    fn where_nobody_serves_there_is_nothing_to_say() {
        let place = Scratch::new();
        assert!(matches!(asked(&place, LONG), Ok(None)));
        // As a service that was killed leaves it.
        drop(UnixListener::bind(place.join(SOCKET_NAME)).unwrap());
        assert!(matches!(asked(&place, LONG), Ok(None)));
    }

    #[test]
    fn a_service_that_hangs_up_stalls_or_talks_nonsense_costs_one_error() {
        let place = Scratch::new();
        let nobody = service(place.path(), Vec::new());
        let told = asked(&place, LONG).unwrap().unwrap();
        assert!(told.reports.is_empty() && told.only_of.is_none());
        nobody.join().unwrap();
        std::fs::remove_file(place.join(SOCKET_NAME)).unwrap();
        let babbling = service(place.path(), vec![0xFF; 4096]);
        assert!(matches!(asked(&place, LONG), Err(AskError::Frame(_))));
        babbling.join().unwrap();
        std::fs::remove_file(place.join(SOCKET_NAME)).unwrap();
        let _silent = UnixListener::bind(place.join(SOCKET_NAME)).unwrap();
        let soon = Duration::from_millis(20);
        assert!(matches!(asked(&place, soon), Err(AskError::TimedOut)));
    }

    #[test]
    fn a_stranger_is_not_asked() {
        if !needs_root("legacy::asking::a_stranger_is_not_asked") {
            return;
        }
        let place = Scratch::new();
        let _listener = UnixListener::bind(place.join(SOCKET_NAME)).unwrap();
        chown(place.join(SOCKET_NAME), Some(61_041), None).unwrap();
        assert!(matches!(asked(&place, LONG), Err(AskError::Stranger(61_041))));
        std::fs::remove_file(place.join(SOCKET_NAME)).unwrap();
        std::fs::write(place.join(SOCKET_NAME), "").unwrap();
        assert!(matches!(asked(&place, LONG), Err(AskError::NotASocket(0))));
    }
}
