//! What the service says of itself: its cost, and how its sources and queues did.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Snapshot, SourceStatus};

use super::shared::ServiceShared;

/// How the history does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryMetrics {
    /// Snapshots that were recorded.
    pub recorded: u64,
    /// Snapshots that were not, because the thread was busy or the database closed.
    pub missed: u64,
    /// Blocks that were lost, because the disk was full or failed for too long.
    pub lost_blocks: u64,
    /// Times that it could not be opened, written or read, or its files were removed.
    pub failures: u64,
    /// Processes and devices, over all snapshots, for which there was no room.
    pub left_out: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// What is wrong now; none when all is well.
    pub problem: Option<String>,
}

/// What the legacy socket did since the service was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LegacyMetrics {
    /// Connections that are open.
    pub connections: u64,
    /// Messages by type.
    pub messages: Vec<(&'static str, u64)>,
    /// What was refused, messages and connections, by reason.
    pub refused: Vec<(&'static str, u64)>,
}

/// The service's own metrics since it was started.
#[derive(Debug, Clone)]
pub struct ServiceMetrics {
    /// When it was started.
    pub started_at: Timestamp,
    /// CPU time of the whole process, in seconds.
    pub cpu_seconds: f64,
    /// Memory of the whole process that is resident, in bytes.
    pub resident_bytes: Reading<u64>,
    /// Collections so far.
    pub collections: u64,
    /// How long they took together, in seconds.
    pub collection_seconds: f64,
    /// How often the configuration was read again.
    pub reloads: u64,
    /// How often it was refused then, and the one before was kept.
    pub refused_reloads: u64,
    /// Runtime directories that have more names than are checked, at the last collection.
    pub truncated_directories: u64,
    /// What was dropped, by queue, in the order of their names.
    pub drops: Vec<QueueDrops>,
    /// The sources, in the order of the snapshot's.
    pub sources: Vec<SourceMetrics>,
    /// What the legacy socket did; none where there is none.
    pub legacy: Option<LegacyMetrics>,
    /// How the history does; none where none is wanted.
    pub history: Option<HistoryMetrics>,
}

/// What one queue or limit has dropped or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDrops {
    /// The queue.
    pub queue: &'static str,
    /// How many.
    pub total: u64,
}

/// One source over all collections.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceMetrics {
    /// Its name, as in the snapshot.
    pub name: String,
    /// Errors so far, those that a snapshot had no room for included.
    pub errors: u64,
    /// Entries and claims of other users that it did not use, so far.
    pub notes: u64,
    /// How long it was asked for, in seconds.
    pub seconds: f64,
}

/// What one source has done since the service's start.
#[derive(Debug)]
struct SourceSums {
    name: String,
    errors: u64,
    notes: u64,
    duration_ns: u64,
}

/// Adds up over collections.
#[derive(Debug)]
pub(crate) struct CollectionTotals {
    started_at: Timestamp,
    collections: u64,
    collection_ns: u64,
    sources: Vec<SourceSums>,
}

// === impl ServiceMetrics ===

impl ServiceMetrics {
    /// Those of a service that was started at this moment and has done nothing yet.
    #[must_use]
    pub fn at_start(started_at: Timestamp) -> Self {
        Self {
            started_at,
            cpu_seconds: 0.0,
            resident_bytes: Reading::absent(Absence::NotYet, ""),
            collections: 0,
            collection_seconds: 0.0,
            reloads: 0,
            refused_reloads: 0,
            truncated_directories: 0,
            drops: Vec::new(),
            sources: Vec::new(),
            legacy: None,
            history: None,
        }
    }
}

// === impl CollectionTotals ===

impl CollectionTotals {
    pub(crate) fn new(started_at: Timestamp) -> Self {
        Self { started_at, collections: 0, collection_ns: 0, sources: Vec::new() }
    }

    /// Counts one collection. What was not read again for it, those in `repeated`, has been counted.
    pub(crate) fn count(&mut self, snapshot: &Snapshot, repeated: &[&str]) {
        self.collections += 1;
        self.collection_ns = self.collection_ns.saturating_add(snapshot.collected_in_ns);
        let is_new = |status: &&SourceStatus| !repeated.contains(&status.name.as_str());
        for status in snapshot.sources.iter().filter(is_new) {
            self.count_source(status);
        }
    }

