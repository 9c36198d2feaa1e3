//! Whether a port is free for rank 0.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::num::NonZeroU16;

/// Whether a listener can be bound to `port` on all of this machine's addresses, as PyTorch's store
/// does.
#[must_use]
pub fn is_free(port: NonZeroU16) -> bool {
    let addresses: [SocketAddr; 2] =
        [(Ipv6Addr::UNSPECIFIED, port.get()).into(), (Ipv4Addr::UNSPECIFIED, port.get()).into()];
    // With IPv6 the first is for IPv4 as well, and the second is then in its way; without, the
    // second alone says.
    match addresses.map(TcpListener::bind) {
        [Ok(_), _] => true,
        [Err(error), second] => error.kind() != ErrorKind::AddrInUse && second.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_somebody_listens_to_is_not_free() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = NonZeroU16::new(listener.local_addr().unwrap().port()).unwrap();
            assert!(!is_free(port), "{address}");
            drop(listener);
            assert!(is_free(port), "{address}");
        }
    }
}
