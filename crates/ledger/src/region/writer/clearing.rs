//! Takes dead processes out of a region, for a user who asks for that.
//!
//! The same rules as for a process that attaches, without attaching: the lock, a census without the
//! lock, and rows that changed meanwhile stay. A living process's row is never touched.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::layout::Layout;
use super::super::name::file_name;
use super::super::read::{FileIdentity, open_directory};
use super::open::{Lock, layout_of, map, open_existing};
use super::table::RegionTable;
use super::{AttachError, Census, RegionLayout, Suspect, reap, suspects};

/// What was taken out of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The pids of the rows that were taken out.
    pub pids: Vec<u32>,
    /// References that were taken back.
    pub references: u32,
    /// Bytes that left the totals.
    pub bytes: u64,
}

/// What dead processes without rows left in a region's totals, as far as the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// How many processes.
    pub processes: u32,
    /// What they had together.
    pub bytes: u64,
}

/// Who of a region has ended for certain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Pids of rows that no process has.
    pub pids: BTreeSet<u32>,
    /// The dead without rows; none unless no living process uses the file.
    pub abandoned: Abandoned,
}

// === impl Cleared ===

impl Cleared {
    /// Whether nothing was taken out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Takes the rows of ended processes out of the region `name_id` in `directory`, with their bytes
/// and references. `ended` is asked once, without the lock, who of the region has ended: it gets the
/// file and the pids of its rows. If no row is left then, and no more in the totals than what is
/// abandoned, no process is attached, and that goes too; not so if a process has joined, left or
/// recorded anything since `ended` was asked.
///
/// # Errors
/// As [`AttachError`] says, also where there is no region; nothing was changed then.
pub fn clear_dead(
    directory: &Path,
    name_id: u64,
    lock_wait: Duration,
    ended: impl FnOnce(FileIdentity, &BTreeSet<u32>) -> Ended,
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
    // One that leaves and one that joins make no other count, and both write the time.
    let users =
        |table: &RegionTable| (table.references(), table.last_update().load(Ordering::Relaxed));
    let (file, suspects, before) = region
        .locked(deadline, |file, table| (file, suspects(table, |_, _| false), users(table)))?;
    let pids = suspects.iter().map(|(_, pid, _)| *pid).collect();
    let Ended { pids: ended, abandoned } = ended(file, &pids);
    let census = Census { suspects, ended };
    region.locked(deadline, |_, table| {
        let is_same = users(table) == before;
        clear(table, &census, is_same.then_some(abandoned))
    })
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
        change: impl FnOnce(FileIdentity, &RegionTable) -> T,
    ) -> Result<T, AttachError> {
        let name = self.name;
        let _lock = Lock::take(self.descriptor, deadline)
            .map_err(|error| AttachError::system(name, "lock", error))?
            .ok_or_else(|| AttachError::Busy { name: name.into() })?;
        let mapped = map(self.descriptor.as_fd(), name, self.layout)?;
        let (file, mapping) = mapped.ok_or_else(|| AttachError::NotReady { name: name.into() })?;
        let table = RegionTable::new(mapping, self.layout);
        table.finish_intent();
        if table.is_new() {
            return Err(AttachError::NotReady { name: name.into() });
        }
        Ok(change(file, &table))
    }
}

/// Takes out what the census found dead. Needs the lock.
fn clear(table: &RegionTable, census: &Census, abandoned: Option<Abandoned>) -> Cleared {
    let before = (table.references(), table.bytes());
    let now: BTreeSet<Suspect> = suspects(table, |_, _| false);
    reap(table, &now, census);
    let left: BTreeSet<(usize, u32)> = table.taken_rows().into_iter().collect();
    let is_gone = |suspect: &&Suspect| !left.contains(&(suspect.0, suspect.1));
    let pids: Vec<u32> = now.iter().filter(is_gone).map(|(_, pid, _)| *pid).collect();
    let references = table.references();
    let explains = |it: Abandoned| references <= it.processes && table.bytes() <= it.bytes;
    if left.is_empty() && abandoned.is_some_and(explains) {
        table.forget_references(references);
    }
    let is_idle = table.is_idle();
    if is_idle {
        table.reset(table.gateway());
    }
    if is_idle || !pids.is_empty() {
        table.write_process_count();
    }
    Cleared {
        pids,
        references: before.0.saturating_sub(table.references()),
        bytes: before.1.saturating_sub(table.bytes()),
    }
}
