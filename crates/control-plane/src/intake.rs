//! What the node's workers tell their agent, between those who post and the agent's driver.
//!
//! An [`Intake`] is a handle: servers and readers put entries in, the agent's driver opens an epoch and takes observations
//! out, for which the workers' processes are checked. A post is answered before it is counted.

mod machine;
mod processor;
pub(crate) mod senders;
pub mod server;
mod traffic;
mod workers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use telltale_cluster::agent::AgentMetrics;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::intake::entry::{PostEntry, PostRefused};
use telltale_cluster::intake::formats::{Format, ReaderCounts};
use telltale_cluster::intake::{Counting, Observed, Queue};
use telltale_cluster::observation::Observation;
use telltale_cluster::rank::Rank;
use telltale_cluster::tracking::progress::LatestCollective;
use telltale_cluster::tracking::windows::WindowLength;
use telltale_cluster::vitals::{self, NodeHealth, Vitals};
use tokio::sync::Notify;

use machine::MachineSample;

pub use telltale_cluster::intake::{
    IntakeCounts, PostOutcome, Scope, Sender, WorkerProcess, WorkerUsage,
};

/// Takes entries of workers and gives observations of them. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Intake(Arc<IntakeShared>);

#[derive(Debug, Default)]
struct IntakeShared {
    queue: Mutex<Queue>,
    /// Locked before the queue where both are, so that entries are counted in their order.
    current: Mutex<Current>,
    /// What readers of files have seen.
    readers: Mutex<BTreeMap<Format, ReaderCounts>>,
    agent: Mutex<OwnCounts>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Current {
    counting: Counting,
    /// Observed at with and without an epoch: a spare is reported as well.
    machine: MachineSample,
    workers: Workers,
}

/// The latest check of the workers of the epoch that runs.
#[derive(Debug, Default)]
struct Workers {
    usage: workers::Usage,
    processor: processor::Processor,
    connections: traffic::Connections,
}

/// A check of what an intake knows, for people.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IntakeView {
    /// What runs.
    pub scope: Option<Scope>,
    /// The mean latency to each peer, as it was last reported, in nanoseconds.
    pub latencies_ns: BTreeMap<Rank, u64>,
    /// The same, as senders say who are not verified.
    pub unverified_latencies_ns: BTreeMap<Rank, u64>,
    /// What each worker uses.
    pub usage: Vec<WorkerUsage>,
    /// How the node is; nothing before the first check of it.
    pub vitals: Vitals,
    /// What became of entries.
    pub counts: IntakeCounts,
    /// What readers of files have seen, where there are any.
    pub readers: BTreeMap<Format, ReaderCounts>,
    /// What the agent has counted of itself.
    pub agent: OwnCounts,
}

/// What an agent has counted of itself since its start; it shows nothing else to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnCounts {
    /// Of orders and workers.
    pub metrics: AgentMetrics,
    /// Messages for which the way to the coordinator had no room.
    pub lost_messages: u64,
    /// Lines of workers that the agent's own output had no room for.
    pub lines_not_echoed: u64,
    /// Bytes of workers' output that could not be written to files.
    pub bytes_not_written: u64,
}

// === impl Intake ===

impl Intake {
    /// An intake in which no epoch runs: what comes is counted as stale.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, which keeps the latest `window` latencies of each kind.
    #[must_use]
    pub fn of_window(window: WindowLength) -> Self {
        let current = Current { counting: Counting::of_window(window), ..Current::default() };
        Self(Arc::new(IntakeShared { current: Mutex::new(current), ..IntakeShared::default() }))
    }

    /// Opens an epoch: earlier reports are forgotten, and what comes is this epoch's. Must be
    /// called before the epoch's workers are started.
    pub fn begin(&self, scope: Scope) {
        let mut current = self.current();
        current.counting.begin(scope, &mut self.queue());
        current.workers = Workers::default();
    }

    /// Closes the epoch: nothing runs.
    pub fn end(&self) {
        let mut current = self.current();
        current.counting.end(&mut self.queue());
        current.workers = Workers::default();
    }

    /// Takes the body of a post of this sender.
    ///
    /// # Errors
    /// When it cannot be read; nothing of it is taken then.
    pub fn post(&self, body: &[u8], sender: Sender) -> Result<PostOutcome, PostRefused> {
        if sender == Sender::Unverified {
            // Not by way of the queue, in which it would take the place of what workers post.
            let post = self.queue().read(body)?;
            self.queue().put(Vec::new(), post.refused);
            let queued = post.entries.len();
            self.current().counting.show(post.entries);
            let (refused, first_refused) = (post.refused, post.first_refused);
            return Ok(PostOutcome { queued, refused, first_refused, dropped: 0 });
        }
        let taken = self.queue().post(body)?;
        if taken.queued > 0 {
            self.0.arrived.notify_one();
        }
        Ok(taken)
    }

