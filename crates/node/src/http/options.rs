//! What can be configured of HTTP, and which combinations are refused.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::samples::SampleOptions;
use telltale_server::door::{TlsError, TlsFiles};
use telltale_server::listen::Address;

/// The port by default. Exporters of accelerators are around 9400, this one is not known to be
/// anybody's, and it is below the range from which the kernel takes ports for clients.
pub const DEFAULT_PORT: u16 = 9435;

/// Connections at a time by default.
const MOST_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(128).expect("not 0");

/// What a time to wait for a client may be, in seconds.
const TIMEOUT_SECONDS: RangeInclusive<f64> = 1.0..=600.0;

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
    /// A PEM file with the server's certificate and those that lead to its authority; ports speak TLS with it, socket
    /// files do not.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// A PEM file with the authority whose certificates clients must have; they see everything.
    pub client_authority: Option<PathBuf>,
    /// Connections at a time.
    pub connections: NonZeroUsize,
    /// Streams of snapshots at a time.
    pub streams: usize,
    /// How many seconds a client may take for the head of a request, and how long a connection may
    /// be without one. By default longer than Prometheus waits between scrapes.
    #[serde(deserialize_with = "timeout")]
    pub head_seconds: f64,
    /// How many seconds a client may take nothing of its answer.
    #[serde(deserialize_with = "timeout")]
    pub stall_seconds: f64,
    /// How many series `/metrics` may have.
    pub series: SampleOptions,
}

/// A combination that is refused.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Everybody on the network would be shown the devices, which must be asked for.
    #[error(
        "other machines reach {address}, and there is no token; configure a token file or http.client_authority, listen on \
         127.0.0.1 or a Unix socket, or set http.public to show devices without processes to all"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
    /// The files of TLS do not hold what they should, or do not belong together.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            listen: vec![Address::Tcp((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into())],
            hosts: Vec::new(),
            public: false,
            certificate: None,
            key: None,
            client_authority: None,
            connections: MOST_CONNECTIONS,
            streams: 32,
            head_seconds: 20.0,
            stall_seconds: 15.0,
            series: SampleOptions::default(),
        }
    }
}

impl HttpOptions {
    /// Checks a port that shall be served, by a service with a token or without.
    pub(crate) fn check(&self, address: SocketAddr, has_token: bool) -> Result<(), OptionsError> {
        let knows = has_token || self.client_authority.is_some();
        if address.ip().to_canonical().is_loopback() || self.public || knows {
            return Ok(());
        }
        Err(OptionsError::Exposed { address })
    }

    /// The files that TLS needs; none where TLS is not asked for.
    ///
    /// # Errors
    /// When one is named without what belongs to it.
    pub fn tls_files(&self) -> Result<Option<TlsFiles>, TlsError> {
        let Self { certificate, key, client_authority, .. } = self;
        TlsFiles::named(certificate.as_deref(), key.as_deref(), client_authority.as_deref())
    }
}

/// Reads a time to wait for a client.
fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?;
    if TIMEOUT_SECONDS.contains(&seconds) {
        return Ok(seconds);
    }
    let (least, most) = (TIMEOUT_SECONDS.start(), TIMEOUT_SECONDS.end());
    Err(D::Error::custom(format!("{seconds} is not from {least} to {most} seconds")))
}
