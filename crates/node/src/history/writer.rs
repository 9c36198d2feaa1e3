//! The thread that writes: a bounded queue of snapshots at one end, the database at the other. What
//! goes wrong is reported, counted and tried again; the service goes on.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{info, warn};

use telltale_schema::clock::Clock;
use telltale_schema::process::parse_boot_id;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;

use super::database::{DatabaseError, is_damage};
use super::directory::{DatabaseFiles, DirectoryError, OwnDirectory, database_in};
use super::recorder::{ClosedBlock, Recorder};
use super::shared::{ReadHealth, SharedReader};
use super::store::{Store, StoreError};
use super::{HistoryOptions, blocks};
use crate::service::HistoryMetrics;

/// Snapshots that wait; a thread that writes for longer misses some, which is counted.
const MAX_WAITING: usize = 16;
/// Blocks that wait for a disk with room.
const MAX_UNWRITTEN: usize = 6;
/// The time from one try to open a database that does not open to the next.
const RETRY: Duration = Duration::from_secs(10);
/// The time from one search for old processes to the next.
const TIDYING: Duration = Duration::from_secs(300);
/// Coarser blocks that are made in a row, before the queue is checked again.
const MAX_COARSER: usize = 4;

/// Why no history is kept.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The database cannot.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The system gives no thread.
    #[error("the system gives the history no thread; raise its limits")]
    Thread(#[source] std::io::Error),
}

/// Keeps the history. Dropping it writes all there is, and ends its thread.
pub struct HistoryWriter {
    queue: Option<SyncSender<Offer>>,
    clock: Arc<dyn Clock>,
    counts: Arc<WriterCounts>,
    database: PathBuf,
    reading: Arc<ReadHealth>,
    thread: Option<JoinHandle<()>>,
}

/// A snapshot, and when it was offered, on a clock that never goes back.
type Offer = (Arc<Snapshot>, u64);

/// What the thread and its callers share.
#[derive(Debug, Default)]
struct WriterCounts {
    /// The longest time from one snapshot to the next that is no gap.
    longest_ms: AtomicU64,
    recorded: AtomicU64,
    missed: AtomicU64,
    lost_blocks: AtomicU64,
    failures: AtomicU64,
    left_out: AtomicU64,
    bytes: AtomicU64,
    problem: Mutex<Option<String>>,
}

// === impl HistoryWriter ===

impl HistoryWriter {
    /// Keeps a history in `directory`, of snapshots that come each `interval` or more often, until
    /// [`Self::set_interval`] says otherwise.
    ///
    /// # Errors
    /// When the directory cannot be used, another service writes there, or a newer version did. A
    /// damaged database is moved aside; a disk that is full is tried again.
    pub fn start(
        directory: &Path,
        options: &HistoryOptions,
        interval: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, HistoryError> {
        let own = OwnDirectory::take(directory)?;
        let (counts, reading) =
            (Arc::new(WriterCounts::default()), Arc::new(ReadHealth::default()));
        counts.longest_ms.store(longest_ms(interval), Ordering::Relaxed);
        let (queue, offers) = sync_channel(MAX_WAITING);
        let mut thread = Thread {
            path: own.database()?,
            own,
            options: options.clone(),
            open: None,
            files: None,
            tried: None,
            unwritten: VecDeque::new(),
            tidied: Instant::now(),
            counts: Arc::clone(&counts),
            reading: Arc::clone(&reading),
        };
        match thread.open() {
            Err(HistoryError::Database(error @ DatabaseError::Sqlite { .. })) => {
                thread.counts.has_problem(&with_causes(&error));
            }
            opened => opened?,
        }
        let thread = std::thread::Builder::new()
            .name("telltale-history".to_owned())
            .stack_size(512 << 10)
            .spawn(move || thread.run(&offers))
            .map_err(HistoryError::Thread)?;
        let database = database_in(directory);
        Ok(Self { queue: Some(queue), clock, counts, database, reading, thread: Some(thread) })
    }

    /// What servers of this process read the history by. What goes wrong there is in
    /// [`Self::metrics`].
    #[must_use]
    pub fn reader(&self) -> SharedReader {
        SharedReader::reporting_to(self.database.clone(), Arc::clone(&self.reading))
    }

    /// From now on snapshots come each `interval` or more often: what is much longer is a gap.
    pub fn set_interval(&self, interval: Duration) {
        self.counts.longest_ms.store(longest_ms(interval), Ordering::Relaxed);
    }

    /// Offers a snapshot, and never waits: one that finds the queue full is counted as missed.
    pub fn offer(&self, snapshot: Arc<Snapshot>) {
        let offer = (snapshot, self.clock.monotonic_ns());
        let Some(queue) = &self.queue else { return };
        match queue.try_send(offer) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.counts.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// How the history does.
    #[must_use]
    pub fn metrics(&self) -> HistoryMetrics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let problem = self.counts.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_failures, read_problem) = self.reading.metrics();
        HistoryMetrics {
            recorded: count(&self.counts.recorded),
            missed: count(&self.counts.missed),
            lost_blocks: count(&self.counts.lost_blocks),
            failures: count(&self.counts.failures).saturating_add(read_failures),
            left_out: count(&self.counts.left_out),
            bytes: count(&self.counts.bytes),
            problem: problem.clone().or(read_problem),
        }
    }
}

