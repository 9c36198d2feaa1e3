//! What can be configured of HTTP, and which combinations are refused.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::access::AccessPolicy;
use crate::listen::Address;
use crate::samples::SampleOptions;

/// The port by default. Exporters of accelerators are around 9400, this one is not known to be
/// anybody's, and it is below the range from which the kernel takes ports for clients.
pub const DEFAULT_PORT: u16 = 9435;

/// The table `[http]` of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpOptions {
    /// Where to listen; nowhere when it is empty.
    pub listen: Vec<Address>,
    /// Names by which browsers and scrapers may call a TCP port, besides numeric addresses,
    /// `localhost` and this machine's name.
    pub hosts: Vec<String>,
    /// Whether a port that other machines reach may be served without a token. It then shows
    /// devices, and no processes, to everybody who reaches it.
    pub public: bool,
    /// Connections at a time.
    pub connections: usize,
    /// Streams of snapshots at a time.
    pub streams: usize,
    /// How many series `/metrics` may have.
    pub series: SampleOptions,
}

/// A combination that is refused.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Everybody on the network would be shown the devices, which must be asked for.
    #[error(
        "other machines reach {address}, and there is no token; configure a token file, listen on \
         127.0.0.1 or a Unix socket, or set http.public to show devices without processes to all"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            listen: vec![Address::Tcp((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into())],
            hosts: Vec::new(),
            public: false,
            connections: 128,
            streams: 32,
            series: SampleOptions::default(),
        }
    }
}

impl HttpOptions {
    /// Checks a port that shall be served.
    pub(super) fn check(
        &self,
        address: SocketAddr,
        policy: &AccessPolicy,
    ) -> Result<(), OptionsError> {
        if address.ip().to_canonical().is_loopback() || self.public || policy.has_token() {
            return Ok(());
        }
        Err(OptionsError::Exposed { address })
    }
}
