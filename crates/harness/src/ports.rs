//! Ports for programs that are started later.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that Linux gives to those who ask for any (32768 and up): one of those may be another
/// program's before the one that it was meant for has begun.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port on which nothing listens, and which nothing is given by chance.
///
/// # Panics
/// When every one is taken.
#[must_use]
pub fn port_for_later() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at once begin at different ones.
    let begin = u16::try_from(std::process::id() * 61 % u32::from(COUNT)).expect("it is less");
    for _ in 0..COUNT {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = (u32::from(begin) + u32::from(next)) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("it is less");
        // The second one where there is no IPv6.
        let places = [
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        ];
        if TcpListener::bind(&places[..]).is_ok() {
            return port;
        }
    }
    panic!("ports {FIRST} to {} are all taken", FIRST + COUNT);
}
