//! What the node's workers tell their agent of their collectives, from the post to the report.
//!
//! An [`Intake`] is a handle: servers and readers put entries in, the agent's driver opens an epoch
//! and takes observations out. Between them is a bounded queue, so that whoever posts is answered
//! before anything is counted. It decides nothing and keeps no entry beyond the queue.

pub mod entry;
pub mod formats;
mod machine;
mod processor;
mod queue;
pub(crate) mod senders;
pub mod server;
mod traffic;
mod workers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::agent::AgentFigures;
use crate::epoch::Epoch;
use crate::latency::record::{CollectiveEvent, CollectiveRecord, MAX_DURATION_US, Stage};
use crate::latency::{EdgeKey, WaitKey};
use crate::message::Assignment;
use crate::observation::{Observation, WorkerObservation, WorkerState};
use crate::rank::Rank;
use crate::tracking::tracker::{Tracker, TrackerCounts};
use crate::tracking::windows::WindowLength;
use crate::vitals::{self, Vitals};
use crate::work::log::WorkLog;
use crate::work::{Operation, Work};
use formats::{Format, ReaderCounts};

use entry::{Entry, Post, PostRefused, Told};
use machine::Machine;
use queue::Queue;

pub use queue::MAX_QUEUED_ENTRIES;
pub use workers::{WorkerProcess, WorkerUsage};

/// How long a rank's checkpoint may excuse it, unless its end is told before.
pub const MAX_CHECKPOINT: Duration = Duration::from_secs(1800);

/// What an agent runs in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The epoch.
    pub epoch: Epoch,
    /// How many ranks the job has.
    pub world_size: u32,
    /// The ranks that run here.
    pub ranks: Range<u32>,
}

/// Takes entries of workers and gives observations of them. Clones share everything.
#[derive(Debug, Clone)]
pub struct Intake(Arc<Shared>);

/// What became of entries since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IntakeCounts {
    /// Entries that came in posts that could be read.
    pub received: u64,
    /// Posts that could not be read.
    pub malformed_posts: u64,
    /// Entries that made no sense by themselves.
    pub refused: u64,
    /// Entries that were dropped because the queue was full.
    pub queue_full: u64,
    /// Entries that came while no epoch ran, or were of another one.
    pub stale: u64,
    /// Checkpoints of ranks that are not this node's.
    pub foreign_checkpoints: u64,
    /// Entries that are shown and reported to nobody, since they may be of anybody.
    pub unverified: u64,
    /// What became of the rest.
    pub tracker: TrackerCounts,
}

/// Whether a post is known to come from the node's workers, or from somebody who may end them anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// It is: what it says is evidence.
    Verified,
    /// It may be anybody's of this machine: it is shown, and decides nothing.
    Unverified,
}

/// What became of one post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Entries that made sense and were not dropped. Those of senders who are not verified are only shown.
    pub queued: usize,
    /// Entries that made no sense.
    pub refused: usize,
    /// What is wrong with the first of these.
    pub first_refused: Option<entry::EntryRefused>,
    /// Entries that were dropped because the queue was full.
    pub dropped: usize,
}

#[derive(Debug, Default)]
struct Shared {
    window: WindowLength,
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
    running: Option<Running>,
    /// Looked at with and without an epoch: a spare is told of as well.
    machine: Machine,
    stale: u64,
    foreign_checkpoints: u64,
    unverified: u64,
    /// What the trackers of epochs that are over have counted.
    past: TrackerCounts,
}

/// What is known of the epoch that runs.
#[derive(Debug)]
struct Running {
    scope: Scope,
    tracker: Tracker,
    /// What senders say who are not verified, which is in no observation.
    unverified: Tracker,
    /// Ranks at a checkpoint, and since when.
    checkpoints: BTreeMap<Rank, Instant>,
    /// Of each peer, how many latencies were reported last and their mean, in nanoseconds.
    latest: BTreeMap<Rank, (u64, u64)>,
    /// The same of senders who are not verified.
    unverified_latest: BTreeMap<Rank, (u64, u64)>,
    usage: workers::Usage,
    processor: processor::Processor,
    connections: traffic::Connections,
    work: WorkLog,
}

