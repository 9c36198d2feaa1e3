//! The question for one socket (`sock_diag(7)`), and its answer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::{Socket, gone};

/// `SOCK_DIAG_BY_FAMILY` in `linux/sock_diag.h`, of requests and answers.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` in `linux/netlink.h`.
const REQUEST: u16 = 1;
/// `NLMSG_ERROR` there.
const ERROR: u16 = 2;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// Bytes of `struct nlmsghdr`, of `struct inet_diag_req_v2` and of `struct inet_diag_msg`
/// (`linux/inet_diag.h`), which has the socket's own address and the other one at these places.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const ANSWER_BYTES: usize = HEADER_BYTES + 72;
const FOUND_FROM: Range<usize> = 24..40;
const FOUND_TO: Range<usize> = 40..56;
/// Where the answer has the user and the socket's inode.
const USER: Range<usize> = 80..84;
const INODE: Range<usize> = 84..88;
/// How long the kernel may take, which answers at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The socket whose own address is `remote`, connected with `local`.
pub(super) fn ask(local: SocketAddr, remote: SocketAddr) -> io::Result<Socket> {
    read(&exchange(local, remote)?, [remote, local])
}

/// Whether the kernel answers at all, where somebody listens at `address`.
pub(super) fn knows(address: SocketAddr) -> Result<(), Errno> {
    let answer = exchange(address, address)?;
    kind(&answer).and_then(|kind| if kind == BY_FAMILY { Ok(()) } else { Err(Errno::NOENT) })
}

fn exchange(local: SocketAddr, remote: SocketAddr) -> Result<[u8; ANSWER_BYTES], Errno> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
    sendto(&socket, &request(local, remote), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // Its attributes, which were not asked for, would be cut.
    let mut answer = [0; ANSWER_BYTES];
    recv(&socket, &mut answer, RecvFlags::empty())?;
    Ok(answer)
}

/// The request for the socket whose own address is `remote`.
fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    let length: u32 = 72;
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    let family = match remote {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    bytes[16] = family.as_raw().to_ne_bytes()[0];
    bytes[17] = TCP;
    // Whatever its state; it is looked at in the answer.
    bytes[20..24].fill(0xff);
    bytes[24..26].copy_from_slice(&remote.port().to_be_bytes());
    bytes[26..28].copy_from_slice(&local.port().to_be_bytes());
    put(&mut bytes[28..44], remote.ip());
    put(&mut bytes[44..60], local.ip());
    // No cookie is known.
    bytes[64..72].fill(0xff);
    bytes
}

fn put(place: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => place[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => place.copy_from_slice(&address.octets()),
    }
}

fn number(answer: &[u8; ANSWER_BYTES], place: Range<usize>) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&answer[place]);
    u32::from_ne_bytes(bytes)
}

/// What kind of answer it is, if it is no error.
fn kind(answer: &[u8; ANSWER_BYTES]) -> Result<u16, Errno> {
    match u16::from_ne_bytes([answer[4], answer[5]]) {
        ERROR => {
            let error = number(answer, 16..20).cast_signed().saturating_neg();
            Err(Errno::from_raw_os_error(error))
        }
        kind => Ok(kind),
    }
}

/// The socket in an answer about the one with these ends, its own first. Without one, the kernel
/// answers with whoever listens there.
fn read(answer: &[u8; ANSWER_BYTES], ends: [SocketAddr; 2]) -> io::Result<Socket> {
    let kind = kind(answer)?;
    let is_new = answer[16] == AddressFamily::INET6.as_raw().to_ne_bytes()[0];
    let found = [FOUND_FROM, FOUND_TO].map(|place| address(&answer[place], is_new));
    let is_it = found == ends.map(|end| end.ip()) && {
        let ports = [[answer[20], answer[21]], [answer[22], answer[23]]].map(u16::from_be_bytes);
        ports == ends.map(|end| end.port())
    };
    if kind != BY_FAMILY || !is_it {
        return Err(gone());
    }
    Ok(Socket { user: number(answer, USER), inode: number(answer, INODE), state: answer[17] })
}

/// An address of an answer: a socket of both families has a mapped one.
fn address(place: &[u8], is_new: bool) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(place);
    let [a, b, c, d, ..] = octets;
    if is_new { IpAddr::from(octets).to_canonical() } else { IpAddr::from([a, b, c, d]) }
}
