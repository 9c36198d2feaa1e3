//! What the node's workers tell their agent of their collectives, from the post to the report.
//!
//! [`Queue`] takes what is posted, [`Counting`] counts it and makes observations of it, and [`Intake`] is both on
//! one thread. They decide nothing and keep no entry beyond the queue. How the workers' processes are is looked up by
//! others ([`Observed`]).

pub mod entry;
pub mod formats;
mod queue;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::epoch::Epoch;
use crate::latency::record::{CollectiveEvent, CollectiveRecord, MAX_DURATION_US, Stage};
use crate::latency::{EdgeKey, WaitKey};
use crate::message::Assignment;
use crate::observation::{Observation, Traffic, Withheld, WorkerObservation, WorkerState};
use crate::rank::Rank;
use crate::tracking::progress::LatestCollective;
use crate::tracking::tracker::{Tracker, TrackerCounts};
use crate::tracking::windows::WindowLength;
use crate::work::log::WorkLog;
use crate::work::{FinishedOperation, Work};

use entry::{EntryContent, EntryRefused, PostEntry, PostRefused};

pub use queue::{MAX_QUEUED_ENTRIES, Queue};

/// How long a rank's checkpoint may excuse it, unless its end is reported before.
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

/// The process of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerProcess {
    /// Which worker.
    pub rank: Rank,
    /// The process that the agent started for it and has not waited for.
    pub pid: u32,
}

/// What one worker uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkerUsage {
    /// Which worker.
    pub rank: Rank,
    /// The process that the agent started for it.
    pub pid: u32,
    /// Whether the system says that it is stopped.
    pub is_stopped: bool,
    /// Its resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time it has used since it began, in seconds.
    pub cpu_seconds: f64,
    /// Of one processor, the share it has used since the last evaluation; nothing at the first.
    pub cpu_ratio: Option<f64>,
}

/// How the workers' processes were found to be since the last evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// What each uses.
    pub usage: Vec<WorkerUsage>,
    /// Processor time that was withheld from them.
    pub withheld: Vec<Withheld>,
    /// What their connections carried.
    pub traffic: Vec<Traffic>,
}

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
    /// Entries that are shown, but not reported, since any process may have made them.
    pub unverified: u64,
    /// What became of the rest.
    pub tracker: TrackerCounts,
}

/// Whether a post is known to come from the node's workers, or from a user who may end them anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// It is: what it says is evidence.
    Verified,
    /// It may be anybody's of this machine: it is shown, and decides nothing.
    Unverified,
}

/// What became of one post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostOutcome {
    /// Entries that made sense and were not dropped. Those of senders who are not verified are only shown.
    pub queued: usize,
    /// Entries that made no sense.
    pub refused: usize,
    /// What is wrong with the first of these.
    pub first_refused: Option<EntryRefused>,
    /// Entries that were dropped because the queue was full.
    pub dropped: usize,
}

/// Takes entries of workers and gives observations of them, on one thread.
#[derive(Debug, Default)]
pub struct Intake {
    queue: Queue,
    counting: Counting,
}

/// Counts entries, in the epoch that is open.
#[derive(Debug, Default)]
pub struct Counting {
    window: WindowLength,
    running: Option<RunningEpoch>,
    stale: u64,
    foreign_checkpoints: u64,
    unverified: u64,
    /// What the trackers of epochs that are over have counted.
    past: TrackerCounts,
}

/// What is known of the epoch that runs.
#[derive(Debug)]
struct RunningEpoch {
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
    work: WorkLog,
}

// === impl Scope ===

impl Scope {
    /// What an agent runs in `epoch` when it receives this.
    #[must_use]
    pub fn of(epoch: Epoch, assignment: &Assignment) -> Self {
        let first = assignment.first_rank.0;
        let behind = first.saturating_add(assignment.workers.get());
        Self { epoch, world_size: assignment.world_size, ranks: first..behind }
    }
}

// === impl Intake ===

impl Intake {
    /// An intake in which no epoch runs: what comes is counted as stale.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens an epoch: earlier reports are forgotten, and what comes is this epoch's.
    pub fn begin(&mut self, scope: Scope) {
        self.counting.begin(scope, &mut self.queue);
    }

    /// Takes the body of a post of the workers.
    ///
    /// # Errors
    /// When it cannot be read; nothing of it is taken then.
    pub fn post(&mut self, body: &[u8]) -> Result<PostOutcome, PostRefused> {
        self.queue.post(body)
    }

    /// Takes entries that were read elsewhere, and says how many were dropped.
    pub fn take(&mut self, entries: Vec<PostEntry>) -> usize {
        let given = entries.len();
        given - self.queue.put(entries, 0)
    }

    /// What the workers of `epoch` have reported since this was last asked; nothing if another epoch runs.
    pub fn observe(
        &mut self,
        epoch: Epoch,
        observed: &Observed,
        now: Instant,
    ) -> Option<Observation> {
        while self.counting.drain(&mut self.queue, now) {}
        self.counting.observe(epoch, self.queue.lost(), observed, now)
    }
}

// === impl Counting ===

impl Counting {
    /// One that keeps the latest `window` latencies of each kind.
    #[must_use]
    pub fn of_window(window: WindowLength) -> Self {
        Self { window, ..Self::default() }
    }

