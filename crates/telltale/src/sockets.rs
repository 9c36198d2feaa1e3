//! The sockets at which a service of this machine may be.

use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_client::usual_sockets;

use crate::arguments::LocationArguments;

/// How long a service of this machine may take to answer a person.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// What is said of a service that took longer, and what to do.
pub(crate) fn late(socket: &Path) -> String {
    let (socket, most) = (socket.display(), TIMEOUT.as_secs());
    format!(
        "the service at {socket} did not answer within {most} s; `systemctl status telltale` shows \
         whether it runs, `telltale doctor` what is wrong"
    )
}

/// The sockets to try, in this order; there may be none at their paths.
pub(crate) fn sockets(place: &LocationArguments) -> Vec<PathBuf> {
    usual_sockets(place.runtime_dir.as_deref(), place.root.as_deref())
}
