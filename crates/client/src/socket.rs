//! The service of this machine at its socket file, and whether the file can be trusted.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_ledger::directory::{DirectoryEnvironment, OVERFLOW_UID, RuntimeDirectory};
use telltale_wire::TELEMETRY_SOCKET;
use tonic::transport::{Channel, Endpoint};

use crate::connector::kept_alive;
use crate::error::ConnectError;

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

/// The connection to the service at the socket `path`.
///
/// The socket must belong to root, to this process's user or to the owner of its directory. In a
/// directory as the installation makes it no other user can put another in its place afterwards.
pub(crate) async fn channel(path: &Path) -> Result<Channel, ConnectError> {
    let missing = |source| ConnectError::Missing { path: path.into(), source };
    let uid = std::fs::symlink_metadata(path).map_err(missing)?.uid();
    let directory = path.parent().unwrap_or(Path::new("/"));
    let owner = std::fs::metadata(directory).map_err(missing)?.uid();
    let own = rustix::process::geteuid().as_raw();
    if uid == OVERFLOW_UID || ![0, own, owner].contains(&uid) {
        return Err(ConnectError::Stranger { path: path.into(), uid });
    }
    let unfit = || ConnectError::UnfitPath { path: path.into() };
    let address = format!("unix:{}", path.to_str().ok_or_else(unfit)?);
    let endpoint = kept_alive(Endpoint::from_shared(address).map_err(|_| unfit())?);
    let channel = endpoint.connect_timeout(CONNECT_TIMEOUT).connect().await;
    channel.map_err(|source| ConnectError::Silent { path: path.into(), source })
}
