//! The allocation server's protocol, for programs that still speak it: what they report is shown as
//! processes that are marked legacy.
//!
//! A message's form is recognized before it is trusted ([`framing`]), the process is the one that the
//! kernel says is connected, and what it has goes with its connection or its end. Nothing here
//! reads a workload's memory or waits for one.

mod answers;
mod book;
mod framing;
mod message;
mod passing_on;
mod peer;
mod roster;
mod serving;

use std::future::Future;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::service::Control;
use serving::Serving;
use telltale_server::listen::Listener;

pub use passing_on::PassingOn;
pub use roster::Roster;
pub use telltale_collector::sockets::LEGACY_CLIENTS as SOCKET_NAME;

/// The table `[legacy]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LegacyOptions {
    /// The allocation server's socket, at which its clients report; nowhere when it is not set.
    /// Unchanged clients look at `/tmp/tt_allocation_server.sock`.
    pub socket: Option<PathBuf>,
}

/// The sockets of the protocol; no client is served yet.
#[derive(Debug)]
pub struct LegacyService {
    listeners: Vec<UnixListener>,
    roster: Roster,
}

/// Why there is no serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A TCP port has no processes at its other end.
    #[error("the legacy protocol needs a Unix socket; give it ListenStream= with a path")]
    NotUnix,
    /// A listening socket cannot be used.
    #[error("the legacy socket cannot be listened on")]
    Listen(#[source] io::Error),
}

/// How long no client is accepted after accepting failed, as it does while descriptors are short.
const PAUSE_AFTER_FAILURE: std::time::Duration = std::time::Duration::from_millis(200);

/// These as Unix sockets, which they must be.
fn unix(listeners: Vec<Listener>) -> Result<Vec<UnixListener>, ServeError> {
    let unix = listeners.into_iter().map(|listener| match listener {
        Listener::Unix(listener) => Ok(listener),
        Listener::Tcp(_) => Err(ServeError::NotUnix),
    });
    unix.collect()
}

// === impl LegacyService ===

impl LegacyService {
    /// A service on these sockets, whose clients are in `roster`.
    ///
    /// # Errors
    /// When one is no Unix socket.
    pub fn new(listeners: Vec<Listener>, roster: Roster) -> Result<Self, ServeError> {
        let listeners = unix(listeners)?;
        roster.open();
        Ok(Self { listeners, roster })
    }

    /// Serves until `stop` ends. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When a socket cannot be listened on.
    pub async fn serve(
        self,
        control: Control,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        serving::serve(self.listeners, Serving { roster: self.roster, control }, stop).await
    }
}
