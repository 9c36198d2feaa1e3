//! An address to call, as a person writes it: unlike where a server listens, it may be a name.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The longest path of a socket file, which the kernel's address has room for (unix(7)).
const MAX_PATH_BYTES: usize = 107;

/// Where a service is called: `unix:PATH`, `ADDRESS:PORT` or `NAME:PORT`.
///
/// ```
/// use telltale_client::ServiceAddress;
///
/// let address: ServiceAddress = "node7:9436".parse()?;
/// assert_eq!(address, ServiceAddress::Port(String::from("node7:9436")));
/// # Ok::<(), telltale_client::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceAddress {
    /// A socket file.
    Unix(PathBuf),
    /// A port: host and number with a colon between them.
    Port(String),
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has neither form.
    #[error("{0:?} is no address; write NAME:PORT, 127.0.0.1:PORT, [::1]:PORT or unix:PATH")]
    Form(String),
    /// The kernel takes no such path.
    #[error("the path {0:?} is empty or longer than the {MAX_PATH_BYTES} bytes of a socket's path")]
    Path(String),
}

// === impl ServiceAddress ===

impl ServiceAddress {
    /// Whether it is on this machine for certain.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let Self::Port(port) = self else { return true };
        let host = port.rsplit_once(':').map_or(port.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for ServiceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            // Some write URLs: unix:///run/x.sock is /run/x.sock.
            let path = path.strip_prefix("//").unwrap_or(path);
            let is_bad = path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0');
            return match is_bad {
                true => Err(AddressError::Path(path.to_owned())),
                false => Ok(Self::Unix(path.into())),
            };
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self::Port(address.to_string()));
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

impl fmt::Display for ServiceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Port(port) => formatter.write_str(port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PATH_BYTES, ServiceAddress};

    #[test]
    fn an_address_is_a_socket_file_an_address_or_a_name() {
        for text in ["unix:/run/x.sock", "127.0.0.1:9436", "[::1]:80", "node-7.lab_a:9436"] {
            assert_eq!(text.parse::<ServiceAddress>().unwrap().to_string(), text);
        }
        assert_eq!("unix:///run/x".parse(), Ok(ServiceAddress::Unix("/run/x".into())));
        let long = format!("unix:/{}", "x".repeat(MAX_PATH_BYTES));
        for bad in [
            "",
            "9436",
            ":9436",
            "node7",
            "node7:",
            "node7:x",
            "http://a:1",
            "a b:1",
            "unix:",
            &long,
        ] {
            assert!(bad.parse::<ServiceAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_this_machine_is_here() {
        let is_here = |text: &str| text.parse::<ServiceAddress>().unwrap().is_here();
        for here in ["unix:/run/x.sock", "localhost:1", "127.0.0.9:1", "[::1]:1"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in ["node7:1", "10.0.0.7:1", "localhost.lab:1", "[fe80::1]:1"] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
