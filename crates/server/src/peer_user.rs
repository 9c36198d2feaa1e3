//! Which user of this machine has the other end of a TCP connection over the loopback.
//!
//! The kernel is asked for the one socket with the two addresses (`sock_diag(7)`), or, where it was
//! built without that, its table of sockets is read. Then it is asked for our own end: while that is
//! still established, nobody else can have had the addresses of the other one. Nothing here decides
//! who may do what.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::fstat;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_timeout;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, getpeername, getsockname, recv,
    sendto, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY` in `linux/sock_diag.h`, of requests and answers.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` in `linux/netlink.h`.
const REQUEST: u16 = 1;
/// `NLMSG_ERROR` there.
const ERROR: u16 = 2;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `TCP_ESTABLISHED` in `net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
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
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
/// Bytes of the table of sockets that are read: a hundred thousand connections.
const MAX_TABLE_BYTES: u64 = 16 << 20;

/// Whether the kernel has ever answered a question. From then on its "no such file" means that there
/// is no such socket, and its whole table need not be read for each caller that is gone.
static ANSWERS: AtomicBool = AtomicBool::new(false);

/// What the kernel knows of an established socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Socket {
    user: u32,
    inode: u32,
}

/// The user who has the other end of a TCP connection over the loopback; none where either end has
/// another address.
///
/// # Errors
/// When the connection is closed, or was half closed, or the kernel does not tell.
pub fn user_of(socket: impl AsFd) -> io::Result<Option<u32>> {
    asked(socket, || {})
}

/// The same, with something done between the question for the other end and that for ours.
fn asked(socket: impl AsFd, between: impl FnOnce()) -> io::Result<Option<u32>> {
    let own = SocketAddr::try_from(getsockname(&socket)?);
    // None where the connection was reset.
    let other = getpeername(&socket)?.ok_or_else(gone)?;
    let (Ok(local), Ok(remote)) = (own, SocketAddr::try_from(other)) else { return Ok(None) };
    // A socket of both families knows a caller of the older one by a mapped address; the caller's own
    // socket is of the older one.
    let [local, remote] =
        [local, remote].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
    if !(local.ip().is_loopback() && remote.ip().is_loopback()) {
        return Ok(None);
    }
    let other = established(local, remote)?;
    between();
    // Our end is in the table of this network namespace under the same addresses and is established:
    // so it was when the kernel was asked for the other one.
    let own = established(remote, local)?;
    if u64::from(own.inode) != fstat(&socket)?.st_ino {
        return Err(gone());
    }
    Ok(Some(other.user))
}

/// The established socket whose own address is `remote`, connected with `local`.
fn established(local: SocketAddr, remote: SocketAddr) -> io::Result<Socket> {
    match ask(local, remote) {
        // "No such file" is its answer in both cases: no such socket, or nobody there to ask.
        Err(_) if !ANSWERS.load(Ordering::Relaxed) => look_up(local, remote),
        answer => answer,
    }
}

fn ask(local: SocketAddr, remote: SocketAddr) -> io::Result<Socket> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(PATIENCE))?;
    sendto(&socket, &request(local, remote), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // Its attributes, which were not asked for, would be cut.
    let mut answer = [0; ANSWER_BYTES];
    recv(&socket, &mut answer, RecvFlags::empty())?;
    read(&answer, [remote, local])
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

/// The socket in an answer about the one with these ends, its own first. Without one, the kernel
/// answers with whoever listens there.
fn read(answer: &[u8; ANSWER_BYTES], ends: [SocketAddr; 2]) -> io::Result<Socket> {
    let number = |place: Range<usize>| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&answer[place]);
        u32::from_ne_bytes(bytes)
    };
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    if kind == ERROR {
        return Err(io::Error::from_raw_os_error(number(16..20).cast_signed().saturating_neg()));
    }
    if kind == BY_FAMILY {
        ANSWERS.store(true, Ordering::Relaxed);
    }
    let is_new = answer[16] == AddressFamily::INET6.as_raw().to_ne_bytes()[0];
    let found = [FOUND_FROM, FOUND_TO].map(|place| address(&answer[place], is_new));
    let is_it = found == ends.map(|end| end.ip()) && {
        let ports = [[answer[20], answer[21]], [answer[22], answer[23]]].map(u16::from_be_bytes);
        ports == ends.map(|end| end.port())
    };
    if kind != BY_FAMILY || answer[17] != ESTABLISHED || !is_it {
        return Err(gone());
    }
    Ok(Socket { user: number(USER), inode: number(INODE) })
}

/// An address of an answer: a socket of both families has a mapped one.
fn address(place: &[u8], is_new: bool) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(place);
    let [a, b, c, d, ..] = octets;
    if is_new { IpAddr::from(octets).to_canonical() } else { IpAddr::from([a, b, c, d]) }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the caller's socket is not connected any more")
}

/// The same from `/proc/net/tcp` or `/proc/net/tcp6` (`proc_net_tcp.rst` in the kernel's documentation).
fn look_up(local: SocketAddr, remote: SocketAddr) -> io::Result<Socket> {
    let [from, to] = [remote, local];
    let mapped = |end: SocketAddr| match end.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), end.port()),
        IpAddr::V6(_) => end,
    };
    let tables = [("/proc/net/tcp", [from, to]), ("/proc/net/tcp6", [mapped(from), mapped(to)])];
    for (path, ends) in tables.into_iter().skip(usize::from(from.is_ipv6())) {
        if let Some(found) = in_file(path, ends.map(in_table))? {
            return Ok(found);
        }
    }
    Err(gone())
}

fn in_file(path: &str, wanted: [String; 2]) -> io::Result<Option<Socket>> {
    for line in BufReader::new(File::open(path)?.take(MAX_TABLE_BYTES)).lines() {
        let line = line?;
        let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, from, to, state, _, _, _, user, _, inode] = fields[..] else { continue };
        if [from, to] == wanted && u8::from_str_radix(state, 16) == Ok(ESTABLISHED) {
            let number = |text: &str| text.parse().map_err(|_| gone());
            return Ok(Some(Socket { user: number(user)?, inode: number(inode)? }));
        }
    }
    Ok(None)
}

/// An address as the table has it: words of the machine's own order in hexadecimal digits.
fn in_table(address: SocketAddr) -> String {
    let words = |octets: &[u8]| -> String {
        let words = octets.as_chunks::<4>().0.iter();
        words.map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect()
    };
    let ip = match address.ip() {
        IpAddr::V4(address) => words(&address.octets()),
        IpAddr::V6(address) => words(&address.octets()),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::fchown;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use telltale_harness::needs_root;

    use super::*;

    /// A connection with a process of a user, which lasts as long as the process.
    fn connect_as(user: u32, listener: &TcpListener) -> (TcpStream, std::process::Child) {
        let address = listener.local_addr().unwrap();
        let mut command = Command::new("bash");
        let script = format!("exec 3<>/dev/tcp/{}/{}; read line", address.ip(), address.port());
        command.args(["-c", &script]).stdin(Stdio::piped()).uid(user);
        let child = command.spawn().unwrap();
        (listener.accept().unwrap().0, child)
    }

    #[test]
    fn the_user_of_each_caller_is_told_by_both_ways() {
        if !needs_root("peer_user::the_user_of_each_caller_is_told_by_both_ways") {
            return;
        }
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            for user in [61_001, 0, 61_002] {
                let (stream, mut child) = connect_as(user, &listener);
                let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
                assert_eq!(user_of(&stream).unwrap(), Some(user), "{address}");
                let [local, remote] =
                    [local, remote].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
                for (one, other, owner) in [(local, remote, user), (remote, local, 0)] {
                    let asked = ask(one, other).unwrap();
                    assert_eq!(asked.user, owner, "{address}");
                    assert_eq!(look_up(one, other).unwrap(), asked, "{address}");
                }
                drop(stream);
                drop(child.stdin.take());
                child.wait().unwrap();
            }
        }
    }

    #[test]
    fn nobody_is_told_for_a_socket_that_is_closed_or_only_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        assert!(user_of(&accepted).is_ok());
        let [own, mut other] = [stream.local_addr().unwrap(); 2];
        other.set_port(1);
        for (local, remote) in [(other, own), (own, other)] {
            assert!(established(local, remote).is_err(), "{local} {remote}");
            assert!(look_up(local, remote).is_err(), "{local} {remote}");
        }
        drop(stream);
        // A process that another test starts has it too, until it is the program that it is to be.
        let deadline = std::time::Duration::from_secs(10);
        telltale_harness::wait_until("nobody to be told", deadline, || user_of(&accepted).is_err());
    }

    /// A connection whose client's socket belongs to `user`, from `port` or any.
    fn connection(listener: &TcpListener, user: u32, port: u16) -> [TcpStream; 2] {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        fchown(&socket, Some(user), None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        rustix::net::connect(&socket, &listener.local_addr().unwrap()).unwrap();
        [TcpStream::from(socket), listener.accept().unwrap().0]
    }

    /// Ends a connection without a word to wait for, so that its port is free at once.
    fn reset(stream: TcpStream) {
        rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
        drop(stream);
    }

    #[test]
    fn a_port_that_is_closed_and_used_again_is_not_taken_for_the_earlier_caller() {
        if !needs_root("peer_user::a_port_that_is_closed_and_used_again") {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let [mallorys, asked_before] = connection(&listener, 61_001, 0);
        let port = mallorys.local_addr().unwrap().port();
        assert_eq!(user_of(&asked_before).unwrap(), Some(61_001));
        reset(mallorys);
        // Root has his port now; his connection is not root's.
        let [roots, accepted] = connection(&listener, 0, port);
        assert!(user_of(&asked_before).is_err());
        assert_eq!(user_of(&accepted).unwrap(), Some(0));

        // The same between the question and its answer, both ways.
        let mut next = None;
        let told = asked(&accepted, || {
            reset(roots);
            next = Some(connection(&listener, 61_002, port));
        });
        assert!(told.is_err(), "{told:?}");
        let [_theirs, accepted] = next.expect("it was made");
        assert_eq!(user_of(&accepted).unwrap(), Some(61_002));
    }

    #[test]
    fn other_addresses_than_the_loopback_are_nobodys() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let Some(own) = own_address() else { return };
        let stream = TcpStream::connect((own, listener.local_addr().unwrap().port())).unwrap();
        assert_eq!(user_of(&listener.accept().unwrap().0).unwrap(), None);
        drop(stream);
    }

    /// An address of this machine beside the loopback, if it has one.
    fn own_address() -> Option<IpAddr> {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
        // Nothing is sent; the kernel chooses an address.
        socket.connect("192.0.2.1:9").ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback())
    }
}
