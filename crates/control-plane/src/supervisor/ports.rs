//! The port for rank 0, held from when it is found until its epoch is over.
//!
//! Workers import for seconds before rank 0 listens. Meanwhile no other agent on this machine may take
//! the port, whatever its job or user: a name of the port in the kernel's abstract namespace, which is
//! as wide as that of ports, belongs to the one that holds it. And no other program is given it: the
//! port is bound, so that only those can bind it as well that ask for that (`SO_REUSEADDR`), as
//! PyTorch's store does, and as long as there is no listener.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as Name, UnixDatagram};

use tokio::net::TcpSocket;

use crate::random;
use telltale_cluster::message::Ports;

/// A port that is held for as long as this lives.
#[derive(Debug)]
pub struct HeldPort {
    port: NonZeroU16,
    /// No other agent has it.
    _name: UnixDatagram,
    /// No other program is given it.
    _socket: TcpSocket,
}

impl HeldPort {
    /// Finds a free port among `ports`, but not the last epoch's, which precedes their first. It
    /// begins anywhere: jobs that start together rarely meet, and an old rank of one rarely knocks
    /// at another's.
    #[must_use]
    pub fn find(ports: Ports) -> Option<Self> {
        candidates(ports, random::draw()).find_map(|port| Self::take(port).ok())
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> NonZeroU16 {
        self.port
    }

    fn take(port: NonZeroU16) -> io::Result<Self> {
        let name = Name::from_abstract_name(format!("telltale/port/{port}"))?;
        let name = UnixDatagram::bind_addr(&name)?;
        Ok(Self { port, _name: name, _socket: bind(port)? })
    }
}

/// Every port of the range but the one before the first, from one that `random` chooses.
fn candidates(ports: Ports, random: u64) -> impl Iterator<Item = NonZeroU16> {
    let (least, greatest) = (ports.least.get(), ports.greatest.get());
    let count = u64::from(greatest.saturating_sub(least)) + 1;
    let first = u64::from(ports.first.get().saturating_sub(least));
    let others = (count - 1).max(1);
    (0..others).filter_map(move |index| {
        let place = (first + (random % others + index) % others) % count;
        NonZeroU16::new(least.checked_add(u16::try_from(place).ok()?)?)
    })
}

/// Binds all of this machine's addresses, as PyTorch's store does: no other may have the port, and
/// then others may share it on request.
fn bind(port: NonZeroU16) -> io::Result<TcpSocket> {
    let both = |socket: TcpSocket, address: SocketAddr| {
        socket.bind(address)?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        Ok(socket)
    };
    // With IPv6 this is for IPv4 as well.
    let six = TcpSocket::new_v6()
        .and_then(|socket| both(socket, (Ipv6Addr::UNSPECIFIED, port.get()).into()));
    match six {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            both(TcpSocket::new_v4()?, (Ipv4Addr::UNSPECIFIED, port.get()).into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    fn range(first: u16, least: u16, greatest: u16) -> Ports {
        let port = |number| NonZeroU16::new(number).unwrap();
        Ports { first: port(first), least: port(least), greatest: port(greatest) }
    }

    /// A port that is free, as far as can be known.
    fn free() -> NonZeroU16 {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        NonZeroU16::new(listener.local_addr().unwrap().port()).unwrap()
    }

    #[test]
    fn a_port_that_somebody_listens_to_is_not_free() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = NonZeroU16::new(listener.local_addr().unwrap().port()).unwrap();
            assert!(HeldPort::take(port).is_err(), "{address}");
            drop(listener);
            assert!(HeldPort::take(port).is_ok(), "{address}");
        }
    }

    #[test]
    fn a_held_port_is_for_rank_0_alone() {
        let port = free();
        let held = HeldPort::take(port).unwrap();
        assert_eq!(held.port(), port);
        assert!(HeldPort::take(port).is_err(), "no other agent gets it");
        let plain = TcpSocket::new_v4().unwrap();
        plain.bind((Ipv4Addr::LOCALHOST, port.get()).into()).unwrap_err();
        // Rust's listener sets `SO_REUSEADDR`, as PyTorch's store does.
        let rank_0 = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.get())).unwrap();
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.get())).unwrap_err();
        assert!(HeldPort::take(port).is_err());
        drop((held, rank_0));
        assert!(HeldPort::take(port).is_ok());
    }

    #[test]
    fn every_port_but_the_last_epoch_s_is_tried_once() {
        for (ports, last) in [(range(7, 5, 9), 6), (range(5, 5, 9), 9), (range(9, 5, 9), 8)] {
            for random in [0, 1, 3, 4, u64::MAX] {
                let tried: Vec<u16> = candidates(ports, random).map(NonZeroU16::get).collect();
                let mut expected: BTreeSet<u16> = (5..=9).collect();
                expected.remove(&last);
                assert_eq!(tried.len(), 4);
                assert_eq!(tried.into_iter().collect::<BTreeSet<u16>>(), expected);
            }
        }
        assert_eq!(candidates(range(65_535, 65_535, 65_535), 9).count(), 1);
    }
}
