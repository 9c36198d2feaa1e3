//! The service's socket for programs that speak the allocation server's protocol.

use telltale_node::configuration::Configuration;
use telltale_node::legacy::{LegacyService, Roster};
use telltale_node::parts::Parts;
use telltale_node::service::View;
use telltale_server::listen::Address;

use crate::exit::Failure;

/// The part's name, and its socket's in systemd's units.
pub(super) const PART: &str = "legacy";

/// Attends to such programs, if a socket is named or handed over.
pub(super) fn start(
    parts: &mut Parts,
    configuration: &Configuration,
    view: &View,
    roster: Roster,
) -> Result<(), Failure> {
    let addresses = configuration.legacy.socket.clone().map(Address::Unix);
    let listeners =
        parts.listen(PART, addresses.as_slice()).map_err(|error| Failure::because(&error))?;
    if listeners.is_empty() {
        return Ok(());
    }
    let service =
        LegacyService::new(listeners, roster).map_err(|error| Failure::because(&error))?;
    let stopped = parts.stopped();
    parts.run(PART, service.serve(view.clone(), stopped));
    Ok(())
}
