//! Where the node's agent listens: on a Unix socket or on the loopback, nowhere else.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use thiserror::Error;

/// Where a post goes when nothing is said: the original's address.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);

/// An agent's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of this machine.
    Loopback(SocketAddr),
}

/// Why an address is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum AddressRefused {
    #[error("it is neither unix:/PATH nor an address with a port, such as 127.0.0.1:8081")]
    Unreadable,
    #[error("it is not on this host; what NCCL does is reported to the node's own agent only")]
    Elsewhere,
}

impl Address {
    /// Reads `unix:/PATH`, `ADDRESS:PORT` or `http://ADDRESS:PORT/…`; nothing stands for the original's
    /// port. No name but `localhost` is resolved.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressRefused> {
        if text.is_empty() {
            return Ok(Self::Loopback(DEFAULT));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let absolute = path.starts_with('/');
            return if absolute {
                Ok(Self::Unix(path.into()))
            } else {
                Err(AddressRefused::Unreadable)
            };
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let place = rest.split('/').next().unwrap_or(rest);
        let place = place.replacen("localhost:", "127.0.0.1:", 1);
        let address: SocketAddr = place.parse().map_err(|_| AddressRefused::Unreadable)?;
        if address.ip().is_loopback() {
            Ok(Self::Loopback(address))
        } else {
            Err(AddressRefused::Elsewhere)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_read_and_others_refused() {
        let port = |text: &str| Ok(Address::Loopback(text.parse().unwrap()));
        for (text, expected) in [
            ("", port("127.0.0.1:8081")),
            ("unix:/run/telltale/agent.sock", Ok(Address::Unix("/run/telltale/agent.sock".into()))),
            ("unix:///run/a", Ok(Address::Unix("/run/a".into()))),
            ("127.0.0.9:1", port("127.0.0.9:1")),
            ("[::1]:80", port("[::1]:80")),
            ("http://localhost:8081/log_ccl", port("127.0.0.1:8081")),
            ("192.0.2.1:80", Err(AddressRefused::Elsewhere)),
            ("unix:relative", Err(AddressRefused::Unreadable)),
            ("8081", Err(AddressRefused::Unreadable)),
            ("agent:8081", Err(AddressRefused::Unreadable)),
        ] {
            assert_eq!(Address::parse(text), expected, "{text:?}");
        }
    }
}
