//! What clients reported, for the other collectors of this machine: `telltale smi`, `top`, `record`.
//! Only the service that holds the clients' connections knows it, and it goes with these.
//!
//! A collector connects to the socket in the runtime directory and says nothing. It is sent the
//! report of each process that it may see, each in a frame as an endpoint's answer is, and then an
//! empty frame. An answer without that end is not whole, and the collector uses nothing of it.

use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::process::{ProcessIdentity, parse_boot_id};
use telltale_schema::snapshot::RecordingFaults;
use telltale_schema::text::with_causes;
use telltale_server::listen::Listener;
use telltale_wire::limits::MAX_DEVICES;
use telltale_wire::{DeviceReport, Refusal, RefusalReason, Reply, Report, frame};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::roster::Roster;
use super::{PAUSE_AFTER_FAILURE, ServeError, unix};
use crate::access::{AccessPolicy, Caller, Visibility, visibility};
use telltale_collector::legacy::{DeviceClaim, END, LegacyProcess};

/// Collectors that are answered at a time; others wait in the socket's queue.
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
            accepted = listener.accept(), if asking.len() < MOST_ASKING => match accepted {
                Ok((stream, _)) => {
                    let answer = answer(&roster, &policy, &stream);
                    asking.spawn(timeout(TIMEOUT, send(stream, answer)));
                }
                Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
            },
            Some(_) = asking.join_next() => {}
        }
    }
}

/// What the collector at the other end of `stream` may know, in frames, to the end; or why it
/// is unknown.
fn answer(roster: &Roster, policy: &AccessPolicy, stream: &UnixStream) -> Vec<u8> {
    let answer = reports(roster, policy, stream).and_then(|reports| {
        let mut frames = Vec::new();
        for report in reports {
            let message = Reply::Report(Box::new(report)).encode();
            let message = message.map_err(|error| with_causes(&error))?;
            frames.extend(frame(&message).map_err(|error| with_causes(&error))?);
        }
        frames.extend(frame(END).map_err(|error| with_causes(&error))?);
        Ok(frames)
    });
    answer.unwrap_or_else(|text| {
        let refusal = Refusal { reason: RefusalReason::Internal, text };
        // A refusal that cannot be sent is an answer without an end, which says the same.
        let message = Reply::Refused(refusal).encode().ok();
        message.and_then(|message| frame(&message).ok()).unwrap_or_default()
    })
}

/// The reports that this collector may see; of a process with more devices than fit into one, several.
fn reports(
    roster: &Roster,
    policy: &AccessPolicy,
    stream: &UnixStream,
) -> Result<Vec<Report>, String> {
    let caller = Caller::of_socket(stream).map_err(|error| with_causes(&error))?;
    let visibility = visibility(policy, &caller);
    let may_see = |process: &LegacyProcess| match visibility {
        Visibility::Everything => true,
        Visibility::Own { uid } => process.uid == uid,
        Visibility::DevicesOnly => false,
    };
    let (boot_id, pid_namespace) =
        own_namespace().ok_or("its boot id or PID namespace cannot be read from /proc")?;
    let of_process = |process: LegacyProcess| {
        let LegacyProcess { pid, start_time_ticks, devices, faults, .. } = process;
        let identity = ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks };
        let parts = devices.chunks(MAX_DEVICES).map(<[_]>::to_vec);
        parts.map(|devices| report(identity, devices, faults)).collect::<Vec<_>>()
    };
    Ok(roster.all().into_iter().filter(may_see).flat_map(of_process).collect())
}

/// The boot and the PID namespace in which pids here count.
fn own_namespace() -> Option<([u8; 16], u64)> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some((parse_boot_id(&boot_id)?, namespace))
}

fn report(identity: ProcessIdentity, devices: Vec<DeviceClaim>, faults: RecordingFaults) -> Report {
    let device = |claim: DeviceClaim| DeviceReport {
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
        devices: devices.into_iter().map(device).collect(),
        faults,
        programs: None,
        kernel_cache: None,
        metrics: Vec::new(),
        metrics_omitted: 0,
        ledger_follows: false,
    }
}

async fn send(mut stream: UnixStream, answer: Vec<u8>) {
    // A collector that has gone is no loss.
    let _ = stream.write_all(&answer).await;
}

#[cfg(test)]
mod tests {
    use super::{END, MOST_ASKING, PassingOn};
    use crate::access::AccessPolicy;
    use crate::legacy::SOCKET_NAME;
    use crate::legacy::message::{Request, Verb};
    use crate::legacy::roster::{ClientSlot, LegacyClient, MAX_CLIENTS_OF_USER, Roster};
    use std::future::pending;
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Arc;
    use std::time::Duration;
    use telltale_harness::Scratch;
    use telltale_ledger::directory::{Purpose, RuntimeDirectory};
    use telltale_server::listen::Listener;

    /// Devices that a process of these tests names: more than a message may have.
    const DEVICES: i32 = 120;

    /// A process that has something on many devices, by two connections.
    fn used(roster: &Roster, pid: u32) -> [ClientSlot; 2] {
        let client = LegacyClient { pid, start_time_ticks: 7, uid: pid };
        let devices = [0..DEVICES / 2, DEVICES / 2..DEVICES];
        devices.map(|devices| {
            let slot = roster.slot(client).unwrap();
            for device in devices {
                for buffer_type in 0..4 {
                    let (verb, process, buffer) = (Verb::Alloc, 1, 64);
                    let request = Request { verb, device, size: 60, buffer_type, process, buffer };
                    slot.note(&request, Some([100; 3]));
                }
            }
            slot
        })
    }

    /// A service of this roster in a runtime directory, as long as the thread lives.
    fn serving(place: &Scratch, roster: &Roster) {
        place.set_mode(0o700);
        let listener = UnixListener::bind(place.join(SOCKET_NAME)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let policy = AccessPolicy::new(rustix::process::geteuid().as_raw(), None);
        let service =
            PassingOn::new(vec![Listener::Unix(listener)], roster.clone(), Arc::new(policy));
        let service = service.unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(service.serve(pending()))
        });
    }

    #[test]
    fn all_devices_of_a_process_arrive_and_a_collector_that_waits_is_answered() {
        let (place, roster) = (Scratch::new(), Roster::default());
        let users = u32::try_from(MAX_CLIENTS_OF_USER).unwrap() * 4;
        let slots: Vec<_> = (1..=users).map(|pid| used(&roster, pid)).collect();
        serving(&place, &roster);
        // Each takes a slot and nothing of its answer, which is more than a socket holds.
        let connect = || UnixStream::connect(place.join(SOCKET_NAME)).unwrap();
        let mut stalled: Vec<UnixStream> = (0..MOST_ASKING).map(|_| connect()).collect();
        let directory = RuntimeDirectory::open(place.path(), Purpose::Reading).unwrap();
        let reported =
            telltale_collector::legacy::ask(&directory, Duration::from_secs(60)).unwrap().unwrap();
        let devices: Vec<usize> =
            reported.reports.iter().map(|report| report.devices.len()).collect();
        assert_eq!(devices, vec![usize::try_from(DEVICES).unwrap(); slots.len()]);
        // They were cut off, and can tell by the end that is not there.
        let mut answer = Vec::new();
        stalled[0].read_to_end(&mut answer).unwrap();
        let whole = answer.ends_with(&telltale_wire::frame(END).unwrap());
        assert!(!answer.is_empty() && !whole, "{} bytes", answer.len());
    }
}
