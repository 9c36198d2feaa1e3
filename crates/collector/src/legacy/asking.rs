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
use telltale_wire::{FrameError, FrameReader, Refusal, Reply, ReplyError, Report};

use super::{END, MAX_CLIENTS};
use crate::limits::MAX_DEVICES;
use crate::sockets::LEGACY_CLIENTS;

/// What a service says.
#[derive(Debug)]
pub struct PassedOn {
    /// The user whose processes it may speak for; none where it may for all.
    pub only_of: Option<u32>,
    /// Its clients, each once.
    pub reports: Vec<Report>,
}

/// Why nothing is known from a service.
#[derive(Debug, thiserror::Error)]
pub enum LegacyError {
    /// The socket could not be used.
    #[error("cannot ask the service; see whether it runs (`telltale health`)")]
    System(#[source] io::Error),
    /// The socket is that of a user who is not trusted.
    #[error("it belongs to user {0}, who is neither root, nor you, nor the directory's owner")]
    Stranger(u32),
    /// A user put something else there.
    #[error("user {0} has put something there that is not a socket; remove it")]
    NotASocket(u32),
    /// It did not answer in time.
    #[error("the service did not answer within the time allowed")]
    TimedOut,
    /// What it sent are no frames.
    #[error("the service does not keep to the protocol")]
    Frame(#[from] FrameError),
    /// A frame holds no reply.
    #[error("the service's answer cannot be used")]
    Reply(#[from] ReplyError),
    /// It names more than there can be.
    #[error("the service names more than {MAX_CLIENTS} processes, or {MAX_DEVICES} devices of one")]
    TooMany,
    /// It hung up before the end.
    #[error("the service ended its answer too early, and nothing of it is shown; ask again")]
    CutShort,
    /// It says that it cannot.
    #[error("the service cannot answer")]
    Refused(#[source] Refusal),
}

impl LegacyError {
    /// What this means for what was asked.
    pub fn absence(&self) -> Absence {
        match self {
            Self::Stranger(_) | Self::NotASocket(_) => Absence::Refused,
            Self::TimedOut => Absence::TimedOut,
            _ => Absence::Failed,
        }
    }

    /// Who has put something there that is not a service's, if that is what is wrong.
    pub fn culprit(&self) -> Option<u32> {
        match self {
            Self::Stranger(user) | Self::NotASocket(user) => Some(*user),
            _ => None,
        }
    }
}

/// Asks the service of this directory; none where there is none that has legacy clients.
///
/// # Errors
/// When it is not asked, does not answer in time, or breaks the protocol.
pub fn ask(
    directory: &RuntimeDirectory,
    timeout: Duration,
) -> Result<Option<PassedOn>, LegacyError> {
    let until = Instant::now() + timeout;
    let Ok(status) = directory.entry_status(LEGACY_CLIENTS) else { return Ok(None) };
    let own = rustix::process::geteuid().as_raw();
    let allowed = [0, own, directory.owner()];
    if status.uid == OVERFLOW_UID || !allowed.contains(&status.uid) {
        return Err(LegacyError::Stranger(status.uid));
    }
    if !status.is_socket {
        return Err(LegacyError::NotASocket(status.uid));
    }
    let Some(socket) = connected(directory, until)? else { return Ok(None) };
    let peer = getsockopt(&socket, PeerCredentials)
        .map_err(|errno| LegacyError::System(errno.into()))?
        .uid();
    if peer != status.uid {
        return Err(LegacyError::Stranger(peer));
    }
    // Of a private directory its owner speaks; to another user only for itself.
    let speaks_for_all = [0, own].contains(&peer) || directory.is_installed();
    let reports = receive(&socket, until)?;
    Ok(Some(PassedOn { only_of: (!speaks_for_all).then_some(peer), reports }))
}

/// The whole answer: without its end, nothing of it is used.
fn receive(socket: &OwnedFd, until: Instant) -> Result<Vec<Report>, LegacyError> {
    let mut reports: Vec<Report> = Vec::new();
    let (mut frames, mut buffer) = (FrameReader::default(), [0u8; 16 * 1024]);
    // Not only where there is nothing to receive: a service may send without an end.
    while Instant::now() < until {
        let wanted = frames.wanted_bytes().min(buffer.len());
        match recv(socket, &mut buffer[..wanted], RecvFlags::empty()) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => return Err(LegacyError::CutShort),
            Ok((_, count)) => _ = frames.push(&buffer[..count])?,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => wait(socket, until),
            Err(errno) => return Err(LegacyError::System(errno.into())),
        }
        let Some(message) = frames.take() else { continue };
        if message == END {
            return Ok(reports);
        }
        match Reply::decode(&message)? {
            Reply::Report(report) => add(&mut reports, *report)?,
            Reply::Refused(refusal) => return Err(LegacyError::Refused(refusal)),
        }
    }
    Err(LegacyError::TimedOut)
}

/// Adds a report, or more devices of the process that the last one was of.
fn add(reports: &mut Vec<Report>, report: Report) -> Result<(), LegacyError> {
    if let Some(last) = reports.last_mut().filter(|last| last.identity == report.identity) {
        last.devices.extend(report.devices);
        return if last.devices.len() > MAX_DEVICES { Err(LegacyError::TooMany) } else { Ok(()) };
    }
    if reports.len() >= MAX_CLIENTS {
        return Err(LegacyError::TooMany);
    }
    reports.push(report);
    Ok(())
}

/// A connection to the socket; `None` without a listener, as after a service that was killed.
fn connected(directory: &RuntimeDirectory, until: Instant) -> Result<Option<OwnedFd>, LegacyError> {
    let system = |errno: Errno| LegacyError::System(errno.into());
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(system)?;
    // Through the open directory: short enough for an address wherever the directory is.
    let path = format!("/proc/self/fd/{}/{LEGACY_CLIENTS}", directory.as_fd().as_raw_fd());
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
            Err(Errno::AGAIN) => return Err(LegacyError::TimedOut),
            Err(errno) => return Err(system(errno)),
        }
    }
}

/// Waits for something to receive.
fn wait(socket: &OwnedFd, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    // A signal only means that we look earlier.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout));
}

#[cfg(test)]
mod tests {
    use super::{END, LegacyError, PassedOn, ask};
    use crate::sockets::LEGACY_CLIENTS;
    use std::io::Write;
    use std::os::unix::fs::chown;
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::thread::JoinHandle;
    use std::time::Duration;
    use telltale_harness::{Scratch, needs_root};
    use telltale_ledger::directory::{Purpose, RuntimeDirectory};
    use telltale_schema::process::ProcessIdentity;
    use telltale_schema::snapshot::RecordingFaults;
    use telltale_wire::{Reply, Report, frame};