/// A look at what an intake knows, for people.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct View {
    /// What runs.
    pub scope: Option<Scope>,
    /// The mean latency to each peer, as it was last reported, in nanoseconds.
    pub latencies_ns: BTreeMap<Rank, u64>,
    /// The same, as senders say who are not verified.
    pub unverified_latencies_ns: BTreeMap<Rank, u64>,
    /// What each worker uses.
    pub usage: Vec<WorkerUsage>,
    /// How the node is; nothing before the first look at it.
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
    pub figures: AgentFigures,
    /// Messages for which the way to the coordinator had no room.
    pub lost_messages: u64,
    /// Lines of workers that the agent's own output had no room for.
    pub lines_not_echoed: u64,
    /// Bytes of workers' output that could not be written to files.
    pub bytes_not_written: u64,
}

// === impl Scope ===

impl Scope {
    /// What an agent runs in `epoch` when it is told this.
    #[must_use]
    pub fn of(epoch: Epoch, assignment: &Assignment) -> Self {
        let first = assignment.first_rank.0;
        let behind = first.saturating_add(assignment.workers.get());
        Self { epoch, world_size: assignment.world_size, ranks: first..behind }
    }
}

// === impl Intake ===

impl Default for Intake {
    fn default() -> Self {
        Self::new()
    }
}

impl Intake {
    /// An intake in which no epoch runs: what comes is counted as stale.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// The same, which keeps the latest `window` latencies of each kind.
    #[must_use]
    pub fn of_window(window: WindowLength) -> Self {
        Self(Arc::new(Shared { window, ..Shared::default() }))
    }

    /// Opens an epoch: what was told before is forgotten, and what comes is this epoch's. To be
    /// called before the epoch's workers are started.
    pub fn begin(&self, scope: Scope) {
        let mut current = self.current();
        current.close(&mut self.queue());
        let tracker = Tracker::of_ranks(scope.ranks.clone(), scope.world_size, self.0.window);
        current.running = Some(Running {
            scope,
            unverified: tracker.clone(),
            tracker,
            checkpoints: BTreeMap::new(),
            latest: BTreeMap::new(),
            unverified_latest: BTreeMap::new(),
            usage: workers::Usage::default(),
            processor: processor::Processor::default(),
            connections: traffic::Connections::default(),
            work: WorkLog::default(),
        });
    }

    /// Closes the epoch: nothing runs.
    pub fn end(&self) {
        self.current().close(&mut self.queue());
    }

    /// Takes the body of a post of this sender.
    ///
    /// # Errors
    /// When it cannot be read; nothing of it is taken then.
    pub fn post(&self, body: &[u8], sender: Sender) -> Result<Taken, PostRefused> {
        let post = Post::parse(body).inspect_err(|_| self.queue().count_malformed())?;
        let Post { entries, refused, first_refused } = post;
        let given = entries.len();
        if sender == Sender::Unverified {
            // Not by way of the queue, in which it would take the place of what workers post.
            self.queue().put(Vec::new(), refused);
            self.current().show(entries);
            return Ok(Taken { queued: given, refused, first_refused, dropped: 0 });
        }
        let queued = self.queue().put(entries, refused);
        if queued > 0 {
            self.0.arrived.notify_one();
        }
        Ok(Taken { queued, refused, first_refused, dropped: given - queued })
    }

    /// Takes entries that were read elsewhere, and says how many were dropped. Where there is no room
    /// the caller counts what waits first: what was read is not read again, and a reader has time.
    pub fn take(&self, entries: Vec<Entry>) -> usize {
        let given = entries.len();
        while !self.has_room(given) && self.drain() {}
        let queued = self.queue().put(entries, 0);
        if queued > 0 {
            self.0.arrived.notify_one();
        }
        given - queued
    }

    /// Takes entries that were read elsewhere and may be anybody's: they are shown, and decide nothing.
    pub fn show(&self, entries: Vec<Entry>) {
        self.current().show(entries);
    }

    /// Counts entries as they come, for ever.
    pub async fn count(&self) {
        loop {
            self.0.arrived.notified().await;
            // All in one turn: on one thread with many who post, a post a turn would be too slow.
            while self.drain() {}
        }
    }

    /// What the workers of `epoch` have told since this was last asked, and which of `processes` are
    /// stopped; nothing if another epoch runs.
    #[must_use]
    pub fn observe(&self, epoch: Epoch, processes: &[WorkerProcess]) -> Option<Observation> {
        while self.drain() {}
        let mut current = self.current();
        let lost = self.queue().lost();
        let running = current.running.as_mut().filter(|running| running.scope.epoch == epoch)?;
        running.work.lose(lost);
        Some(running.observe(processes))
    }