    /// Takes entries that were read elsewhere, and says how many were dropped. Where there is no room
    /// the caller counts what waits first: what was read is not read again, and a reader has time.
    pub fn take(&self, entries: Vec<PostEntry>) -> usize {
        let given = entries.len();
        while !self.has_room(given) && self.drain() {}
        let queued = self.queue().put(entries, 0);
        if queued > 0 {
            self.0.arrived.notify_one();
        }
        given - queued
    }

    /// Takes entries that were read elsewhere and may be anybody's: they are shown, and decide nothing.
    pub fn show(&self, entries: Vec<PostEntry>) {
        self.current().counting.show(entries);
    }

    /// Counts entries as they come, for ever.
    pub async fn count(&self) {
        loop {
            self.0.arrived.notified().await;
            // All in one turn: on one thread with many who post, a post a turn would be too slow.
            while self.drain() {}
        }
    }

    /// What the workers of `epoch` have reported since this was last asked, and which of `processes` are
    /// stopped; nothing if another epoch runs.
    #[must_use]
    pub fn observe(&self, epoch: Epoch, processes: &[WorkerProcess]) -> Option<Observation> {
        while self.drain() {}
        let now = Instant::now();
        let mut current = self.current();
        let lost = self.queue().lost();
        let Current { counting, workers, .. } = &mut *current;
        counting.scope().filter(|scope| scope.epoch == epoch)?;
        counting.observe(epoch, lost, &workers.sample(processes, now), now)
    }

    /// A check of what it knows.
    #[must_use]
    pub fn view(&self) -> IntakeView {
        let current = self.current();
        let [latencies_ns, unverified_latencies_ns] = current.counting.latencies_ns();
        IntakeView {
            scope: current.counting.scope().cloned(),
            latencies_ns,
            unverified_latencies_ns,
            usage: current.workers.usage.latest().to_vec(),
            vitals: current.vitals(),
            counts: current.counting.counts(&self.queue()),
            readers: self.readers().clone(),
            agent: *self.agent(),
        }
    }

    /// The latest collectives of the workers, with all that has come until now.
    #[must_use]
    pub fn latest_collectives(&self) -> Vec<LatestCollective> {
        while self.drain() {}
        self.current().counting.latest_collectives()
    }

    /// Checks how busy the machine is, whether an epoch runs or not.
    pub fn sample_host(&self) {
        self.current().machine.sample();
    }

    /// How the node was when it was last checked, and its workers as of the last observation; for a
    /// report's message. Of accelerators it knows nothing.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.current().vitals()
    }

    /// The epoch that is open.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.current().counting.scope().map(|scope| scope.epoch)
    }

    /// Takes note of what a reader of files has seen until now.
    pub fn note_reader(&self, format: Format, counts: ReaderCounts) {
        self.readers().insert(format, counts);
    }

    /// Takes note of what the agent has counted until now.
    pub fn note_agent(&self, counts: OwnCounts) {
        *self.agent() = counts;
    }

    /// The rank of the worker with this process, as the last observation reported it.
    #[must_use]
    pub fn rank_of_process(&self, pid: u32) -> Option<Rank> {
        let current = self.current();
        let latest = current.workers.usage.latest();
        latest.iter().find(|usage| usage.pid == pid).map(|usage| usage.rank)
    }

    /// Counts the entries that were put in first. Says whether there were any.
    fn drain(&self) -> bool {
        let mut current = self.current();
        // A post does not wait for the counting.
        let Some(batch) = self.queue().pop() else { return false };
        current.counting.count_all(batch, Instant::now());
        true
    }

    fn has_room(&self, entries: usize) -> bool {
        self.queue().has_room(entries)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, BTreeMap<Format, ReaderCounts>> {
        self.0.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agent(&self) -> MutexGuard<'_, OwnCounts> {
        self.0.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Current ===

impl Current {
    fn vitals(&self) -> Vitals {
        let processes = self.workers.usage.latest().iter().map(|usage| vitals::WorkerProcess {
            rank: usage.rank,
            process_id: Some(usage.pid),
            processors: usage.cpu_ratio,
            resident_bytes: Some(usage.resident_bytes),
        });
        Vitals {
            processors_busy_ratio: self.machine.busy_ratio,
            memory_used_bytes: self.machine.memory_bytes.map(|(used, _)| used),
            memory_total_bytes: self.machine.memory_bytes.map(|(_, all)| all),
            processes: processes.collect(),
            health: NodeHealth::default(),
        }
    }
}

// === impl Workers ===

impl Workers {
    fn sample(&mut self, processes: &[WorkerProcess], now: Instant) -> Observed {
        self.usage.sample(processes, now);
        Observed {
            usage: self.usage.latest().to_vec(),
            withheld: self.processor.sample(processes, now),
            traffic: self.connections.sample(processes, now),
        }
    }
}

#[cfg(test)]
mod tests;
