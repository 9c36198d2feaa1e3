//! Which user of this machine has the other end of a TCP connection over the loopback.
//!
//! The kernel is asked for the one socket with the two addresses (`sock_diag(7)`). Then it is asked for
//! our own end: while that is still open, no other can have had the addresses of the other one. Only
//! where the kernel was built without that, its table of sockets is read instead. Nothing here decides
//! who may do what.

mod table;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;
use tracing::warn;

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::{getpeername, getsockname};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::sock_diag::{self, TcpSocket};

/// States of `net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
const FIN_WAIT_1: u8 = 4;
const FIN_WAIT_2: u8 = 5;
const CLOSE_WAIT: u8 = 8;

/// How long the kernel's table may take, with the wait for others who read it.
const TABLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Who reads the table: one at a time, as it takes a processor for as long.
static READER: Semaphore = Semaphore::const_new(1);

/// What is logged once where a sandbox keeps the question from the kernel.
const REFUSED: &str = "a sandbox lets this process open no netlink socket: users who call over the loopback are \
                       not known, and have no more rights than callers from elsewhere; add AF_NETLINK to \
                       RestrictAddressFamilies= of the unit, or allow it in the container's seccomp profile";

/// Both ends of a connection over the loopback.
#[derive(Debug, Clone, Copy)]
struct LoopbackConnection {
    /// Our address.
    local: SocketAddr,
    /// The caller's.
    remote: SocketAddr,
    /// Of our socket.
    inode: u64,
}

/// What decides whose a connected socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Socket {
    user: u32,
    inode: u32,
    state: u8,
}

/// Where the kernel says whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeerSource {
    /// It answers questions.
    Questions,
    /// It was built without the answers, and has a table.
    Table,
    /// A sandbox may block the query. What it keeps from us by one way is not tried by another.
    Refused,
}

/// The user who has the other end of a TCP connection over the loopback; none where either end has
/// another address.
///
/// # Errors
/// When the connection is closed, or the kernel does not answer, or may not be asked.
pub async fn user_of(socket: impl AsFd) -> io::Result<Option<u32>> {
    let Some(connection) = LoopbackConnection::of(&socket)? else { return Ok(None) };
    let user = match PeerSource::get()? {
        PeerSource::Questions => connection.asked(|| {}),
        PeerSource::Table => connection.looked_up(&socket).await,
        PeerSource::Refused => Err(io::Error::from(Errno::AFNOSUPPORT)),
    };
    user.map(Some)
}

// === impl LoopbackConnection ===

impl LoopbackConnection {
    fn of(socket: impl AsFd) -> io::Result<Option<Self>> {
        let own = SocketAddr::try_from(getsockname(&socket)?);
        // None where the connection was reset.
        let other = getpeername(&socket)?.ok_or_else(gone)?;
        let (Ok(local), Ok(remote)) = (own, SocketAddr::try_from(other)) else { return Ok(None) };
        // A socket of both families knows a caller of the older one by a mapped address; the caller's
        // own socket is of the older one.
        let [local, remote] =
            [local, remote].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
        let is_loopback = local.ip().is_loopback() && remote.ip().is_loopback();
        let inode = fstat(&socket)?.st_ino;
        Ok(is_loopback.then_some(Self { local, remote, inode }))
    }

    /// The caller's user by the kernel's answers, with something done between the question for the
    /// other end and that for ours.
    fn asked(self, between: impl FnOnce()) -> io::Result<u32> {
        let other = asked(self.remote, self.local)?;
        between();
        // Our end is known in this network namespace under the same addresses and is open: so it was
        // when the kernel was asked for the other one.
        self.judge(other, asked(self.local, self.remote)?)
    }

    /// The caller's user by the kernel's table, which is read on a thread of its own.
    async fn looked_up(self, socket: impl AsFd) -> io::Result<u32> {
        let read = async {
            // It is never closed.
            let permit = READER.acquire().await.map_err(io::Error::other)?;
            let Self { local, remote, .. } = self;
            let reading = spawn_blocking(move || {
                let found = table::find([remote, local], [local, remote]);
                drop(permit);
                found
            });
            reading.await.map_err(io::Error::other)?
        };
        let [other, own] = timeout(TABLE_TIMEOUT, read).await??;
        // The kernel knows a peer only as long as the connection is neither closed nor reset. As long as
        // it was not, no other had the addresses, whichever line came first.
        getpeername(&socket)?.ok_or_else(gone)?;
        self.judge(other, own)
    }

    /// The user of the other end, if both are as those of a connection that lasts. A caller that has
    /// only said that it will send no more (it is half closed) still has its socket; one that has closed
    /// it leaves one without an inode, which has no user either.
    fn judge(self, other: Socket, own: Socket) -> io::Result<u32> {
        let is_open = [ESTABLISHED, CLOSE_WAIT].contains(&own.state);
        let is_held =
            [ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2].contains(&other.state) && other.inode != 0;
        if is_open && is_held && u64::from(own.inode) == self.inode {
            return Ok(other.user);
        }
        Err(gone())
    }
}

// === impl PeerSource ===

impl PeerSource {
    /// The one of this machine, which is found out once.
    fn get() -> io::Result<Self> {
        static FOUND: OnceLock<PeerSource> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(*found);
        }
        let found = Self::find()?;
        if FOUND.set(found).is_ok() && found == Self::Refused {
            warn!("{REFUSED}");
        }
        Ok(found)
    }

    /// Asks for a socket that is certainly there: one of our own that listens.
    fn find() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .or_else(|_| TcpListener::bind((Ipv6Addr::LOCALHOST, 0)))?;
        Self::by(sock_diag::knows(listener.local_addr()?))
    }

    /// What the answer about such a socket means.
    fn by(answer: Result<(), Errno>) -> io::Result<Self> {
        match answer {
            Ok(()) => Ok(Self::Questions),
            // No such protocol of netlink; no such family or protocol in it.
            Err(Errno::PROTONOSUPPORT | Errno::NOENT | Errno::OPNOTSUPP) => Ok(Self::Table),
            // What systemd, seccomp and a security module answer.
            Err(Errno::AFNOSUPPORT | Errno::PERM | Errno::ACCESS) => Ok(Self::Refused),
            // Descriptors or memory are short; the next caller may be luckier.
            Err(error) => Err(error.into()),
        }
    }
}

/// The socket with these ends, its own first, by the kernel's answer.
fn asked(local: SocketAddr, remote: SocketAddr) -> io::Result<Socket> {
    let TcpSocket { user, inode, state, .. } = sock_diag::find(local, remote)?.ok_or_else(gone)?;
    Ok(Socket { user, inode, state })
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the caller's socket is not connected any more")
}

#[cfg(test)]
mod tests;