    /// A look at what it knows.
    #[must_use]
    pub fn view(&self) -> View {
        let current = self.current();
        let counts = current.counts(&self.queue());
        let readers = self.readers().clone();
        let agent = *self.agent();
        let Some(running) = &current.running else {
            return View { vitals: current.vitals(), counts, readers, agent, ..View::default() };
        };
        let means = |latest: &BTreeMap<Rank, (u64, u64)>| {
            latest.iter().map(|(peer, (_, mean_ns))| (*peer, *mean_ns)).collect()
        };
        View {
            scope: Some(running.scope.clone()),
            latencies_ns: means(&running.latest),
            unverified_latencies_ns: means(&running.unverified_latest),
            usage: running.usage.latest().to_vec(),
            vitals: current.vitals(),
            counts,
            readers,
            agent,
        }
    }

    /// Looks at how busy the machine is, whether an epoch runs or not.
    pub fn look_at_machine(&self) {
        self.current().machine.look();
    }

    /// How the node was when it was last looked at, and its workers as of the last observation; for a
    /// report's message. Of accelerators it knows nothing.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.current().vitals()
    }

    /// The epoch that is open.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.current().running.as_ref().map(|running| running.scope.epoch)
    }

    /// Takes note of what a reader of files has seen until now.
    pub fn note_reader(&self, format: Format, counts: ReaderCounts) {
        self.readers().insert(format, counts);
    }

    /// Takes note of what the agent has counted until now.
    pub fn note_agent(&self, counts: OwnCounts) {
        *self.agent() = counts;
    }

    /// The rank of the worker with this process, as the last observation was told of it.
    #[must_use]
    pub fn rank_of_process(&self, pid: u32) -> Option<Rank> {
        let current = self.current();
        let latest = current.running.as_ref()?.usage.latest();
        latest.iter().find(|usage| usage.pid == pid).map(|usage| usage.rank)
    }

    /// Counts the entries that were put in first. Says whether there were any.
    fn drain(&self) -> bool {
        let mut current = self.current();
        let Some(batch) = self.queue().next() else { return false };
        batch.into_iter().for_each(|entry| current.count(entry));
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
    fn close(&mut self, queue: &mut Queue) {
        self.stale = self.stale.saturating_add(queue.clear());
        if let Some(running) = self.running.take() {
            self.past = self.past.plus(&running.tracker.counts());
        }
    }

    fn count(&mut self, entry: Entry) {
        let Some(running) = &mut self.running else {
            self.stale += 1;
            return;
        };
        if entry.epoch.is_some_and(|epoch| epoch != running.scope.epoch) {
            self.stale += 1;
            return;
        }
        match entry.told {
            Told::Operation(record) => running.take(&record),
            Told::Computed { rank, step, name, start_us, end_us } => {
                running.computed((rank, step), &name, (start_us, end_us));
            }
            Told::StepEnded { rank, step } => running.step_ended(rank, step),
            Told::Group { group, members } => running.learn(group, members),
            Told::Checkpoint { rank, finished } => {
                if !running.scope.ranks.contains(&rank.0) {
                    self.foreign_checkpoints += 1;
                } else if finished {
                    running.checkpoints.remove(&rank);
                } else {
                    running.checkpoints.insert(rank, Instant::now());
                }
                running.tracker.excuse(!running.checkpoints.is_empty());
            }
        }
    }

    /// Takes entries that are shown, and are evidence of nothing.
    fn show(&mut self, entries: Vec<Entry>) {
        self.unverified = self.unverified.saturating_add(entries.len().try_into().unwrap_or(0));
        let Some(running) = &mut self.running else { return };
        for entry in entries {
            let is_now = entry.epoch.is_none_or(|epoch| epoch == running.scope.epoch);
            if let (Told::Operation(record), true) = (entry.told, is_now) {
                let _ = running.unverified.take(&record);
            }
        }
    }

    fn vitals(&self) -> Vitals {
        let workers = self.running.iter().flat_map(|running| running.usage.latest());
        let processes = workers.map(|usage| vitals::WorkerProcess {
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
            devices: Vec::new(),
        }
    }

    fn counts(&self, queue: &Queue) -> IntakeCounts {
        let running = self.running.as_ref().map(|running| running.tracker.counts());
        IntakeCounts {
            stale: self.stale,
            foreign_checkpoints: self.foreign_checkpoints,
            unverified: self.unverified,
            tracker: running.map_or(self.past, |counts| self.past.plus(&counts)),
            ..queue.counts()
        }
    }
}

// === impl Running ===

impl Running {
    fn learn(&mut self, group: crate::group::GroupId, members: Vec<Rank>) {
        let world_size = self.scope.world_size;
        let is_within = members.iter().all(|rank| rank.0 < world_size);
        let fits = u32::try_from(members.len()).is_ok_and(|size| size <= world_size);
        if is_within && fits {
            self.tracker.learn_group(group, members);
        } else {
            self.tracker.refuse_group();
        }
    }

    /// Takes a record; what the tracker refuses, it counts. One of a training step that has ended is kept in the log.
    fn take(&mut self, record: &CollectiveRecord) {
        let Ok(event) = self.tracker.take(record) else { return };
        let (Some(step), Stage::Ended { start_us, end_us }) = (record.step, record.stage) else {
            return;
        };
        let (rank, work) = match event {
            CollectiveEvent::TransferEnded(key, Some(_)) => {
                let EdgeKey { group, rank, peer, direction, bucket } = key;
                (rank, Work::Transfer { direction, peer, group, bucket })
            }
            CollectiveEvent::CollectiveEnded(key, Some(_)) => {
                let WaitKey { group, rank, collective, bucket } = key;
                let members = record.context_size;
                (rank, Work::Collective { collective, group, members, bucket })
            }
            _ => return,
        };
        let duration_us = end_us.abs_diff(start_us);
        self.work.push(Operation { rank, step, work, start_us, duration_us });
    }

    fn computed(&mut self, (rank, step): (Rank, u64), name: &str, (start_us, end_us): (i64, i64)) {
        let duration_us = u64::try_from(end_us.saturating_sub(start_us)).ok();
        let duration_us = duration_us.filter(|duration| *duration <= MAX_DURATION_US);
        let is_own = self.scope.ranks.contains(&rank.0);
        let Some(duration_us) = duration_us.filter(|_| is_own) else {
            self.tracker.refuse(is_own);
            return;
        };
        let work = Work::Compute(self.work.name(name));
        self.work.push(Operation { rank, step, work, start_us, duration_us });
    }

    fn step_ended(&mut self, rank: Rank, step: u64) {
        if !self.scope.ranks.contains(&rank.0) {
            self.tracker.refuse(false);
            return;
        }
        let (start_us, duration_us) = (0, 0);
        self.work.push(Operation { rank, step, work: Work::StepEnd, start_us, duration_us });
    }

    fn observe(&mut self, processes: &[WorkerProcess]) -> Observation {
        let now = Instant::now();
        self.checkpoints.retain(|_, since| now.duration_since(*since) < MAX_CHECKPOINT);
        self.tracker.excuse(!self.checkpoints.is_empty());
        let mut observation = Observation::default();
        self.tracker.report(&mut observation);
        remember(&mut self.latest, &observation);
        let mut aside = Observation::default();
        self.unverified.report(&mut aside);
        remember(&mut self.unverified_latest, &aside);
        self.usage.sample(processes, now);
        observation.withheld = self.processor.sample(processes, now);
        observation.traffic = self.connections.sample(processes, now);
        let stopped = self.usage.latest().iter().filter(|usage| usage.is_stopped);
        observation.operations = self.work.report();
        observation.workers = stopped
            .map(|usage| WorkerObservation { rank: usage.rank, state: WorkerState::Stopped })
            .collect();
        observation
    }
}

/// Averages over groups, directions and sizes, as the original shows latencies.
fn remember(latest: &mut BTreeMap<Rank, (u64, u64)>, observation: &Observation) {
    let mut sums: BTreeMap<Rank, (u64, u128)> = BTreeMap::new();
    for edge in &observation.edges {
        let (count, sum_ns) = sums.entry(edge.key.peer).or_default();
        *count += u64::from(edge.window.count);
        *sum_ns += u128::from(edge.window.count) * u128::from(edge.window.mean_ns);
    }
    for (peer, (count, sum_ns)) in sums {
        let mean_ns = sum_ns / u128::from(count.max(1));
        let mean_ns = u64::try_from(mean_ns).expect("a mean is no more than the largest");
        latest.insert(peer, (count, mean_ns));
    }
}

#[cfg(test)]
mod tests;
