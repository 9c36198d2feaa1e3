//! Asks processes' endpoints, all of them in one loop, and believes no answer.
//!
//! A peer that lies, dribbles, talks without end or says nothing costs one error, a bounded time
//! and a bounded amount of memory. Whether the answer fits the process that gave it is decided by
//! the caller; here the kernel is asked who that is.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recvmsg, send, socket_with,
};
use telltale_ledger::directory::{OVERFLOW_UID, RuntimeDirectory};
use telltale_schema::reading::Absence;
use telltale_wire::{
    FrameError, FrameReader, FrameWriter, Query, Refusal, Reply, ReplyError, Report,
};

/// Conversations at one time.
const MAX_OPEN: usize = 128;

/// Bytes of answers that are held at one time, over all peers of one thread.
const MAX_HELD_BYTES: usize = 16 << 20;

/// Endpoints from which on two threads share the work.
const HALVED_FROM: usize = 64;

/// How long to wait before a peer whose queue is full is tried again.
const RETRY: Duration = Duration::from_millis(2);

/// How long the asking may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskLimits {
    /// One peer, from connecting to its whole answer.
    pub(crate) peer: Duration,
    /// All of them.
    pub(crate) all: Duration,
}

/// Who answered, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its pid in our PID namespace; none when it is not visible from here.
    pub(crate) pid: Option<u32>,
    /// Its user.
    pub(crate) uid: u32,
}

/// An answer and who gave it.
#[derive(Debug)]
pub(crate) struct PeerAnswer {
    pub(crate) peer: Peer,
    pub(crate) report: Box<Report>,
    /// The ledger's descriptor, if it came along.
    pub(crate) ledger: Option<OwnedFd>,
}

