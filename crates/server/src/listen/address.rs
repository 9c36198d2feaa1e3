//! An address as a person writes it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest path of a socket file, which the kernel's address has room for (unix(7)).
const MAX_PATH_BYTES: usize = 107;

/// Where a server listens: `127.0.0.1:9435`, `[::1]:9435`, `unix:/run/x.sock`, or `unix:x.sock`,
/// which is in the runtime directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A socket file; a relative path is in the runtime directory.
    Unix(PathBuf),
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is neither form.
    #[error("{0:?} is no address; write 127.0.0.1:PORT, [::1]:PORT or unix:PATH")]
    Form(String),
    /// The kernel takes no such path.
    #[error("the path {0:?} is empty or longer than the {MAX_PATH_BYTES} bytes of a socket's path")]
    Path(String),
}

// === impl Address ===

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            // Some write URLs: unix:///run/x.sock is /run/x.sock.
            let path = path.strip_prefix("//").unwrap_or(path);
            let bad = path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0');
            return if bad {
                Err(AddressError::Path(path.to_owned()))
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| AddressError::Form(text.to_owned()))
    }
}

impl Address {
    /// The port, if it is one.
    pub fn port(self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, MAX_PATH_BYTES};

    #[test]
    fn an_address_is_written_as_it_was_read() {
        for text in ["127.0.0.1:9435", "[::1]:80", "unix:/run/x.sock", "unix:x.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("unix:///run/x".parse(), Ok(Address::Unix("/run/x".into())));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("unix:/{}", "x".repeat(MAX_PATH_BYTES));
        for bad in ["", "9435", "localhost:9435", "127.0.0.1", "unix:", "unix:a\0b", "/a", &long] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
        // Programs with other ports of their own say this too.
        let reported = "9440".parse::<Address>().unwrap_err().to_string();
        let expected = r#""9440" is no address; write 127.0.0.1:PORT, [::1]:PORT or unix:PATH"#;
        assert_eq!(reported, expected);
    }
}
