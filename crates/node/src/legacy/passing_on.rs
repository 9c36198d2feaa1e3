//! What clients reported, for the other collectors of this machine: `telltale smi`, `top`, `record`.
//! Only the service that holds the clients' connections knows it, and it goes with these.
//!
//! A collector connects to the socket in the runtime directory and says nothing. It is sent the
//! report of each process that it may see, each in a frame as an endpoint's answer is, and the end.

use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::process::{ProcessIdentity, parse_boot_id};
use telltale_server::listen::Listener;
use telltale_wire::{DeviceReport, Reply, Report, frame};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::roster::{LegacyProcess, Roster};
use super::{PAUSE_AFTER_FAILURE, ServeError, unix};
use crate::access::{AccessPolicy, Caller, Sight, sight};

/// The socket's name in the runtime directory.
pub const SOCKET_NAME: &str = "legacy-clients.sock";

/// Collectors that are answered at a time; one more is hung up on.
const MOST_ASKING: usize = 32;

/// How long a collector may take to receive all.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The sockets at which collectors ask.
#[derive(Debug)]
pub struct PassingOn {
    listeners: Vec<std::os::unix::net::UnixListener>,
    roster: Roster,
    policy: Arc<AccessPolicy>,
}

// === impl PassingOn ===

impl PassingOn {
    /// Answers at these sockets from `roster`, as `policy` allows.
    ///
    /// # Errors
    /// When one is no Unix socket.
    pub fn new(
        listeners: Vec<Listener>,
        roster: Roster,
        policy: Arc<AccessPolicy>,
    ) -> Result<Self, ServeError> {
        Ok(Self { listeners: unix(listeners)?, roster, policy })
    }

    /// Serves until `stop` ends. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When a socket cannot be listened on.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { listeners, roster, policy } = self;
        let mut all = JoinSet::new();
        for listener in listeners {
            let listener = UnixListener::from_std(listener).map_err(ServeError::Listen)?;
            all.spawn(accept(listener, roster.clone(), Arc::clone(&policy)));
        }
        stop.await;
        all.shutdown().await;
        Ok(())
    }
}

async fn accept(listener: UnixListener, roster: Roster, policy: Arc<AccessPolicy>) {
    let mut asking = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if asking.len() < MOST_ASKING => {
                    let messages = messages(&roster, &policy, &stream);
                    asking.spawn(timeout(TIMEOUT, send(stream, messages)));
                }
                Ok(_) => {}
                Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
            },
            Some(_) = asking.join_next() => {}
        }
    }
}

/// What the collector at the other end of `stream` may know.
fn messages(roster: &Roster, policy: &AccessPolicy, stream: &UnixStream) -> Vec<Vec<u8>> {
    let Ok(caller) = Caller::of_socket(stream) else { return Vec::new() };
    let sight = sight(policy, &caller);
    let may_see = |process: &LegacyProcess| match sight {
        Sight::Everything => true,
        Sight::Own { uid } => process.uid == uid,
        Sight::DevicesOnly => false,
    };
    let Some((boot_id, pid_namespace)) = own_namespace() else { return Vec::new() };
    let message = |process: LegacyProcess| {
        let LegacyProcess { pid, start_time_ticks, .. } = process;
        let identity = ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks };
        let reply = Reply::Report(Box::new(report(identity, process)));
        frame(&reply.encode().ok()?).ok()
    };
    roster.processes().into_iter().filter(may_see).filter_map(message).collect()
}

/// The boot and the PID namespace in which pids here count.
fn own_namespace() -> Option<([u8; 16], u64)> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some((parse_boot_id(&boot_id)?, namespace))
}

fn report(identity: ProcessIdentity, process: LegacyProcess) -> Report {
    let device = |claim: crate::observation::DeviceClaim| DeviceReport {
        chip: claim.device.chip,
        kinds: claim.kinds,
        ..DeviceReport::default()
    };
    Report {
        identity,
        name: String::new(),
        runtime: String::from("legacy"),
        started_at: None,
        uptime_ns: None,
        devices: process.devices.into_iter().map(device).collect(),
        faults: process.faults,
        programs: None,
        kernel_cache: None,
        metrics: Vec::new(),
        metrics_omitted: 0,
        ledger_follows: false,
    }
}

async fn send(mut stream: UnixStream, messages: Vec<Vec<u8>>) {
    for message in messages {
        // A collector that has gone is nobody's loss.
        if stream.write_all(&message).await.is_err() {
            return;
        }
    }
}
