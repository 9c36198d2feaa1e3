//! Device faults that the running service of this machine has found by watching, which one look cannot
//! find: a heartbeat that stands still, a chip that was there.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use telltale_node::Collector;
use telltale_node::grpc::connect;
use telltale_schema::snapshot::Device;
use telltale_wire::telemetry::CallError;

use crate::arguments::Place;
use crate::sockets::sockets;

/// How long the service may take; a command then goes on without it.
const TIMEOUT: Duration = Duration::from_millis(250);

/// A question to the service, asked beside what the command does itself.
pub(crate) struct Question(Option<JoinHandle<Vec<Device>>>);

// === impl Question ===

impl Question {
    /// Asks the service at the place, if there is one.
    pub(crate) fn ask(place: &Place) -> Self {
        let mut sockets = sockets(place);
        sockets.retain(|socket| socket.exists());
        if sockets.is_empty() {
            return Self(None);
        }
        let thread = thread::Builder::new().name(String::from("known faults"));
        Self(thread.spawn(move || faulty(&sockets)).ok())
    }

    /// Waits for the answer and hands it to the collector. Returns whether there was anything, which
    /// the collector's next snapshot has if it still holds.
    pub(crate) fn teach(self, collector: &mut Collector) -> bool {
        let devices = self.0.and_then(|thread| thread.join().ok()).unwrap_or_default();
        collector.learn_faults(&devices);
        !devices.is_empty()
    }
}

/// Devices with faults, as the first service that answers in time has them.
fn faulty(sockets: &[PathBuf]) -> Vec<Device> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let first = async {
        for socket in sockets {
            if let Some(Ok(mut devices)) = devices(socket).await {
                devices.retain(|device| !device.faults.is_empty());
                return devices;
            }
        }
        Vec::new()
    };
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, first).await }).unwrap_or_default()
}

async fn devices(socket: &Path) -> Option<Result<Vec<Device>, CallError>> {
    let mut client = connect(socket).await.ok()?;
    Some(client.devices().await)
}
