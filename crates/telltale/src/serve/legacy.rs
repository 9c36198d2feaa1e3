//! The service's socket for programs that speak the allocation server's protocol.

use std::path::PathBuf;
use std::sync::Arc;
use tracing::warn;

use telltale_node::access::AccessPolicy;
use telltale_node::configuration::Configuration;
use telltale_node::legacy::{LegacyService, PassingOn, Roster, SOCKET_NAME};
use telltale_node::parts::ServiceParts;
use telltale_node::service::Control;
use telltale_server::listen::Address;

use crate::exit::Failure;

/// The part's name, and its socket's in systemd's units.
pub(super) const PART: &str = "legacy";

/// The part that passes on what such programs report to `telltale smi` and its like.
const PASSING_ON: &str = "legacy-reports";

/// Attends to such programs, if a socket is named or handed over.
pub(super) fn start(
    parts: &mut ServiceParts,
    configuration: &Configuration,
    control: &Control,
    (roster, policy, has_directory): (Roster, &Arc<AccessPolicy>, bool),
) -> Result<(), Failure> {
    let addresses = configuration.legacy.socket.clone().map(Address::Unix);
    let listeners =
        parts.listen(PART, addresses.as_slice()).map_err(|error| Failure::because(&error))?;
    if listeners.is_empty() {
        return Ok(());
    }
    let service =
        LegacyService::new(listeners, roster.clone()).map_err(|error| Failure::because(&error))?;
    let stopped = parts.stopped();
    parts.run(PART, service.serve(control.clone(), stopped));
    if !has_directory {
        warn!(
            "without a runtime directory `telltale smi` and `top` do not learn of legacy processes; \
             start the service again when there is one"
        );
        return Ok(());
    }
    let address = Address::Unix(PathBuf::from(SOCKET_NAME));
    let listeners =
        parts.listen(PASSING_ON, &[address]).map_err(|error| Failure::because(&error))?;
    let passing_on = PassingOn::new(listeners, roster, Arc::clone(policy))
        .map_err(|error| Failure::because(&error))?;
    let stopped = parts.stopped();
    parts.run(PASSING_ON, passing_on.serve(stopped));
    Ok(())
}
