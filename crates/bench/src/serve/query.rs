//! Asks the service through gRPC, as a client on its Unix socket does.

use std::io;
use std::path::Path;

use rustix::time::ClockId;
use telltale_client::Client;
use telltale_client::connect;
use telltale_node::grpc::SOCKET_NAME;
use telltale_schema::snapshot::Snapshot;
use tokio::runtime::Runtime;

use crate::sample::reading_ns;

/// A client with one connection.
pub(crate) struct Asker {
    runtime: Runtime,
    client: Client,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct QueryResult {
    /// From before the call to the decoded snapshot.
    pub(super) elapsed_ns: f64,
    pub(super) snapshot: Snapshot,
}

// === impl Asker ===

impl Asker {
    /// Connects to the service of the machine under `root`.
    pub(crate) fn connect(root: &Path) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let path = root.join("run/tt").join(SOCKET_NAME);
        let client = runtime.block_on(connect(&path)).map_err(io::Error::other)?;
        Ok(Self { runtime, client })
    }

    /// Asks for the whole machine, as it is now or as it was collected last.
    pub(crate) fn ask(&mut self, fresh: bool) -> io::Result<QueryResult> {
        let began_ns = reading_ns(ClockId::Monotonic);
        let answer = self.runtime.block_on(self.client.snapshot(fresh));
        let elapsed_ns = reading_ns(ClockId::Monotonic) - began_ns;
        Ok(QueryResult { elapsed_ns, snapshot: answer.map_err(io::Error::other)? })
    }
}
