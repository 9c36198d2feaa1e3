//! The node service's heart: one thread that owns the collector, and what it publishes.
//!
//! Everybody else (servers, history, alerts) is given a [`View`]. A view hands out what was
//! published last and never touches a driver or a workload.

mod changes;
mod collecting;
mod control;
mod metrics;
mod published;
mod schedule;
mod shared;
mod tally;
mod truncated;
mod view;
mod wake_up;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_schema::clock::Clock;
use telltale_schema::snapshot::Snapshot;

use collecting::Collecting;
use shared::ServiceShared;
use telltale_collector::clock::SystemClock;
use telltale_collector::legacy::LegacyClients;
use telltale_collector::tree::OpenTreeError;
use telltale_collector::{CollectOptions, Collector};

pub use control::Control;
pub use metrics::{HistoryMetrics, LegacyMetrics, QueueDrops, ServiceMetrics, SourceMetrics};
pub use published::Published;
pub use tally::{MAX_TALLIES, Tally};
pub use view::{FreshError, NotReady, Publisher, UsageWatch, View};

/// What the service collects, and how often.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Where to look, and how long that may take.
    pub collect: CollectOptions,
    /// The time from one collection to the next.
    pub interval: Duration,
    /// The part that listens to clients of the allocation server's protocol, where there is one.
    pub legacy: Option<Arc<dyn LegacySocket>>,
    /// What was wrong when the service before this one ended: the first collection has what of it still
    /// holds.
    pub known: Option<Snapshot>,
}

/// The part of a service that listens to clients of the allocation server's protocol.
pub trait LegacySocket: LegacyClients {
    /// What it did since the service was started; nothing while there is no socket.
    fn metrics(&self) -> Option<LegacyMetrics>;
}

/// Why the service could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The machine's root cannot be opened.
    #[error(transparent)]
    Root(#[from] OpenTreeError),
    /// The system gives no thread or no descriptor.
    #[error("the system gives the service no thread or descriptor; raise its limits")]
    System(#[source] io::Error),
    /// The thread ended in its first collection.
    #[error("the first collection failed; the lines above this one say why")]
    First,
}

/// A service that collects. Dropping it ends its thread.
#[derive(Debug)]
pub struct Service {
    control: Control,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
}

/// How long the end of a collection is waited for. One that hangs is left behind: the process ends.
const STOP_TIMEOUT: Duration = Duration::from_millis(400);

// === impl Service ===

impl Service {
    /// Starts collecting; comes back after the first collection, which bounded deadlines end.
    ///
    /// # Errors
    /// When the root cannot be opened, or the system gives no thread.
    pub fn start(options: ServiceOptions) -> Result<Self, StartError> {
        Self::start_with_clock(options, Arc::new(SystemClock))
    }

    /// As [`Self::start`], by another clock. Its wall clock may be set at any time; ages, rates and
    /// deadlines go by the monotonic one, and when to collect by the kernel's.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_clock(
        options: ServiceOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let ServiceOptions { mut collect, interval, legacy, known } = options;
        collect.legacy = legacy.clone().map(|socket| socket as Arc<dyn LegacyClients>);
        let mut collector = Collector::with_clock(collect, Arc::clone(&clock))?;
        if let Some(known) = known {
            collector.learn_faults(&known);
        }
        let shared = Arc::new(ServiceShared::new(interval).map_err(StartError::System)?);
        let (tell, reported) = sync_channel(1);
        let (end, ended) = sync_channel::<()>(1);
        let thread = std::thread::Builder::new()
            .name("telltale-collect".to_owned())
            .spawn(move || {
                let (mut collecting, control) = Collecting::begin(collector, legacy, shared, clock);
                // The receiver waits for just this.
                let _ = tell.send(control);
                collecting.run();
                drop(end);
            })
            .map_err(StartError::System)?;
        match reported.recv() {
            Ok(control) => Ok(Self { control, thread: Some(thread), ended }),
            Err(_) => Err(StartError::First),
        }
    }

    /// What is published, for subscribers.
    pub fn view(&self) -> View {
        self.control.view()
    }

    /// What tells it what to do.
    pub fn control(&self) -> &Control {
        &self.control
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.control.ask_to_stop();
        let ended = self.ended.recv_timeout(STOP_TIMEOUT) == Err(RecvTimeoutError::Disconnected);
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            // The panic hook has reported it; there is nothing to add.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
