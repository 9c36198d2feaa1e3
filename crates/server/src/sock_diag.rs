//! What the kernel says of TCP sockets of this network namespace, where it is asked (`sock_diag(7)`).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// How long the kernel may take, which answers at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The kernel fills no more at a time (`NLMSG_GOODSIZE` and what `recv` asks for, `netlink(7)`).
const ANSWER_BYTES: usize = 32 << 10;
/// Where `struct tcp_info` (`linux/tcp.h`) has the bytes that the other end has acknowledged and those that have come, how
/// fast bytes are delivered, for how long there was something to send, in microseconds, and for how long of that the other
/// end had no room for it.
const ACKNOWLEDGED: usize = 120;
const RECEIVED: usize = 128;
const DELIVERY_RATE: usize = 160;
const BUSY: usize = 168;
const RECEIVER_LIMITED: usize = 176;

/// A TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address.
    pub local: SocketAddr,
    /// That of the other end.
    pub remote: SocketAddr,
    /// Who made it.
    pub user: u32,
    /// What `/proc/<pid>/fd` has for it; 0 once it is closed.
    pub inode: u32,
    /// By `net/tcp_states.h`.
    pub state: u8,
    /// No other socket has the same until the machine is restarted.
    pub cookie: u64,
    /// What it has carried; nothing where that was not asked for or the kernel is older than 4.10.
    pub carried: Option<Carried>,
}

/// What a socket has carried since it was connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Carried {
    /// Bytes that the other end has acknowledged.
    pub acknowledged: u64,
    /// Bytes that have come.
    pub received: u64,
    /// For how long there was something to send and the other end had room for it.
    pub busy: Duration,
    /// Bytes a second as they were delivered last while there was more to send, or ever since if they were more
    /// (`tcpi_delivery_rate`).
    pub delivery_rate: u64,
}

/// The socket whose own address is `local`, connected with `remote`; none where there is no such one.
///
/// # Errors
/// When the kernel does not answer or may not be asked.
pub fn find(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<TcpSocket>> {
    // Without one, the kernel answers with the socket that listens there.
    let is_it = |found: &TcpSocket| (found.local, found.remote) == (local, remote);
    match exchange(local, remote) {
        Ok(found) => Ok(found.filter(is_it)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the kernel answers at all, where a socket listens at `address`.
pub(crate) fn knows(address: SocketAddr) -> Result<(), Errno> {
    exchange(address, address)?.map(|_| ()).ok_or(Errno::NOENT)
}

/// The connected sockets and what they have carried; at most about `most`.
///
/// # Errors
/// As [`find`].
pub fn established(most: usize) -> io::Result<Vec<TcpSocket>> {
    let mut found = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let id = if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() };
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::ESTABLISHED,
            socket_id: id,
        };
        let socket = ask(request, NLM_F_REQUEST | NLM_F_DUMP)?;
        while found.len() < most && take(&socket, |one| found.push(one))? {}
    }
    Ok(found)
}

fn exchange(local: SocketAddr, remote: SocketAddr) -> Result<Option<TcpSocket>, Errno> {
    let request = InetRequest {
        family: if local.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        // Whatever it is; it is checked in the answer.
        states: StateFlags::all(),
        socket_id: SocketId {
            source_port: local.port(),
            destination_port: remote.port(),
            source_address: local.ip(),
            destination_address: remote.ip(),
            interface_id: 0,
            // None is known.
            cookie: [0xff; 8],
        },
    };
    let socket = ask(request, NLM_F_REQUEST)?;
    let mut found = None;
    take(&socket, |one| found = Some(one))?;
    Ok(found)
}

fn ask(request: InetRequest, flags: u16) -> Result<OwnedFd, Errno> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    sendto(&socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// Takes the sockets of one answer; says whether more may come.
fn take(socket: &OwnedFd, mut each: impl FnMut(TcpSocket)) -> Result<bool, Errno> {
    let mut answer = vec![0; ANSWER_BYTES];
    let (length, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    let mut rest = answer.get(..length).ok_or(Errno::MSGSIZE)?;
    while !rest.is_empty() {
        let message =
            NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(|_| Errno::BADMSG)?;
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(one)) => each(read(&one)),
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(error) => {
                let code = error.code.map_or(0, |code| code.get().saturating_neg());
                return Err(Errno::from_raw_os_error(code));
            }
            _ => {}
        }
        // Each begins at a place that is divisible by four.
        let end = usize::try_from(message.header.length).unwrap_or(usize::MAX);
        rest = rest.get(end.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(length > 0)
}

fn read(from: &InetResponse) -> TcpSocket {
    let id = &from.header.socket_id;
    // A socket of both families has mapped addresses of the older one.
    let end = |ip: std::net::IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    let info = from.nlas.iter().find_map(|one| match one {
        Nla::TcpInfo(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    TcpSocket {
        local: end(id.source_address, id.source_port),
        remote: end(id.destination_address, id.destination_port),
        user: from.header.uid,
        inode: from.header.inode,
        state: from.header.state,
        cookie: u64::from_ne_bytes(id.cookie),
        carried: info.and_then(carried),
    }
}

fn carried(info: &[u8]) -> Option<Carried> {
    let number = |place: usize| {
        let bytes = info.get(place..place.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let busy_us = number(BUSY)?.saturating_sub(number(RECEIVER_LIMITED)?);
    Some(Carried {
        acknowledged: number(ACKNOWLEDGED)?,
        received: number(RECEIVED)?,
        busy: Duration::from_micros(busy_us),
        delivery_rate: number(DELIVERY_RATE)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_a_connection_carries_is_known_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 100_000]).unwrap();
        receiver.read_exact(&mut [0; 100_000]).unwrap();
        let ends =
            [&sender, &receiver].map(|one| (one.local_addr().unwrap(), one.peer_addr().unwrap()));
        let all = established(1 << 20).unwrap();
        let [sent, came] = ends.map(|(local, remote)| {
            let listed = all.iter().find(|one| (one.local, one.remote) == (local, remote)).unwrap();
            let found = find(local, remote).unwrap().unwrap();
            assert_eq!(TcpSocket { carried: None, ..*listed }, found);
            listed.carried.unwrap()
        });
        // The first byte of a connection that the kernel counts is that of its beginning.
        assert!((100_000..=100_001).contains(&sent.acknowledged), "{sent:?}");
        assert_eq!((sent.received, came.received), (0, 100_000));
        assert!(sent.busy < Duration::from_secs(10), "{sent:?}");
        drop(sender);
        assert_eq!(find(ends[0].0, "127.0.0.1:1".parse().unwrap()).unwrap(), None);
    }

    #[test]
    fn what_an_older_kernel_leaves_out_is_absent() {
        assert_eq!(carried(&[1; BUSY]), None);
        let mut info = vec![0; 200];
        info[BUSY..BUSY + 8].copy_from_slice(&900_u64.to_ne_bytes());
        info[RECEIVER_LIMITED..RECEIVER_LIMITED + 8].copy_from_slice(&400_u64.to_ne_bytes());
        assert_eq!(carried(&info).unwrap().busy, Duration::from_micros(500));
    }
}
