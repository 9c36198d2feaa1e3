//! The service of this machine at its socket file, and whether the file can be trusted.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_ledger::directory::{
    DirectoryEnvironment, OVERFLOW_UID, RuntimeDirectory, has_own_users,
};
use telltale_wire::TELEMETRY_SOCKET;
use tonic::transport::{Channel, Endpoint};

use crate::error::ConnectError;

/// How often a connection over which nothing comes is tried, and how long the answer may take: a stream of a
/// service that is stopped would not end.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));
/// How long connecting to a socket file may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The sockets at which a service of this machine may be, to be tried in this order; there may be none
/// at their paths. They are in `runtime_dir`, else in the runtime directories of the machine whose files
/// are below `root`, else in those of this process's environment.
#[must_use]
pub fn usual_sockets(runtime_dir: Option<&Path>, root: Option<&Path>) -> Vec<PathBuf> {
    let root = root.filter(|root| *root != Path::new("/"));
    let environment = DirectoryEnvironment::of_this_process();
    RuntimeDirectory::for_reading(runtime_dir, root, &environment)
        .into_iter()
        .flatten()
        .map(|directory| directory.path().join(TELEMETRY_SOCKET))
        .collect()
}

/// Whose the socket file `path` is, if that is a user who could lie: neither root nor this process's user, nor the
/// owner of its directory, who could replace it anyhow. In a directory as the installation makes it no other user
/// can put another in its place afterwards.
///
/// # Errors
/// When there is no such file, or it cannot be looked at.
pub fn stranger(path: &Path) -> io::Result<Option<u32>> {
    let uid = std::fs::symlink_metadata(path)?.uid();
    let parent = path.parent().unwrap_or(Path::new("/"));
    // A name alone is in the working directory.
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let owner = std::fs::metadata(parent)?.uid();
    let own = rustix::process::geteuid().as_raw();
    // It may be any user, but where all have their own numbers.
    let is_known = uid != OVERFLOW_UID || (uid == own && has_own_users());
    Ok((!is_known || ![0, own, owner].contains(&uid)).then_some(uid))
}

/// The connection to the service at the socket `path`, which is none of a [`stranger`]'s.
pub(crate) async fn channel(path: &Path) -> Result<Channel, ConnectError> {
    let missing = |source| ConnectError::Missing { path: path.into(), source };
    if let Some(uid) = stranger(path).map_err(missing)? {
        return Err(ConnectError::Stranger { path: path.into(), uid });
    }
    let unfit = || ConnectError::UnfitPath { path: path.into() };
    let address = format!("unix:{}", path.to_str().ok_or_else(unfit)?);
    let endpoint = kept_alive(Endpoint::from_shared(address).map_err(|_| unfit())?);
    let channel = endpoint.connect_timeout(CONNECT_TIMEOUT).connect().await;
    channel.map_err(|source| ConnectError::Silent { path: path.into(), source })
}

/// The same connection, tried while nothing comes over it and an answer is awaited.
pub(crate) fn kept_alive(endpoint: Endpoint) -> Endpoint {
    let (interval, timeout) = KEEP_ALIVE;
    endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(timeout)
}
