//! Takes dead processes out of a region, for a user who asks for that.
//!
//! The same rules as for a process that attaches, without attaching: the lock, a census without the
//! lock, and rows that changed meanwhile stay. A living process's row is never touched.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::layout::Layout;
use super::super::name::file_name;
use super::super::read::open_directory;
use super::open::{Lock, layout_of, map, open_existing};
use super::table::Table;
use super::{AttachError, Census, RegionLayout, Suspect, reap, suspects};

/// What was taken out of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The pids of the rows that were taken out.
    pub pids: Vec<u32>,
    /// Bytes that left the totals.
    pub bytes: u64,
    /// Nobody is attached any more.
    pub is_idle: bool,
}

/// What dead processes without rows left in a region's totals, as far as the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// How many processes.
    pub processes: u32,
    /// What they had together.
    pub bytes: u64,
}

/// Takes the rows of ended processes out of the region `name_id` in `directory`, with their bytes
/// and references; `ended` is asked which pids no process has, at most once. If nothing is left then
/// but what is `abandoned`, nobody is attached, and that goes too.
///
/// # Errors
/// As [`AttachError`] says, also where there is no region; nothing was changed then.
pub fn clear_dead(
    directory: &Path,
    name_id: u64,
    abandoned: Abandoned,
    lock_wait: Duration,
    ended: impl FnOnce(&BTreeSet<u32>) -> BTreeSet<u32>,
) -> Result<Cleared, AttachError> {
    let name = file_name(name_id);
    let handle = open_directory(directory).map_err(|error| AttachError::Directory {
        directory: directory.into(),
        source: error.into(),
    })?;
    let descriptor = open_existing(&handle, &name)?;
    let layout = layout_of(&descriptor, &name, RegionLayout::NUMBERED.map(|(_, one)| one.table()))?;
    let region = Region { descriptor: &descriptor, name: &name, layout };
    let deadline = Instant::now() + lock_wait;
    let suspects = region.locked(deadline, |table| suspects(table, |_, _| false))?;
    let pids = suspects.iter().map(|(_, pid, _)| *pid).collect();
    let census = Census { ended: ended(&pids), suspects };
    region.locked(deadline, |table| clear(table, &census, abandoned))
}

/// A region's file.
struct Region<'a> {
    descriptor: &'a OwnedFd,
    name: &'a str,
    layout: &'static Layout,
}

impl Region<'_> {
    /// Does something to the region under its lock.
    fn locked<T>(
        &self,
        deadline: Instant,
        change: impl FnOnce(&Table) -> T,
    ) -> Result<T, AttachError> {
        let name = self.name;
        let _lock = Lock::take(self.descriptor, deadline)
            .map_err(|error| AttachError::system(name, "lock", error))?
            .ok_or_else(|| AttachError::Busy { name: name.into() })?;
        let mapped = map(self.descriptor.as_fd(), name, self.layout)?;
        let (_, mapping) = mapped.ok_or_else(|| AttachError::NotReady { name: name.into() })?;
        let table = Table::new(mapping, self.layout);
        table.finish_intent();
        if table.is_new() {
            return Err(AttachError::NotReady { name: name.into() });
        }
        Ok(change(&table))
    }
}

/// Takes out what the census found dead. Needs the lock.
fn clear(table: &Table, census: &Census, abandoned: Abandoned) -> Cleared {
    let before = table.bytes();
    let now: BTreeSet<Suspect> = suspects(table, |_, _| false);
    reap(table, &now, census);
    let left: BTreeSet<(usize, u32)> = table.taken_rows().into_iter().collect();
    let is_gone = |suspect: &&Suspect| !left.contains(&(suspect.0, suspect.1));
    let pids: Vec<u32> = now.iter().filter(is_gone).map(|(_, pid, _)| *pid).collect();
    if left.is_empty()
        && table.references() <= abandoned.processes
        && table.bytes() <= abandoned.bytes
    {
        table.forget_references();
    }
    let is_idle = table.is_idle();
    if is_idle {
        table.reset(table.gateway());
    }
    if is_idle || !pids.is_empty() {
        table.write_process_count();
    }
    Cleared { pids, bytes: before.saturating_sub(table.bytes()), is_idle }
}
