//! An address to call, as a person writes it: unlike where a server listens, it may be a name.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Address, AddressError};

/// Where a server is called: `unix:PATH`, `ADDRESS:PORT` or `NAME:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remote {
    /// A socket file.
    Unix(PathBuf),
    /// A port: host and number with a colon between them.
    Port(String),
}

// === impl Remote ===

impl Remote {
    /// Whether it is on this machine for certain.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let Self::Port(port) = self else { return true };
        let host = port.rsplit_once(':').map_or(port.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Remote {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.parse() {
            Ok(Address::Unix(path)) => return Ok(Self::Unix(path)),
            Ok(Address::Tcp(address)) => return Ok(Self::Port(address.to_string())),
            Err(error @ AddressError::Path(_)) => return Err(error),
            Err(AddressError::Form(_)) => {}
        }
        let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_port = |(host, port): &(&str, &str)| {
            !host.is_empty() && host.bytes().all(is_of_names) && port.parse::<u16>().is_ok()
        };
        match text.rsplit_once(':').filter(is_port) {
            Some(_) => Ok(Self::Port(text.to_owned())),
            None => Err(AddressError::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Port(port) => formatter.write_str(port),
        }
    }
}
