//! A client of the service on this machine, which makes sure whose service it is.

use std::error::Error;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_ledger::directory::OVERFLOW_UID;
use telltale_wire::telemetry::Client;
use tonic::transport::{Channel, Endpoint};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a connection over which nothing comes is tried, and how long the answer may take: a stream of a
/// service that is stopped would not end.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));

/// Why there is no service to ask.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing is at the path.
    #[error("no service at {path}; start one with `telltale serve`")]
    Missing {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The socket belongs to someone who could lie.
    #[error(
        "{path} belongs to user {uid}, who is neither root, nor you, nor the owner of the directory"
    )]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// No answer.
    #[error("no service answers at {path}; start one with `telltale serve`")]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: tonic::transport::Error,
    },
    /// The path cannot be written as a gRPC address.
    #[error("the path {path} is no address for gRPC; use one of printable ASCII characters")]
    Unfit {
        /// The socket.
        path: PathBuf,
    },
}

// === impl ConnectError ===

impl ConnectError {
    /// Whether nothing at all is at the path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether a socket is at the path and no process listens on it: a service that was killed leaves it.
    pub fn is_left_behind(&self) -> bool {
        let Self::Silent { path, source } = self else { return false };
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
        let causes = std::iter::successors(source.source(), |error| (*error).source());
        let mut of_the_system = causes.filter_map(<dyn Error>::downcast_ref::<io::Error>);
        is_socket && of_the_system.any(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

/// Connects to the service at the socket `path`. Needs a tokio runtime with I/O and time.
///
/// The socket must belong to root, to this process's user or to the owner of its directory. In a
/// directory as the installation makes it no other user can put another in its place afterwards.
///
/// # Errors
/// When there is no answer, or one of another user.
pub async fn connect(path: &Path) -> Result<Client, ConnectError> {
    Ok(Client::new(channel(path).await?))
}

/// The connection of [`connect`].
pub(super) async fn channel(path: &Path) -> Result<Channel, ConnectError> {
    let missing = |source| ConnectError::Missing { path: path.into(), source };
    let uid = std::fs::symlink_metadata(path).map_err(missing)?.uid();
    let directory = path.parent().unwrap_or(Path::new("/"));
    let owner = std::fs::metadata(directory).map_err(missing)?.uid();
    let own = rustix::process::geteuid().as_raw();
    if uid == OVERFLOW_UID || ![0, own, owner].contains(&uid) {
        return Err(ConnectError::Stranger { path: path.into(), uid });
    }
    let unfit = || ConnectError::Unfit { path: path.into() };
    let address = format!("unix:{}", path.to_str().ok_or_else(unfit)?);
    let endpoint = Endpoint::from_shared(address).map_err(|_| unfit())?;
    let (interval, timeout) = KEEP_ALIVE;
    let endpoint = endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(timeout);
    let channel = endpoint.connect_timeout(CONNECT_TIMEOUT).connect().await;
    channel.map_err(|source| ConnectError::Silent { path: path.into(), source })
}