    fn count_source(&mut self, status: &SourceStatus) {
        let found = self.sources.iter_mut().position(|one| one.name == status.name);
        let index = found.unwrap_or_else(|| {
            let name = status.name.clone();
            self.sources.push(SourceSums { name, errors: 0, notes: 0, duration_ns: 0 });
            self.sources.len() - 1
        });
        let sums = &mut self.sources[index];
        let kept = u64::try_from(status.errors.len()).unwrap_or(u64::MAX);
        sums.errors = sums.errors.saturating_add(kept).saturating_add(status.errors_dropped);
        for note in &status.notes {
            sums.notes = sums.notes.saturating_add(note.count);
        }
        sums.duration_ns = sums.duration_ns.saturating_add(status.duration_ns);
    }

    /// The metrics now.
    pub(crate) fn now(&self, shared: &ServiceShared, at: Timestamp) -> ServiceMetrics {
        let (reloads, refused_reloads) = shared.reloads();
        let source = |one: &SourceSums| SourceMetrics {
            name: one.name.clone(),
            errors: one.errors,
            notes: one.notes,
            seconds: seconds(one.duration_ns),
        };
        ServiceMetrics {
            started_at: self.started_at,
            cpu_seconds: seconds(telltale_collector::clock::cpu_ns()),
            resident_bytes: resident_bytes(at),
            collections: self.collections,
            collection_seconds: seconds(self.collection_ns),
            reloads,
            refused_reloads,
            truncated_directories: 0,
            drops: shared.tallies().all(),
            sources: self.sources.iter().map(source).collect(),
            legacy: None,
            history: shared.history(),
        }
    }
}

/// Nanoseconds as seconds; a double keeps them exact for 104 days and to a microsecond for ever.
#[allow(clippy::cast_precision_loss)]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// What of this process is in memory, by `/proc/self/statm` (proc_pid_statm(5)).
fn resident_bytes(at: Timestamp) -> Reading<u64> {
    let text = match std::fs::read_to_string("/proc/self/statm") {
        Ok(text) => text,
        Err(error) => return Reading::absent(Absence::Failed, error.to_string()),
    };
    let pages = text.split_ascii_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    match pages {
        Some(pages) => Reading::new(pages.saturating_mul(page), at),
        None => Reading::absent(Absence::NotUnderstood, "/proc/self/statm"),
    }
}

#[cfg(test)]
mod tests {
    use super::{CollectionTotals, ServiceShared, resident_bytes};
    use std::time::Duration;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::Absence;
    use telltale_schema::snapshot::{Snapshot, SourceError, SourceNote, SourceStatus};

    #[test]
    fn errors_and_durations_add_up_by_source() {
        let error =
            SourceError { subject: "a".to_owned(), reason: Absence::Failed, detail: String::new() };
        let snapshot = Snapshot {
            collected_in_ns: 500_000_000,
            sources: vec![SourceStatus {
                name: "ledgers".to_owned(),
                duration_ns: 250_000_000,
                errors: vec![error],
                errors_dropped: 2,
                notes: vec![SourceNote {
                    subject: "user 61001".to_owned(),
                    count: 5,
                    detail: String::new(),
                }],
            }],
            ..Snapshot::empty(Timestamp(1))
        };
        let mut metrics = CollectionTotals::new(Timestamp(1));
        metrics.count(&snapshot, &[]);
        metrics.count(&snapshot, &["kubelet"]);
        metrics.count(&snapshot, &["ledgers"]);
        let shared = ServiceShared::new(Duration::from_secs(1)).unwrap();
        let now = metrics.now(&shared, Timestamp(2));
        assert_eq!((now.collections, now.collection_seconds), (3, 1.5));
        assert_eq!((now.sources[0].errors, now.sources[0].seconds), (6, 0.5));
        assert_eq!(now.sources[0].notes, 10);
        assert!(now.cpu_seconds > 0.0);
    }

    #[test]
    fn some_of_this_process_is_in_memory() {
        let resident = resident_bytes(Timestamp(1));
        assert!(resident.value().is_some_and(|bytes| *bytes > 100_000), "{resident:?}");
    }
}