    /// Opens an epoch: earlier reports are forgotten, and what comes is this epoch's.
    pub fn begin(&mut self, scope: Scope, queue: &mut Queue) {
        self.end(queue);
        let tracker = Tracker::of_ranks(scope.ranks.clone(), scope.world_size, self.window);
        self.running = Some(RunningEpoch {
            scope,
            unverified: tracker.clone(),
            tracker,
            checkpoints: BTreeMap::new(),
            latest: BTreeMap::new(),
            unverified_latest: BTreeMap::new(),
            work: WorkLog::default(),
        });
    }

    /// Closes the epoch: nothing runs.
    pub fn end(&mut self, queue: &mut Queue) {
        self.stale = self.stale.saturating_add(queue.clear());
        if let Some(running) = self.running.take() {
            self.past = self.past.plus(&running.tracker.counts());
        }
    }

    /// The epoch's scope, while one is open.
    #[must_use]
    pub fn scope(&self) -> Option<&Scope> {
        self.running.as_ref().map(|running| &running.scope)
    }

    /// Counts the entries that were put in first. Says whether there were any.
    pub fn drain(&mut self, queue: &mut Queue, now: Instant) -> bool {
        let Some(batch) = queue.pop() else { return false };
        self.count_all(batch, now);
        true
    }

    /// Counts these, in their order.
    pub fn count_all(&mut self, entries: Vec<PostEntry>, now: Instant) {
        entries.into_iter().for_each(|entry| self.count(entry, now));
    }

    /// What the workers of `epoch` have reported since the last call, of which `lost` entries are known to be
    /// lost, and which are stopped; nothing if another epoch runs.
    pub fn observe(
        &mut self,
        epoch: Epoch,
        lost: u64,
        observed: &Observed,
        now: Instant,
    ) -> Option<Observation> {
        let running = self.running.as_mut().filter(|running| running.scope.epoch == epoch)?;
        running.work.lose(lost);
        Some(running.observe(observed, now))
    }

    /// The mean latency to each peer as it was last reported, in nanoseconds, as verified senders say, and as others do.
    #[must_use]
    pub fn latencies_ns(&self) -> [BTreeMap<Rank, u64>; 2] {
        let Some(running) = &self.running else { return [BTreeMap::new(), BTreeMap::new()] };
        [&running.latest, &running.unverified_latest]
            .map(|latest| latest.iter().map(|(peer, (_, mean_ns))| (*peer, *mean_ns)).collect())
    }

    fn count(&mut self, entry: PostEntry, now: Instant) {
        let Some(running) = &mut self.running else {
            self.stale += 1;
            return;
        };
        if entry.epoch.is_some_and(|epoch| epoch != running.scope.epoch) {
            self.stale += 1;
            return;
        }
        match entry.reported {
            EntryContent::Operation(record) => running.take(&record),
            EntryContent::Computed { rank, step, name, start_us, end_us } => {
                running.computed((rank, step), &name, (start_us, end_us));
            }
            EntryContent::StepEnded { rank, step } => running.step_ended(rank, step),
            EntryContent::Group { group, members } => running.learn(group, members),
            EntryContent::Checkpoint { rank, finished } => {
                if !running.scope.ranks.contains(&rank.0) {
                    self.foreign_checkpoints += 1;
                } else if finished {
                    running.checkpoints.remove(&rank);
                } else {
                    running.checkpoints.insert(rank, now);
                }
                running.tracker.excuse(!running.checkpoints.is_empty());
            }
        }
    }

    /// Takes entries that are shown, and are evidence of nothing.
    pub fn show(&mut self, entries: Vec<PostEntry>) {
        self.unverified = self.unverified.saturating_add(entries.len().try_into().unwrap_or(0));
        let Some(running) = &mut self.running else { return };
        for entry in entries {
            let is_now = entry.epoch.is_none_or(|epoch| epoch == running.scope.epoch);
            if let (EntryContent::Operation(record), true) = (entry.reported, is_now) {
                let _ = running.unverified.take(&record);
            }
        }
    }

    /// The latest collectives of the workers, as verified senders say.
    #[must_use]
    pub fn latest_collectives(&self) -> Vec<LatestCollective> {
        let running = self.running.iter();
        running.flat_map(|running| running.tracker.latest_collectives()).collect()
    }

    /// What became of entries since the start.
    #[must_use]
    pub fn counts(&self, queue: &Queue) -> IntakeCounts {
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

// === impl RunningEpoch ===

impl RunningEpoch {
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
        self.work.push(FinishedOperation { rank, step, work, start_us, duration_us });
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
        self.work.push(FinishedOperation { rank, step, work, start_us, duration_us });
    }

    fn step_ended(&mut self, rank: Rank, step: u64) {
        if !self.scope.ranks.contains(&rank.0) {
            self.tracker.refuse(false);
            return;
        }
        let (start_us, duration_us) = (0, 0);
        self.work.push(FinishedOperation {
            rank,
            step,
            work: Work::StepEnd,
            start_us,
            duration_us,
        });
    }

    fn observe(&mut self, observed: &Observed, now: Instant) -> Observation {
        self.checkpoints.retain(|_, since| now.duration_since(*since) < MAX_CHECKPOINT);
        self.tracker.excuse(!self.checkpoints.is_empty());
        let mut observation = Observation::default();
        self.tracker.report(&mut observation);
        remember(&mut self.latest, &observation);
        let mut aside = Observation::default();
        self.unverified.report(&mut aside);
        remember(&mut self.unverified_latest, &aside);
        observation.withheld.clone_from(&observed.withheld);
        observation.traffic.clone_from(&observed.traffic);
        let stopped = observed.usage.iter().filter(|usage| usage.is_stopped);
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
