//! Keeps a tt-metal region up to date beside the ledger, for a process that was asked to.
//!
//! Attaching, detaching and clearing up after dead processes happen under a lock on the region's
//! file; recording takes no lock, makes no allocation and no system call. The environment is the
//! caller's business. The file is never removed, and its size never changed once it has one.
#![forbid(unsafe_code)]

mod clearing;
mod ended;
mod open;
mod options;
mod own_rows;
mod table;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};

use super::findings::MAX_COUNTER_BYTES;
use super::layout::{CHIP_ROWS, RegionKind};
use super::name::file_name;
use super::read::{FileIdentity, open_directory};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use open::{Lock, map, open_or_create};
use own_rows::own_rows;
use table::{RegionTable, add, take};

pub use clearing::{Abandoned, Cleared, Ended, clear_dead};
pub use ended::ended_pids;
pub use options::{
    AttachError, DetachError, PidNamespace, RegionLayout, RegionLosses, RegionOptions,
};

/// How often attaching starts again because the file appeared or was removed meanwhile.
const MAX_ATTACH_ATTEMPTS: u32 = 8;

#[derive(Debug, Default)]
struct LossCounters {
    row_lost: AtomicBool,
    kind_records: AtomicU64,
    chip_records: AtomicU64,
    refused_records: AtomicU64,
    excess_free_bytes: AtomicU64,
}

/// One process's place in a region. Dropping it detaches.
///
/// Any number of threads may record at once. A forked child must not use its parent's writer; in
/// the child, dropping it does nothing.
#[derive(Debug)]
pub struct RegionWriter {
    descriptor: OwnedFd,
    file: FileIdentity,
    table: RegionTable,
    layout: RegionLayout,
    lock_wait: Duration,
    device_id: u32,
    pid: u32,
    creator: Pid,
    row: Option<usize>,
    row_missing: bool,
    is_attached: bool,
    /// What this process holds, if it has no row to say so.
    held: [AtomicU64; RegionKind::ALL.len()],
    /// What this process put into each chip row, to take it back on leaving.
    on_chips: [[AtomicU64; RegionKind::ALL.len()]; CHIP_ROWS],
    losses: LossCounters,
}

/// A row that might be a dead process's: place, pid, and stamp, which distinguishes a row from a later
/// one in its place.
type Suspect = (usize, u32, u64);

/// The rows of other processes that were there at one time, and which pids had ended after that.
struct Census {
    suspects: BTreeSet<Suspect>,
    ended: BTreeSet<u32>,
}

/// How far attaching got with one file.
enum Attached {
    /// All the way.
    Joined(Box<RegionWriter>),
    /// Another process removed the file meanwhile.
    FileGone,
    /// It must be found out which of these live, which takes too long for the lock.
    WhoLives(BTreeSet<Suspect>),
}

/// The rows that this process does not hold. Needs the lock.
///
/// One with our own pid is a predecessor's, or of a process with this number in another namespace.
fn suspects(table: &RegionTable, holds: impl Fn(usize, u32) -> bool) -> BTreeSet<Suspect> {
    let rows = table
        .taken_rows()
        .into_iter()
        .filter(|(row, pid)| i32::try_from(*pid).is_ok() && !holds(*row, *pid));
    rows.map(|(row, pid)| (row, pid, table.process_last_update(row).load(Ordering::Relaxed)))
        .collect()
}

/// Takes out the rows of dead processes: those that are as they were before the census, so that
/// none joined in between. Needs the lock.
fn reap(table: &RegionTable, suspects: &BTreeSet<Suspect>, census: &Census) {
    for (row, pid, _) in suspects.intersection(&census.suspects) {
        if census.ended.contains(pid) {
            table.take_from_only_chip(*row);
            table.vacate(*row, *pid);
        }
    }
}

impl RegionWriter {
    /// Joins the region in `directory`, usually `/dev/shm`, creating it if there is none, and
    /// clears up what dead processes left.
    ///
    /// # Errors
    /// As [`AttachError`] says; nothing of an existing region was changed then.
    pub fn attach(directory: &Path, options: &RegionOptions) -> Result<Self, AttachError> {
        Self::attach_with(directory, options, ended_pids)
    }

