//! Which user of this machine has the other end of a TCP connection over the loopback.
//!
//! The kernel is asked for the one socket with the two addresses (`sock_diag(7)`), or, where it was
//! built without that, its table of sockets is read. Nothing here decides who may do what.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_timeout;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
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
/// (`linux/inet_diag.h`), which have the socket's identity at these places.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const ANSWER_BYTES: usize = HEADER_BYTES + 72;
const ASKED_SOCKET: Range<usize> = 24..72;
const FOUND_SOCKET: Range<usize> = 20..68;
/// What of the identity are the ports and addresses; behind it are an interface and a cookie.
const ADDRESSES_BYTES: usize = 36;
/// Where the answer has the user.
const USER: Range<usize> = 80..84;
/// How long the kernel may take, which answers at once.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
/// Bytes of the table of sockets that are read: a hundred thousand connections.
const MAX_TABLE_BYTES: u64 = 16 << 20;

/// The user who has the socket at `remote` that is connected with ours at `local`, both on this machine.
///
/// # Errors
/// When there is no such socket any more, or the kernel does not tell.
pub fn user_of(local: SocketAddr, remote: SocketAddr) -> io::Result<u32> {
    // A socket of both families knows a caller of the older one by a mapped address; the caller's own
    // socket is of the older one.
    let [local, remote] =
        [local, remote].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
    // "No such file" is its answer in both cases: no such socket, or nobody there to ask.
    ask(local, remote).or_else(|_| look_up(local, remote))
}

fn ask(local: SocketAddr, remote: SocketAddr) -> io::Result<u32> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(PATIENCE))?;
    let request = request(local, remote);
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // Its attributes, which were not asked for, would be cut.
    let mut answer = [0; ANSWER_BYTES];
    recv(&socket, &mut answer, RecvFlags::empty())?;
    user_in(&answer, &request[ASKED_SOCKET])
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

/// The user in an answer about the socket that was asked for. Without one, the kernel answers with
/// whoever listens there.
fn user_in(answer: &[u8; ANSWER_BYTES], asked: &[u8]) -> io::Result<u32> {
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    if kind == ERROR {
        let mut code = [0; 4];
        code.copy_from_slice(&answer[16..20]);
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(code).saturating_neg());
        return Err(error);
    }
    let is_it = answer[FOUND_SOCKET][..ADDRESSES_BYTES] == asked[..ADDRESSES_BYTES];
    if kind != BY_FAMILY || answer[17] != ESTABLISHED || !is_it {
        return Err(gone());
    }
    let mut user = [0; 4];
    user.copy_from_slice(&answer[USER]);
    Ok(u32::from_ne_bytes(user))
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the caller's socket is not connected any more")
}

/// The same from `/proc/net/tcp` or `/proc/net/tcp6` (`proc_net_tcp.rst` in the kernel's documentation).
fn look_up(local: SocketAddr, remote: SocketAddr) -> io::Result<u32> {
    let path = if remote.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let wanted = [in_table(remote), in_table(local)];
    for line in BufReader::new(File::open(path)?.take(MAX_TABLE_BYTES)).lines() {
        let line = line?;
        let fields: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
        let [_, from, to, state, _, _, _, user] = fields[..] else { continue };
        if [from, to] == wanted && u8::from_str_radix(state, 16) == Ok(ESTABLISHED) {
            return user.parse().map_err(|_| gone());
        }
    }
    Err(gone())
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
                assert_eq!(user_of(local, remote).unwrap(), user, "{address}");
                let ends = [local, remote].map(|end| (end.ip().to_canonical(), end.port()).into());
                assert_eq!(ask(ends[0], ends[1]).unwrap(), user, "{address}");
                assert_eq!(look_up(ends[0], ends[1]).unwrap(), user, "{address}");
                drop(stream);
                drop(child.stdin.take());
                child.wait().unwrap();
            }
        }
    }

    #[test]
    fn nobody_is_told_for_a_socket_that_only_listens_or_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        let stream = TcpStream::connect(listening).unwrap();
        let (ours, accepted) = (stream.local_addr().unwrap(), listener.accept().unwrap().0);
        assert!(user_of(listening, ours).is_ok());
        let mut other = ours;
        other.set_port(1);
        for (local, remote) in [(other, listening), (listening, other)] {
            assert!(user_of(local, remote).is_err(), "{local} {remote}");
            assert!(look_up(local, remote).is_err(), "{local} {remote}");
        }
        drop(stream);
        // A process that another test starts has it too, until it is the program that it is to be.
        let patience = std::time::Duration::from_secs(10);
        telltale_harness::wait_until("nobody to be told", patience, || {
            user_of(listening, ours).is_err()
        });
        drop(accepted);
    }
}