    const LONG: Duration = Duration::from_secs(20);

    /// The report of a process without devices.
    fn report(pid: u32) -> Report {
        let identity =
            ProcessIdentity { boot_id: [1; 16], pid_namespace: 2, pid, start_time_ticks: 3 };
        Report {
            identity,
            name: String::new(),
            runtime: String::from("legacy"),
            started_at: None,
            uptime_ns: None,
            devices: Vec::new(),
            faults: RecordingFaults::default(),
            programs: None,
            kernel_cache: None,
            metrics: Vec::new(),
            metrics_omitted: 0,
            ledger_follows: false,
        }
    }

    fn asked(place: &Scratch, timeout: Duration) -> Result<Option<PassedOn>, LegacyError> {
        place.set_mode(0o700);
        ask(&RuntimeDirectory::open(place.path(), Purpose::Reading).unwrap(), timeout)
    }

    /// A service that sends `bytes` to the first that asks, and hangs up when the test joins it.
    fn service(place: &Path, bytes: Vec<u8>) -> JoinHandle<()> {
        let listener = UnixListener::bind(place.join(LEGACY_CLIENTS)).unwrap();
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
        drop(UnixListener::bind(place.join(LEGACY_CLIENTS)).unwrap());
        assert!(matches!(asked(&place, LONG), Ok(None)));
    }

    #[test]
    fn a_service_that_hangs_up_stalls_or_talks_nonsense_costs_one_error() {
        let place = Scratch::new();
        let answer = |bytes: Vec<u8>| {
            let service = service(place.path(), bytes);
            let reported = asked(&place, LONG);
            service.join().unwrap();
            std::fs::remove_file(place.join(LEGACY_CLIENTS)).unwrap();
            reported
        };
        let end = frame(END).unwrap();
        let nobody = answer(end.clone()).unwrap().unwrap();
        assert!(nobody.reports.is_empty() && nobody.only_of.is_none());
        let one = frame(&Reply::Report(Box::new(report(7))).encode().unwrap()).unwrap();
        let whole = answer([one.clone(), end].concat()).unwrap().unwrap();
        assert_eq!(whole.reports, [report(7)]);
        for part in [0, 2, one.len() / 2, one.len()] {
            let reported = answer(one[..part].to_vec());
            assert!(matches!(reported, Err(LegacyError::CutShort)), "{part}: {reported:?}");
        }
        assert!(matches!(answer(vec![0xFF; 4096]), Err(LegacyError::Frame(_))));
        let soon = Duration::from_millis(20);
        let listener = UnixListener::bind(place.join(LEGACY_CLIENTS)).unwrap();
        let endless = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(&one).is_ok() {}
        });
        assert!(matches!(asked(&place, soon), Err(LegacyError::TimedOut)));
        endless.join().unwrap();
        std::fs::remove_file(place.join(LEGACY_CLIENTS)).unwrap();
        let _silent = UnixListener::bind(place.join(LEGACY_CLIENTS)).unwrap();
        assert!(matches!(asked(&place, soon), Err(LegacyError::TimedOut)));
    }

    #[test]
    fn a_stranger_is_not_asked() {
        if !needs_root("legacy::asking::a_stranger_is_not_asked") {
            return;
        }
        let place = Scratch::new();
        let _listener = UnixListener::bind(place.join(LEGACY_CLIENTS)).unwrap();
        chown(place.join(LEGACY_CLIENTS), Some(61_041), None).unwrap();
        assert!(matches!(asked(&place, LONG), Err(LegacyError::Stranger(61_041))));
        std::fs::remove_file(place.join(LEGACY_CLIENTS)).unwrap();
        std::fs::write(place.join(LEGACY_CLIENTS), "").unwrap();
        assert!(matches!(asked(&place, LONG), Err(LegacyError::NotASocket(0))));
    }
}