    /// As [`Self::attach`], with the caller's word on which of the given pids no other process has,
    /// instead of [`ended_pids`]'s. It is asked once at most, only with [`PidNamespace::Shared`],
    /// and without the lock.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub fn attach_with(
        directory: &Path,
        options: &RegionOptions,
        ended: impl FnOnce(&BTreeSet<u32>) -> BTreeSet<u32>,
    ) -> Result<Self, AttachError> {
        for (field, value) in [("device id", options.device_id), ("pid", options.pid)] {
            if i32::try_from(value).is_err() || (field == "pid" && value == 0) {
                return Err(AttachError::Options { field, value });
            }
        }
        let handle = open_directory(directory).map_err(|error| AttachError::Directory {
            directory: directory.into(),
            source: error.into(),
        })?;
        let name = file_name(options.name_id);
        let deadline = Instant::now() + options.lock_wait;
        let mut ended = Some(ended);
        let mut census = None;
        for _ in 0..MAX_ATTACH_ATTEMPTS {
            let opened = open_or_create(&handle, &name, options.layout.mode())?;
            let Some(descriptor) = opened else { continue };
            match Self::attach_to(descriptor, &name, options, census.as_ref(), deadline)? {
                Attached::Joined(writer) => return Ok(*writer),
                Attached::FileGone => {}
                Attached::WhoLives(suspects) => {
                    let pids = suspects.iter().map(|(_, pid, _)| *pid).collect();
                    let ended = ended.take().map(|ended| ended(&pids)).unwrap_or_default();
                    census = Some(Census { suspects, ended });
                }
            }
        }
        Err(AttachError::Busy { name })
    }

    fn attach_to(
        descriptor: OwnedFd,
        name: &str,
        options: &RegionOptions,
        census: Option<&Census>,
        deadline: Instant,
    ) -> Result<Attached, AttachError> {
        let busy = || AttachError::Busy { name: name.into() };
        let lock = Lock::take(&descriptor, deadline)
            .map_err(|error| AttachError::system(name, "lock", error))?
            .ok_or_else(busy)?;
        let layout = options.layout.table();
        let Some((file, mapping)) = map(descriptor.as_fd(), name, layout)? else {
            return Ok(Attached::FileGone);
        };
        let table = RegionTable::new(mapping, layout);
        let mut own_rows = own_rows(deadline).ok_or_else(busy)?;
        let now_ns = options.layout.now_ns();

        table.finish_intent();
        if !table.initialise(options.device_id) {
            return Err(AttachError::NotReady { name: name.into() });
        }
        if options.pid_namespace == PidNamespace::Shared {
            let suspects = suspects(&table, |row, pid| own_rows.contains(&(file, row, pid)));
            match census {
                Some(census) => reap(&table, &suspects, census),
                None if suspects.is_empty() => {}
                None => return Ok(Attached::WhoLives(suspects)),
            }
        }
        if table.is_idle() {
            table.reset(options.device_id);
        }
        table.write_identity(options.board_serial, options.asic_id, options.device_id);
        let must = !options.layout.rows_are_optional();
        let wanted = (must || options.per_pid)
            .then(|| table.enter(options.pid, &options.process_name, now_ns));
        let row = wanted.flatten();
        match row {
            Some(row) => drop(own_rows.insert((file, row, options.pid))),
            None if must => return Err(AttachError::TableFull { name: name.into() }),
            None => table.enter_without_row(),
        }
        table.write_process_count();
        table.last_update().store(now_ns, Ordering::Relaxed);
        table.write_version();
        drop(own_rows);
        drop(lock);
        Ok(Attached::Joined(Box::new(Self {
            descriptor,
            file,
            table,
            layout: options.layout,
            lock_wait: options.lock_wait,
            device_id: options.device_id,
            pid: options.pid,
            creator: getpid(),
            row,
            row_missing: wanted == Some(None),
            is_attached: true,
            held: Default::default(),
            on_chips: Default::default(),
            losses: LossCounters::default(),
        })))
    }

    /// Adds an allocation on the chip with this logical id.
    ///
    /// The total goes up first and down last, so that a reader and a process killed in between find
    /// too much in it and never too little.
    pub fn record_allocation(&self, kind: RegionKind, bytes: u64, chip_id: u32) {
        let Some((total, own)) = self.cells(kind, bytes) else { return };
        add(total, bytes);
        match self.table.chip_row(chip_id, chip_id != self.device_id) {
            Some(row) => {
                let chip = self.table.chip_counter(row, kind);
                add(chip.expect("a kind with a total has chip counters"), bytes);
                add(&self.on_chips[row][kind.index()], bytes);
            }
            None => drop(self.losses.chip_records.fetch_add(1, Ordering::Relaxed)),
        }
        add(own, bytes);
        self.stamp();
    }

    /// Takes an allocation back. Bytes that this process did not record are counted as
    /// [`RegionLosses::excess_free_bytes`] and taken from none.
    pub fn record_deallocation(&self, kind: RegionKind, bytes: u64, chip_id: u32) {
        let Some((total, own)) = self.cells(kind, bytes) else { return };
        let taken = take(own, bytes);
        if taken < bytes {
            add(&self.losses.excess_free_bytes, bytes - taken);
        }
        let row = (taken > 0).then(|| self.table.chip_row(chip_id, chip_id != self.device_id));
        if let Some(row) = row.flatten() {
            let on_chip = take(&self.on_chips[row][kind.index()], taken);
            let chip = self.table.chip_counter(row, kind);
            take(chip.expect("a kind with a total has chip counters"), on_chip);
        }
        take(total, taken);
        self.stamp();
    }

    /// The total and this process's own counter; nothing, and a loss counted, if this cannot be
    /// recorded.
    fn cells(&self, kind: RegionKind, bytes: u64) -> Option<(&AtomicU64, &AtomicU64)> {
        let Some(total) = self.table.total(kind) else {
            self.losses.kind_records.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if !self.keeps_row() || bytes > MAX_COUNTER_BYTES {
            self.losses.refused_records.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let own = match self.row {
            Some(row) => self.table.process_counter(row, kind)?,
            None => &self.held[kind.index()],
        };
        Some((total, own))
    }

    /// Whether the row, if there is one, is still this process's. The first tracker's viewer and writers in
    /// other PID namespaces take rows for dead; then going on would change another's row.
    fn keeps_row(&self) -> bool {
        let Some(row) = self.row else { return true };
        let keeps = !self.losses.row_lost.load(Ordering::Relaxed)
            && self.table.pid(row).load(Ordering::Relaxed) == self.pid;
        if !keeps {
            self.losses.row_lost.store(true, Ordering::Relaxed);
        }
        keeps
    }

    fn stamp(&self) {
        let now_ns = self.layout.now_ns();
        self.table.last_update().store(now_ns, Ordering::Relaxed);
        if let Some(row) = self.row {
            self.table.process_last_update(row).store(now_ns, Ordering::Relaxed);
        }
    }

    /// What could not be recorded so far.
    #[must_use]
    pub fn losses(&self) -> RegionLosses {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RegionLosses {
            row_missing: self.row_missing,
            row_lost: self.losses.row_lost.load(Ordering::Relaxed),
            kind_records: count(&self.losses.kind_records),
            chip_records: count(&self.losses.chip_records),
            refused_records: count(&self.losses.refused_records),
            excess_free_bytes: count(&self.losses.excess_free_bytes),
        }
    }

    /// Whether this process has a row of its own, as far as the last record could see; a reader of
    /// ledger and region must know, so as not to count the process twice.
    #[must_use]
    pub fn has_row(&self) -> bool {
        self.row.is_some() && !self.losses.row_lost.load(Ordering::Relaxed)
    }

    /// Which file the region is.
    #[must_use]
    pub fn file(&self) -> FileIdentity {
        self.file
    }

    /// Leaves the region: takes back what this process still holds, its row and its reference, and
    /// zeroes the region if no other is attached. The file stays.
    ///
    /// # Errors
    /// As [`DetachError`] says; the row then stays until another process finds this one dead.
    pub fn detach(mut self) -> Result<(), DetachError> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), DetachError> {
        if !std::mem::replace(&mut self.is_attached, false) || getpid() != self.creator {
            return Ok(());
        }
        let deadline = Instant::now() + self.lock_wait;
        let lock = Lock::take(&self.descriptor, deadline)
            .map_err(|error| DetachError::Lock { source: error.into() })?
            .ok_or(DetachError::Busy)?;
        let mut own_rows = own_rows(deadline).ok_or(DetachError::Busy)?;
        self.table.finish_intent();
        if self.keeps_row() {
            self.take_from_chips();
            match self.row {
                Some(row) => self.table.vacate(row, self.pid),
                None => {
                    self.take_held();
                    self.table.leave_without_row();
                }
            }
        }
        if let Some(row) = self.row {
            own_rows.remove(&(self.file, row, self.pid));
        }
        if self.table.is_idle() {
            self.table.reset(self.device_id);
        }
        self.table.write_process_count();
        self.table.last_update().store(self.layout.now_ns(), Ordering::Relaxed);
        drop(own_rows);
        drop(lock);
        Ok(())
    }

    fn take_from_chips(&self) {
        for (row, own) in self.on_chips.iter().enumerate() {
            for kind in self.table.kinds() {
                let chip = self.table.chip_counter(row, kind).expect("kinds() has counters");
                take(chip, own[kind.index()].swap(0, Ordering::Relaxed));
            }
        }
    }

    fn take_held(&self) {
        for kind in self.table.kinds() {
            let total = self.table.total(kind).expect("kinds() has counters");
            take(total, self.held[kind.index()].swap(0, Ordering::Relaxed));
        }
    }
}

impl Drop for RegionWriter {
    fn drop(&mut self) {
        // A row that cannot be freed now is freed by the next process that finds this one dead;
        // who wants to know calls `detach`.
        let _ = self.leave();
    }
}
