//! Latency from a process's start or end until a client that watches the service is notified.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::ClockId;
use telltale_client::connect;
use telltale_node::grpc::SOCKET_NAME;
use telltale_schema::snapshot::{Process, ProcessState, Snapshot};

use crate::machine::BusyMachine;
use crate::sample::reading_ns;
use crate::workers::{WorkerProcess, WorkerService};

/// How long one change may take to be seen before the benchmark gives up.
const TIMEOUT: Duration = Duration::from_secs(20);
/// From one change to the next, growing by as much with each: changes are to meet every phase of
/// the service's interval of a second.
const STEP: Duration = Duration::from_millis(37);

/// What the changes took, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Comings {
    /// From before a process made its ledger until it was seen.
    pub(super) seen_ns: Vec<f64>,
    /// The same, until what it holds was seen too.
    pub(super) held_ns: Vec<f64>,
    /// From a process's end until it was not seen alive any more.
    pub(super) gone_ns: Vec<f64>,
}

/// One message of the stream: when it came, and the machine.
struct WatchMessage {
    at_ns: f64,
    snapshot: Snapshot,
}

/// Starts and kills so many processes, one after the other.
pub(super) fn measure(worker: &Path, busy: &BusyMachine, count: u64) -> io::Result<Comings> {
    let reported = watch(busy.root())?;
    let mut comings = Comings::default();
    for number in 0..count {
        let mut visitor =
            WorkerProcess::start(worker, busy.root(), WorkerService::Visitor { number }, None)?;
        let (pid, began_ns) = (visitor.id(), visitor.ask()?);
        let seen_ns = until(&reported, |snapshot| living(snapshot, pid).is_some())?;
        comings.seen_ns.push((seen_ns.0 - began_ns).max(0.0));
        let held_ns = match holds(&seen_ns.1, pid) {
            true => seen_ns.0,
            false => until(&reported, |snapshot| holds(snapshot, pid))?.0,
        };
        comings.held_ns.push((held_ns - began_ns).max(0.0));
        thread::sleep(STEP * u32::try_from(number % 27).unwrap_or(0));
        while reported.try_recv().is_ok() {}
        let killed_ns = reading_ns(ClockId::Monotonic);
        visitor.kill()?;
        let gone_ns = until(&reported, |snapshot| living(snapshot, pid).is_none())?.0;
        comings.gone_ns.push(gone_ns - killed_ns);
        thread::sleep(STEP * u32::try_from(number * 7 % 27).unwrap_or(0));
    }
    Ok(comings)
}

/// The process of this pid, if it is said to live.
fn living(snapshot: &Snapshot, pid: u32) -> Option<&Process> {
    let is_it = |one: &&Process| one.pid == Some(pid) && one.state == ProcessState::Alive;
    snapshot.processes.iter().find(is_it)
}

/// Whether it is there with all that a visitor holds: a device and a buffer on it.
fn holds(snapshot: &Snapshot, pid: u32) -> bool {
    let kinds = |one: &Process| {
        one.devices.iter().flat_map(|held| &held.kinds).any(|kind| kind.usage.live_bytes() > 0)
    };
    living(snapshot, pid).is_some_and(kinds)
}

/// Waits for a message of which this is true; when it came.
fn until(
    reported: &Receiver<WatchMessage>,
    is_so: impl Fn(&Snapshot) -> bool,
) -> io::Result<(f64, Snapshot)> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match reported.recv_timeout(left) {
            Ok(WatchMessage { at_ns, snapshot }) if is_so(&snapshot) => {
                return Ok((at_ns, snapshot));
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(io::Error::other("a change was not seen"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the service ended the stream"));
            }
        }
    }
}

/// Watches the service on a thread of its own, until the receiver is gone.
fn watch(root: &Path) -> io::Result<Receiver<WatchMessage>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = root.join("run/tt").join(SOCKET_NAME);
    let mut client = runtime.block_on(connect(&path)).map_err(io::Error::other)?;
    let mut updates = runtime.block_on(client.watch(Duration::ZERO)).map_err(io::Error::other)?;
    let (sender, reported) = channel();
    thread::Builder::new().name("watch".to_owned()).spawn(move || {
        while let Ok(Some(update)) = runtime.block_on(updates.next()) {
            let at_ns = reading_ns(ClockId::Monotonic);
            let Some(snapshot) = update.snapshot else { continue };
            if sender.send(WatchMessage { at_ns, snapshot }).is_err() {
                break;
            }
        }
    })?;
    Ok(reported)
}
