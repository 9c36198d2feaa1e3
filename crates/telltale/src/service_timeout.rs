//! How long a service of this machine may take.

use std::path::Path;
use std::time::Duration;

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
