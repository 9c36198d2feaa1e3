//! What processes and their host use of processors, memory and storage: read while a view shows it.
//!
//! Two small files of each process and four of the host, from which rates follow from one reading to
//! the next. Nothing is read, and nothing kept, while no one asks.

mod host;
mod process;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{HostUsage, Process, ProcessState, ProcessUsage};

use crate::processes::{Booted, Procfs};
use crate::rate::SampledAt;
use crate::timeout::{CallLimits, TaskName, Timeout};
use crate::tree::{Directory, Unreadable};
use host::HostRates;
use process::{ProcessCounters, ProcessRates};

/// The group of the host's files: no process has this pid.
const HOST_GROUP: u32 = 0;

/// Reads what is used, and follows it while someone looks.
#[derive(Debug)]
pub(crate) struct UsageReader {
    /// None while no one looks.
    followed: Option<UsageRates>,
    timeout: Timeout,
    limits: CallLimits,
}

/// The rates of processes and of their host.
#[derive(Debug, Default)]
struct UsageRates {
    /// By pid and start.
    processes: HashMap<(u32, u64), ProcessRates>,
    host: HostRates,
}

/// A file that may hang while it is read.
enum UsageFile {
    /// One of the host's: they may be those of a file system in user space, as LXCFS has them.
    Host(Arc<Procfs>, &'static str),
    /// The storage counters of the process whose directory this is.
    Storage(Directory),
}

/// What a file had, or why it could not be read, and when.
type FileText = (Result<Vec<u8>, Unreadable>, SampledAt);

// === impl UsageReader ===

impl UsageReader {
    /// One that follows nothing yet. Files that may hang may take this long.
    pub(crate) fn new(limits: CallLimits) -> Self {
        Self { followed: None, timeout: Timeout::default(), limits }
    }

    /// From now on follows what is used, or forgets it.
    pub(crate) fn follow(&mut self, wanted: bool) {
        match wanted {
            true => _ = self.followed.get_or_insert_default(),
            false => self.followed = None,
        }
    }

    /// Whether it follows anything.
    pub(crate) fn is_following(&self) -> bool {
        self.followed.is_some()
    }

    /// Fills in what these processes use, and returns what all together do; none where it follows
    /// nothing. A file that hangs costs what it has, and no more time than the limits allow.
    pub(crate) fn read(
        &mut self,
        (procfs, booted): (&Arc<Procfs>, Booted),
        processes: &mut [Process],
        now: SampledAt,
    ) -> Option<HostUsage> {
        let followed = self.followed.as_mut()?;
        let host = |(item, path)| {
            (TaskName { group: HOST_GROUP, item }, UsageFile::Host(Arc::clone(procfs), path))
        };
        let mut files: Vec<_> = (0..).zip(host::FILES).map(host).collect();
        let mut counted = Vec::new();
        for process in &*processes {
            counted.push(counters(process, procfs, booted).map(|(pid, counters, directory)| {
                files.push((TaskName { group: pid, item: 0 }, UsageFile::Storage(directory)));
                (pid, counters)
            }));
        }
        let mut texts = read_files(&self.timeout, files, self.limits, now).into_iter();
        let mut text = || texts.next().unwrap_or((Err(Unreadable::Hung), now));
        let host = followed.host.follow(host::FILES.map(|_| text()), now.at);
        let mut before = std::mem::take(&mut followed.processes);
        for (process, counted) in processes.iter_mut().zip(counted) {
            let usage = match counted {
                Err((reason, detail)) => ProcessUsage::absent(reason, &detail),
                Ok((pid, counters)) => {
                    let key = (pid, counters.start_ticks);
                    let mut rates = before.remove(&key).unwrap_or_default();
                    let usage = rates.follow((counters, now), text());
                    followed.processes.insert(key, rates);
                    usage
                }
            };
            process.usage = Some(Box::new(usage));
        }
        Some(host)
    }
}

/// The counters of a process that lives and can be seen, with its pid and directory.
fn counters(
    process: &Process,
    procfs: &Procfs,
    booted: Booted,
) -> Result<(u32, ProcessCounters, Directory), (Absence, String)> {
    let pid = match (process.state, process.pid) {
        (ProcessState::Dead, _) => return Err((Absence::Ended, String::new())),
        (ProcessState::Hidden, _) | (_, None) => return Err((Absence::Hidden, String::new())),
        (ProcessState::Alive, Some(pid)) => pid,
    };
    let (counters, directory) = ProcessCounters::read(procfs, pid)?;
    match process.started_at == Some(booted.start(counters.start_ticks)) {
        true => Ok((pid, counters, directory)),
        false => Err((Absence::Gone, String::new())),
    }
}

/// Reads files one after the other, in their order. `now` is before all of them.
fn read_files(
    timeout: &Timeout,
    files: Vec<(TaskName, UsageFile)>,
    limits: CallLimits,
    now: SampledAt,
) -> Vec<FileText> {
    let begun = Instant::now();
    let texts = timeout.run(files, UsageFile::read, limits);
    let timed = |text: Option<(Result<Vec<u8>, Unreadable>, Instant)>| match text {
        Some((text, at)) => (text, now.after(at.saturating_duration_since(begun))),
        None => (Err(Unreadable::Hung), now),
    };
    texts.into_iter().map(timed).collect()
}

// === impl UsageFile ===

impl UsageFile {
    fn read(&self) -> (Result<Vec<u8>, Unreadable>, Instant) {
        let text = match self {
            Self::Host(procfs, path) => procfs.common(path),
            Self::Storage(directory) => process::read_storage(directory),
        };
        (text, Instant::now())
    }
}
