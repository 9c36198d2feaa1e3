//! Device faults that the running service of this machine has found by watching, which one check cannot
//! find: a heartbeat that stands still, a chip that was there.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use telltale_client::CallError;
use telltale_client::connect;
use telltale_collector::Collector;
use telltale_schema::snapshot::Snapshot;

/// How long the service may take where a person waits for a screen.
pub const FOR_A_LOOK: Duration = Duration::from_millis(250);
/// How long it may take where something is decided by its answer.
pub const FOR_A_DECISION: Duration = Duration::from_secs(2);

/// A question to the service, asked beside what the command does itself.
#[derive(Debug)]
pub struct Question(Option<JoinHandle<Option<Snapshot>>>);

/// What the service has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceFindings {
    /// Unknown: no service answered.
    Nothing,
    /// No device has a fault.
    Healthy,
    /// Some have, or had.
    Faulty,
}

// === impl Question ===

impl Question {
    /// Asks the first service that answers at one of these sockets within `limit`, if there is one. What asks goes on
    /// without it otherwise.
    #[must_use]
    pub fn ask(mut sockets: Vec<PathBuf>, limit: Duration) -> Self {
        sockets.retain(|socket| socket.exists());
        if sockets.is_empty() {
            return Self(None);
        }
        let thread = thread::Builder::new().name(String::from("known faults"));
        Self(thread.spawn(move || faulty(&sockets, limit)).ok())
    }

    /// Waits for the answer and hands it to the collector, whose next snapshot has what of it still holds.
    pub fn teach(self, collector: &mut Collector) -> ServiceFindings {
        let Some(known) = self.0.and_then(|thread| thread.join().ok()?) else {
            return ServiceFindings::Nothing;
        };
        collector.learn_faults(&known);
        let is_well = known.devices.is_empty() && known.faults.is_empty();
        if is_well { ServiceFindings::Healthy } else { ServiceFindings::Faulty }
    }
}

/// Devices with faults, and those of the machine, as the first service that answers in time has them; none where no service does.
fn faulty(sockets: &[PathBuf], limit: Duration) -> Option<Snapshot> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let first = async {
        for socket in sockets {
            if let Some(Ok(mut known)) = devices(socket).await {
                known.devices.retain(|device| !device.faults.is_empty());
                return Some(known);
            }
        }
        None
    };
    runtime.block_on(async { tokio::time::timeout(limit, first).await }).ok()?
}

async fn devices(socket: &Path) -> Option<Result<Snapshot, CallError>> {
    let mut client = connect(socket).await.ok()?;
    Some(client.devices().await)
}