/// Why an endpoint gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("cannot open the endpoint; run as its owner, as root or as the directory's owner")]
    Open(#[source] io::Error),
    #[error("the entry is not a socket; remove it by hand")]
    NotASocket,
    #[error("the socket belongs to user {OVERFLOW_UID}, the overflow user")]
    OverflowUser,
    #[error(
        "cannot connect to the endpoint; run as its owner, as root or as the directory's owner"
    )]
    Connect(#[source] io::Error),
    #[error("no process listens there any more; smi --clean removes what a dead process left")]
    NoListener,
    #[error("the socket belongs to user {owner}, but a process of user {peer} answers")]
    Owner { owner: u32, peer: u32 },
    #[error("no answer within the time allowed")]
    TimedOut,
    #[error("the endpoint hung up before its answer was complete; it may not admit this user")]
    HungUp,
    #[error("the connection to the endpoint broke")]
    Broken(#[source] io::Error),
    #[error("the endpoint does not keep to the protocol")]
    Frame(#[from] FrameError),
    #[error("the endpoint's answer cannot be used")]
    Reply(#[from] ReplyError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("endpoints answer with more than {MAX_HELD_BYTES} bytes together")]
    TooMuch,
}

impl EndpointError {
    /// What this means for what was asked.
    pub(crate) fn absence(&self) -> Absence {
        match self {
            Self::Open(source) | Self::Connect(source) | Self::Broken(source) => {
                match source.kind() {
                    io::ErrorKind::PermissionDenied => Absence::Permission,
                    io::ErrorKind::NotFound => Absence::Gone,
                    _ => Absence::Failed,
                }
            }
            Self::NoListener => Absence::Gone,
            Self::TimedOut => Absence::TimedOut,
            Self::HungUp => Absence::Permission,
            Self::NotASocket | Self::OverflowUser | Self::Owner { .. } => Absence::Refused,
            Self::Frame(_) | Self::Reply(_) | Self::Refused(_) | Self::TooMuch => Absence::Failed,
        }
    }
}

/// One conversation.
struct Conversation {
    index: usize,
    until: Instant,
    socket: OwnedFd,
    place: OwnedFd,
    peer: Option<Peer>,
    owner: u32,
    question: FrameWriter,
    answer: FrameReader,
    held: usize,
    ledger: Option<OwnedFd>,
}

/// An endpoint: the directory that it is in, its name there, and what it is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndpointLocation<'a> {
    pub(crate) directory: &'a RuntimeDirectory,
    pub(crate) name: &'a str,
    pub(crate) query: Query,
}

/// Asks these endpoints, all at once. The answers are in their order.
pub(crate) fn ask(
    places: &[EndpointLocation<'_>],
    limits: AskLimits,
) -> Vec<Result<PeerAnswer, EndpointError>> {
    let deadline = Instant::now() + limits.all;
    if places.len() < HALVED_FROM {
        return ask_those(places, limits.peer, deadline);
    }
    let (first, second) = places.split_at(places.len() / 2);
    thread::scope(|scope| {
        let second = scope.spawn(|| ask_those(second, limits.peer, deadline));
        let mut answers = ask_those(first, limits.peer, deadline);
        answers.extend(second.join().expect("asking does not panic"));
        answers
    })
}

fn ask_those(
    places: &[EndpointLocation<'_>],
    timeout: Duration,
    deadline: Instant,
) -> Vec<Result<PeerAnswer, EndpointError>> {
    let mut answers: Vec<Option<Result<PeerAnswer, EndpointError>>> =
        places.iter().map(|_| None).collect();
    let mut open: Vec<Conversation> = Vec::new();
    let mut waiting = places.iter().enumerate();
    loop {
        while open.len() < MAX_OPEN {
            let Some((index, place)) = waiting.next() else { break };
            let EndpointLocation { directory, name, query } = *place;
            let until = (Instant::now() + timeout).min(deadline);
            let begun = Conversation::begin(directory, index, name, &query.encode(), until);
            // The sooner they are asked, the more of them work on their answers while others are
            // connected to.
            let asked = begun.and_then(|mut one| one.put_question().map(|()| one));
            match asked {
                Ok(conversation) => open.push(conversation),
                Err(error) => answers[index] = Some(Err(error)),
            }
        }
        if open.is_empty() {
            break;
        }
        let mut can_go_on = wait(&open).into_iter();
        let now = Instant::now();
        let mut held: usize = open.iter().map(|one| one.held).sum();
        open = open
            .into_iter()
            .filter_map(|mut one| {
                let before = one.held;
                let outcome = match can_go_on.next() {
                    Some(true) => one.go_on(MAX_HELD_BYTES.saturating_sub(held)),
                    Some(false) | None => Ok(None),
                };
                held = held.saturating_sub(before) + one.held;
                let (index, late) = (one.index, now >= one.until);
                match outcome {
                    Ok(None) if late => answers[index] = Some(Err(EndpointError::TimedOut)),
                    Ok(None) => return Some(one),
                    Ok(Some(answer)) => answers[index] = Some(Ok(answer)),
                    Err(error) => answers[index] = Some(Err(error)),
                }
                None
            })
            .collect();
    }
    answers.into_iter().map(|answer| answer.unwrap_or(Err(EndpointError::TimedOut))).collect()
}

/// Whether a process listens at the endpoint of this name; `None` if unknown.
pub(crate) fn is_listening(directory: &RuntimeDirectory, name: &str) -> Option<bool> {
    match Conversation::begin(directory, 0, name, &[], Instant::now()) {
        Ok(_) | Err(EndpointError::Owner { .. }) => Some(true),
        Err(EndpointError::NoListener) => Some(false),
        Err(_) => None,
    }
}

/// Waits until some conversation can go on or has to end. Says of each whether it can: to try them
/// all would be a system call for each that waits, whenever one of them has something.
fn wait(open: &[Conversation]) -> Vec<bool> {
    let now = Instant::now();
    let first = open.iter().map(|one| one.until).min().unwrap_or(now);
    let mut timeout = first.saturating_duration_since(now);
    let mut descriptors = Vec::with_capacity(open.len());
    for one in open {
        if one.peer.is_none() {
            timeout = timeout.min(RETRY);
        } else {
            let wanted = if one.question.is_done() { PollFlags::IN } else { PollFlags::OUT };
            descriptors.push(PollFd::new(&one.socket, wanted));
        }
    }
    // Rounded up, so that a deadline is over when the wait is.
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    // An error (a signal, no memory) only means that we look earlier.
    let _ = poll(&mut descriptors, Some(&timeout));
    let mut looked = descriptors.iter();
    let mut has_something = || looked.next().is_some_and(|one| !one.revents().is_empty());
    // Nothing tells when the queue of a peer that is not connected yet has room.
    open.iter().map(|one| one.peer.is_none() || has_something()).collect()
}

// === impl Conversation ===

impl Conversation {
    /// Checks the socket, and connects to exactly the one that was checked.
    fn begin(
        directory: &RuntimeDirectory,
        index: usize,
        name: &str,
        question: &[u8],
        until: Instant,
    ) -> Result<Self, EndpointError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = openat(directory, name, flags, Mode::empty())
            .map_err(|errno| EndpointError::Open(errno.into()))?;
        let stat = fstat(&place).map_err(|errno| EndpointError::Open(errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(EndpointError::NotASocket);
        }
        if stat.st_uid == OVERFLOW_UID {
            return Err(EndpointError::OverflowUser);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|errno| EndpointError::Connect(errno.into()))?;
        let mut conversation = Self {
            index,
            until,
            socket,
            place,
            peer: None,
            owner: stat.st_uid,
            question: FrameWriter::new(question)?,
            answer: FrameReader::default(),
            held: 0,
            ledger: None,
        };
        conversation.connect()?;
        Ok(conversation)
    }

    /// Connects, unless the peer's queue is full just now.
    fn connect(&mut self) -> Result<(), EndpointError> {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", self.place.as_raw_fd());
        let address =
            SocketAddrUnix::new(path).map_err(|errno| EndpointError::Connect(errno.into()))?;
        match connect(&self.socket, &address) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(Errno::CONNREFUSED) => return Err(EndpointError::NoListener),
            Err(errno) => return Err(EndpointError::Connect(errno.into())),
        }
        let credentials = getsockopt(&self.socket, PeerCredentials)
            .map_err(|errno| EndpointError::Connect(errno.into()))?;
        let peer = Peer {
            pid: u32::try_from(credentials.pid()).ok().filter(|pid| *pid != 0),
            uid: credentials.uid(),
        };
        if peer.uid != self.owner {
            return Err(EndpointError::Owner { owner: self.owner, peer: peer.uid });
        }
        self.peer = Some(peer);
        Ok(())
    }

    /// Does what can be done without waiting.
    fn go_on(&mut self, room: usize) -> Result<Option<PeerAnswer>, EndpointError> {
        if self.peer.is_none() {
            self.connect()?;
        }
        self.put_question()?;
        let Some(peer) = self.peer.filter(|_| self.question.is_done()) else { return Ok(None) };
        if !self.receive(room)? {
            return Ok(None);
        }
        let message = self.answer.take().unwrap_or_default();
        match Reply::decode(&message)? {
            Reply::Report(report) => {
                let ledger = self.ledger.take().filter(|_| report.ledger_follows);
                Ok(Some(PeerAnswer { peer, report, ledger }))
            }
            Reply::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Sends as much of the question as can be sent now.
    fn put_question(&mut self) -> Result<(), EndpointError> {
        while self.peer.is_some() && !self.question.is_done() {
            match send(&self.socket, self.question.pending(), SendFlags::NOSIGNAL) {
                Ok(count) => self.question.advance(count),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(EndpointError::HungUp),
                Err(errno) => return Err(EndpointError::Broken(errno.into())),
            }
        }
        Ok(())
    }

    /// Takes what has come; true when the answer is complete.
    fn receive(&mut self, room: usize) -> Result<bool, EndpointError> {
        let mut buffer = [0u8; 16 * 1024];
        let mut taken = 0;
        while !self.answer.is_complete() {
            if taken > room {
                return Err(EndpointError::TooMuch);
            }
            let wanted = self.answer.wanted_bytes().min(buffer.len());
            match receive_some(self.socket.as_fd(), &mut buffer[..wanted], &mut self.ledger) {
                Ok(0) => return Err(EndpointError::HungUp),
                Ok(count) => {
                    self.answer.push(&buffer[..count])?;
                    taken += count;
                    self.held += count;
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Err(EndpointError::HungUp),
                Err(errno) => return Err(EndpointError::Broken(errno.into())),
            }
        }
        Ok(true)
    }
}

/// One receive. The first descriptor that ever comes along is kept, any other is closed.
fn receive_some(
    socket: impl AsFd,
    buffer: &mut [u8],
    ledger: &mut Option<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let received = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            for descriptor in descriptors {
                ledger.get_or_insert(descriptor);
            }
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests;
