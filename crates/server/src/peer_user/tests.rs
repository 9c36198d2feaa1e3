use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::unix::fs::fchown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, SocketType};
use telltale_harness::{needs_root, wait_until};

use super::*;

const DEADLINE: Duration = Duration::from_secs(10);

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// The user by the kernel's answers, as everywhere here.
fn user(socket: &TcpStream) -> io::Result<Option<u32>> {
    run(user_of(socket))
}

/// The user by the kernel's table.
fn user_in_table(socket: &TcpStream) -> io::Result<u32> {
    run(LoopbackConnection::of(socket)?.unwrap().looked_up(socket))
}

/// A connection with a process of a user, which lasts as long as the process.
fn connect_as(user: u32, listener: &TcpListener) -> (TcpStream, Child) {
    let address = listener.local_addr().unwrap();
    let mut command = Command::new("bash");
    let script = format!("exec 3<>/dev/tcp/{}/{}; read line", address.ip(), address.port());
    command.args(["-c", &script]).stdin(Stdio::piped()).uid(user);
    let child = command.spawn().unwrap();
    (listener.accept().unwrap().0, child)
}

#[test]
fn the_user_of_each_caller_is_known_by_both_ways() {
    if !needs_root("peer_user::the_user_of_each_caller_is_known_by_both_ways") {
        return;
    }
    assert_eq!(PeerSource::find().unwrap(), PeerSource::Questions);
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let listener = TcpListener::bind(address).unwrap();
        for caller in [61_001, 0, 61_002] {
            let (stream, mut child) = connect_as(caller, &listener);
            assert_eq!(user(&stream).unwrap(), Some(caller), "{address}");
            assert_eq!(user_in_table(&stream).unwrap(), caller, "{address}");
            let LoopbackConnection { local, remote, .. } =
                LoopbackConnection::of(&stream).unwrap().unwrap();
            let known = [(remote, local), (local, remote)];
            let known = known.map(|(one, other)| asked(one, other).unwrap());
            assert_eq!(table::find([remote, local], [local, remote]).unwrap(), known, "{address}");
            drop(stream);
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}

#[test]
fn what_cannot_be_asked_is_looked_up_only_where_the_kernel_has_no_answers() {
    for (answer, expected) in [
        (Ok(()), Some(PeerSource::Questions)),
        (Err(Errno::PROTONOSUPPORT), Some(PeerSource::Table)),
        (Err(Errno::NOENT), Some(PeerSource::Table)),
        // systemd's RestrictAddressFamilies= and its SystemCallErrorNumber=; a security module.
        (Err(Errno::AFNOSUPPORT), Some(PeerSource::Refused)),
        (Err(Errno::PERM), Some(PeerSource::Refused)),
        (Err(Errno::ACCESS), Some(PeerSource::Refused)),
        (Err(Errno::MFILE), None),
    ] {
        assert_eq!(PeerSource::by(answer).ok(), expected, "{answer:?}");
    }
}

#[test]
fn no_user_is_known_for_a_socket_that_is_closed_or_only_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accepted = listener.accept().unwrap().0;
    assert!(user(&accepted).is_ok() && user_in_table(&accepted).is_ok());
    let [own, mut other] = [stream.local_addr().unwrap(); 2];
    other.set_port(1);
    for (local, remote) in [(other, own), (own, other)] {
        assert!(asked(remote, local).is_err(), "{local} {remote}");
        assert!(table::find([remote, local], [local, remote]).is_err(), "{local} {remote}");
    }
    drop(stream);
    // A process that another test starts has it too, until it executes its program.
    wait_until("no user to be known", DEADLINE, || user(&accepted).is_err());
    assert!(user_in_table(&accepted).is_err());
}

#[test]
fn a_caller_that_has_sent_all_it_will_is_known_and_one_that_has_closed_is_not() {
    if !needs_root("peer_user::a_caller_that_has_sent_all_it_will_is_known") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        let [caller, accepted] = connection(&listener, 61_001, 0);
        caller.shutdown(Shutdown::Write).unwrap();
        assert_eq!(user(&accepted).unwrap(), Some(61_001));
        assert_eq!(user_in_table(&accepted).unwrap(), 61_001);
        // What it leaves has no inode, and in some tables user 0.
        drop(caller);
        wait_until("no user to be known", DEADLINE, || user(&accepted).is_err());
        assert!(user_in_table(&accepted).is_err());
    }
}

/// A connection whose client's socket belongs to `user`, from `port` or any. Another program may have
/// the port for a moment.
fn connection(listener: &TcpListener, user: u32, port: u16) -> [TcpStream; 2] {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    fchown(&socket, Some(user), None).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    wait_until("the port to be free", DEADLINE, || rustix::net::bind(&socket, &address).is_ok());
    rustix::net::connect(&socket, &listener.local_addr().unwrap()).unwrap();
    [TcpStream::from(socket), listener.accept().unwrap().0]
}

/// Ends a connection without a word to wait for, so that its port is free at once.
fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}

#[test]
fn a_port_that_is_closed_and_used_again_is_not_taken_for_the_earlier_caller() {
    if !needs_root("peer_user::a_port_that_is_closed_and_used_again") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Also one that has sent all before.
    for is_half_closed in [false, true] {
        let [mallorys, asked_before] = connection(&listener, 61_001, 0);
        let port = mallorys.local_addr().unwrap().port();
        if is_half_closed {
            mallorys.shutdown(Shutdown::Write).unwrap();
        }
        assert_eq!(user(&asked_before).unwrap(), Some(61_001));
        let known = LoopbackConnection::of(&asked_before).unwrap().unwrap();
        reset(mallorys);
        // Root has his port now; his connection is not root's.
        let [roots, accepted] = connection(&listener, 0, port);
        assert!(user(&asked_before).is_err());
        assert!(known.asked(|| {}).is_err());
        assert!(run(known.looked_up(&asked_before)).is_err());
        assert_eq!(user(&accepted).unwrap(), Some(0));

        // The same between the question and its answer, both ways.
        let mut next = None;
        let asked = LoopbackConnection::of(&accepted).unwrap().unwrap().asked(|| {
            reset(roots);
            next = Some(connection(&listener, 61_002, port));
        });
        assert!(asked.is_err(), "{asked:?}");
        let [_theirs, accepted] = next.expect("it was made");
        assert_eq!(user(&accepted).unwrap(), Some(61_002));
    }
}

#[test]
fn other_addresses_than_the_loopback_are_no_users() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let Some(own) = own_address() else { return };
    let stream = TcpStream::connect((own, listener.local_addr().unwrap().port())).unwrap();
    assert_eq!(user(&listener.accept().unwrap().0).unwrap(), None);
    drop(stream);
}

/// An address of this machine beside the loopback, if it has one.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent; the kernel chooses an address.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback())
}