impl std::fmt::Debug for HistoryWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Writer").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Drop for HistoryWriter {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported it.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Thread {
    own: OwnDirectory,
    path: PathBuf,
    options: HistoryOptions,
    open: Option<(Store, Recorder)>,
    /// Which files are open.
    files: Option<DatabaseFiles>,
    /// When opening was last tried, where it failed.
    tried: Option<Instant>,
    /// Blocks that wait to be written, the oldest first.
    unwritten: VecDeque<ClosedBlock>,
    tidied: Instant,
    counts: Arc<WriterCounts>,
    reading: Arc<ReadHealth>,
}

// === impl Thread ===

impl Thread {
    fn run(mut self, offers: &Receiver<Offer>) {
        loop {
            match offers.recv_timeout(RETRY) {
                Ok((snapshot, monotonic_ns)) => self.record(&snapshot, monotonic_ns),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.finish();
        if let Some((store, _)) = &self.open {
            store.tidy();
        }
    }

    fn record(&mut self, snapshot: &Snapshot, monotonic_ns: u64) {
        self.open_again();
        if self.reading.take_suspicion() && self.open.is_some() && !self.has_its_files() {
            self.open_other_files();
        }
        let Some((store, recorder)) = &mut self.open else {
            self.counts.missed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        recorder.set_longest(self.counts.longest_ms.load(Ordering::Relaxed));
        let closed = recorder.record(snapshot, monotonic_ns, |identity| store.find(identity));
        self.counts.recorded.fetch_add(1, Ordering::Relaxed);
        self.counts.left_out.store(recorder.left_out, Ordering::Relaxed);
        if let Some(block) = closed {
            self.write(Some(block));
        }
    }

    /// Writes what there is of the open block, at the end.
    fn finish(&mut self) {
        let block = self.open.as_mut().and_then(|(_, recorder)| recorder.finish());
        if self.open.is_some() {
            self.write(block);
        }
    }

    fn write(&mut self, block: Option<ClosedBlock>) {
        self.unwritten.extend(block);
        if !self.has_its_files() {
            return self.open_other_files();
        }
        let Some((store, recorder)) = &mut self.open else { return };
        let written = store.write(&self.unwritten, recorder).and_then(|()| {
            self.unwritten.clear();
            for _ in 0..MAX_COARSER {
                if !store.make_coarser()? {
                    break;
                }
            }
            if self.tidied.elapsed() > TIDYING {
                self.tidied = Instant::now();
                store.forget_ended()?;
            }
            Ok(())
        });
        self.counts.bytes.store(store.bytes(), Ordering::Relaxed);
        match written {
            Ok(()) => {
                self.counts.has_no_problem();
                self.reading.look_again(&self.path);
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &StoreError) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        self.counts.has_problem(&with_causes(error));
        while self.unwritten.len() > MAX_UNWRITTEN {
            self.unwritten.pop_front();
            self.counts.lost_blocks.fetch_add(1, Ordering::Relaxed);
        }
        if let StoreError::Sqlite(source) = error
            && is_damage(source)
        {
            self.give_up_file();
            if let Err(error) = self.start_anew() {
                self.counts.has_problem(&with_causes(&error));
            }
        }
    }

    /// Gives up the file that is open, and with it what is in memory, which belongs to its rows.
    fn give_up_file(&mut self) {
        let lost = u64::try_from(self.unwritten.len()).unwrap_or(u64::MAX);
        self.counts.lost_blocks.fetch_add(lost, Ordering::Relaxed);
        self.unwritten.clear();
        self.open = None;
    }

    /// Whether what is open is what others find by its names.
    fn has_its_files(&self) -> bool {
        self.own.is_there() && self.files == Some(DatabaseFiles::of(&self.path))
    }

    /// Another process removed or replaced files that are open: what is written to them cannot be read.
    fn open_other_files(&mut self) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        let directory = self.own.path().display().to_string();
        let now = DatabaseFiles::of(&self.path);
        let has_database =
            self.own.is_there() && self.files.is_some_and(|files| files.is_same_database(now));
        if has_database {
            let words =
                format!("its log (-wal, -shm) in {directory} was removed while it was open");
            self.counts.has_problem(&words);
            return match self.save_log() {
                Ok(0) => info!("the history is open again, and nothing of it was lost"),
                Ok(lost) => {
                    self.counts.lost_blocks.fetch_add(lost, Ordering::Relaxed);
                    warn!("the history is open again; it lost {lost} blocks");
                }
                Err(error) => self.counts.has_problem(&with_causes(&error)),
            };
        }
        let words = format!("its files in {directory} were removed or replaced");
        self.counts.has_problem(&words);
        match self.open_replaced() {
            Ok(()) => info!("the history is open again, as it is in {directory}"),
            Err(error) => self.counts.has_problem(&with_causes(&error)),
        }
    }

    /// Gives up the database that is open, and opens what is in its place, or a new one.
    fn open_replaced(&mut self) -> Result<(), HistoryError> {
        let reading = Arc::clone(&self.reading);
        let _alone = reading.without_readers();
        self.give_up_file();
        if let Some(files) = self.files.take() {
            let failed = |source| DirectoryError::Use { path: self.own.path().to_owned(), source };
            files.remove_log(&self.path).map_err(failed)?;
        }
        self.open()?;
        self.reading.has_other_files();
        Ok(())
    }

    /// Takes over into the database what only the removed log has, which is still open here, and opens
    /// the database with a new one. Gives how many blocks were lost.
    fn save_log(&mut self) -> Result<u64, HistoryError> {
        let reading = Arc::clone(&self.reading);
        // SQLite keeps one index for all connections of a process, and a reader would keep the old one.
        let _alone = reading.without_readers();
        let Some((store, recorder)) = self.open.take() else { return Ok(0) };
        let had = store.blocks().unwrap_or_default();
        store.tidy();
        drop(store);
        self.open()?;
        let Some((store, opened)) = &mut self.open else { return Ok(0) };
        let has = store.blocks().unwrap_or_default();
        if had == has {
            // What is in memory belongs to the rows that are there.
            *opened = recorder;
            return Ok(0);
        }
        let unwritten = std::mem::take(&mut self.unwritten).len();
        let lost = u64::try_from(had.0.saturating_sub(has.0)).unwrap_or(0);
        Ok(lost.saturating_add(u64::try_from(unwritten).unwrap_or(u64::MAX)))
    }

    /// Tries to open a database that did not open before, now and then.
    fn open_again(&mut self) {
        if self.open.is_some() || self.tried.is_some_and(|tried| tried.elapsed() < RETRY) {
            return;
        }
        match self.open() {
            Ok(()) => self.counts.has_no_problem(),
            Err(error) => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                self.counts.has_problem(&with_causes(&error));
            }
        }
    }

    /// Opens the database; one that is damaged is moved aside and a new one begun.
    fn open(&mut self) -> Result<(), HistoryError> {
        self.tried = Some(Instant::now());
        if !self.own.is_there() {
            self.own = OwnDirectory::take(self.own.path())?;
        }
        self.path = self.own.database()?;
        match self.open_as_it_is() {
            Err(DatabaseError::Broken { .. }) => self.start_anew(),
            opened => Ok(opened?),
        }
    }

    fn start_anew(&mut self) -> Result<(), HistoryError> {
        let aside = self.own.set_aside()?;
        warn!("the history is damaged: moved to {}, starting a new one", aside.display());
        self.path = self.own.database()?;
        self.open_as_it_is()?;
        self.reading.has_other_files();
        Ok(())
    }

    fn open_as_it_is(&mut self) -> Result<(), DatabaseError> {
        let store = Store::open(&self.path, self.options.max_mebibytes.saturating_mul(1 << 20))?;
        let longest_ms = self.counts.longest_ms.load(Ordering::Relaxed);
        let block_ms = i64::try_from(self.options.write_seconds).unwrap_or(i64::MAX);
        let recorder = store
            .recorder(block_ms.saturating_mul(1000), longest_ms, boot_id())
            .map_err(|source| match is_damage(&source) {
                true => DatabaseError::Broken { path: self.path.clone() },
                false => DatabaseError::Sqlite { path: self.path.clone(), source },
            })?;
        self.counts.bytes.store(store.bytes(), Ordering::Relaxed);
        self.files = Some(DatabaseFiles::of(&self.path));
        self.open = Some((store, recorder));
        Ok(())
    }
}

/// What a sample stands for at most: a few late collections are no gap.
fn longest_ms(interval: Duration) -> u64 {
    let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let most = blocks::LONGEST_SAMPLE_MS.unsigned_abs();
    interval_ms.saturating_mul(3).max(5_000).min(most)
}

// === impl WriterCounts ===

impl WriterCounts {
    /// Notes what is wrong, and tells it once.
    fn has_problem(&self, words: &str) {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if problem.as_deref() != Some(words) {
            warn!("no history is written: {words}");
            *problem = Some(words.to_owned());
        }
    }

    fn has_no_problem(&self) {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if problem.take().is_some() {
            info!("the history is written again");
        }
    }
}

/// The machine's boot, by which processes of earlier ones are reported to have ended.
pub(super) fn boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    parse_boot_id(&text)
}
