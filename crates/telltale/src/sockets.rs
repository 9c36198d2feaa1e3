//! The sockets at which a service of this machine may be.

use std::path::{Path, PathBuf};

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_node::grpc::SOCKET_NAME;

use crate::arguments::LocationArguments;

/// The sockets to try, in this order; there may be none at their paths.
pub(crate) fn sockets(place: &LocationArguments) -> Vec<PathBuf> {
    let root = place.root.as_deref().filter(|root| *root != Path::new("/"));
    let environment = DirectoryEnvironment::of_this_process();
    RuntimeDirectory::for_reading(place.runtime_dir.as_deref(), root, &environment)
        .into_iter()
        .flatten()
        .map(|directory| directory.path().join(SOCKET_NAME))
        .collect()
}
