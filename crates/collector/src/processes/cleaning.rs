//! Which files of the runtime directory are a dead process's, and removing those.

mod sockets;

use std::sync::Arc;

use rustix::process::geteuid;
use telltale_ledger::directory::{DirectoryEntry, EntryKind, EntryStatus, RuntimeDirectory};
use telltale_ledger::{FileNumber, LedgerReader, OpenError, WriterLock, is_locked};
use telltale_schema::text::with_causes;

use super::EndpointUse;
use super::clearing::{Clearing, RegionMembership, Regions, kept, region_path};
use super::endpoints::is_listening;
use super::identity::{Checks, Standing};
use super::listings::Listed;
use super::{Holders, Processes};
use crate::clean::{CleanReport, Cleaned};
use crate::observation::RowOwner;
use crate::report::SourceReport;
use sockets::Owners;

/// The action for a file.
enum CleaningDecision {
    /// Its process lives.
    Alive,
    /// Its process has ended for certain.
    Dead(String),
    /// It stays, for this reason.
    Left(String),
}

/// An entry of a runtime directory, and the action for it.
struct Judged {
    directory: Arc<RuntimeDirectory>,
    name: String,
    status: EntryStatus,
    verdict: CleaningDecision,
    /// In which regions its process is.
    kept: Vec<RegionMembership>,
}

impl Judged {
    /// What its process has in regions, as far as that counts there. A ledger that cannot be removed
    /// would count again when its process has long been taken out.
    fn counted(&self) -> Vec<RegionMembership> {
        let counts = match self.verdict {
            CleaningDecision::Dead(_) => may_remove(&self.directory, &self.status),
            CleaningDecision::Alive | CleaningDecision::Left(_) => true,
        };
        if counts { self.kept.clone() } else { Vec::new() }
    }

    /// Removes the entry if it is a dead process's, and notes what was done.
    fn carry_out(self, cleaned: &mut CleanReport) {
        let path = self.directory.path().join(&self.name).display().to_string();
        let why = match &self.verdict {
            CleaningDecision::Alive => {
                cleaned.alive += 1;
                return;
            }
            CleaningDecision::Left(why) => {
                cleaned.left.push(Cleaned { path, why: why.clone() });
                return;
            }
            CleaningDecision::Dead(why) => why.clone(),
        };
        if !may_remove(&self.directory, &self.status) {
            let why = format!(
                "{why}; it belongs to user {}, who, the directory's owner or root can remove it",
                self.status.uid
            );
            cleaned.left.push(Cleaned { path, why });
            return;
        }
        // The name may have been given to a new file since it was judged.
        if self.directory.entry_status(&self.name).ok() != Some(self.status) {
            return;
        }
        if self.is_in_use() {
            let why = "a process uses it that was not there a moment ago".to_owned();
            cleaned.left.push(Cleaned { path, why });
            return;
        }
        match self.directory.remove(&self.name) {
            Ok(()) => cleaned.removed.push(Cleaned { path, why }),
            Err(error) => {
                let why = format!("{why}; cannot remove it: {error}");
                cleaned.left.push(Cleaned { path, why });
                cleaned.failed += 1;
            }
        }
    }

    /// Whether its process was restored since it was judged, which may be a while ago: regions have been
    /// waited for.
    fn is_in_use(&self) -> bool {
        (self.status.is_regular_file && is_locked(&self.directory, &self.name))
            || (self.status.is_socket && is_listening(&self.directory, &self.name) == Some(true))
    }
}

impl Processes {
    /// Removes what the dead left in the main runtime directory, and takes them out of regions.
    pub(crate) fn clean(&mut self, holders: &Holders) -> CleanReport {
        let mut cleaned = CleanReport::default();
        let mut report = SourceReport::default();
        let listed = self.list_main(&mut report);
        let checks = Checks::new(&self.procfs, &self.standpoint, holders.pids.iter().copied());
        let judged: Vec<Judged> =
            listed.iter().flat_map(|listed| self.judge(listed, &checks)).collect();
        let kept: Vec<RegionMembership> = judged.iter().flat_map(Judged::counted).collect();
        let regions = Clearing::new(self, &kept, holders).clear_regions(&mut cleaned);
        for mut one in judged {
            if let (CleaningDecision::Dead(why), Some(stays)) =
                (&one.verdict, regions.why_kept(&one.kept))
            {
                one.verdict = CleaningDecision::Left(format!("{why}; {stays}"));
            }
            one.carry_out(&mut cleaned);
        }
        for error in report.into_errors() {
            cleaned.failed += 1;
            cleaned.left.push(Cleaned { path: error.subject, why: error.detail });
        }
        self.report_ghosts(holders, &regions, &mut cleaned);
        cleaned
    }

    /// Judges what is in one directory.
    fn judge(&self, listed: &Listed, checks: &Checks<'_>) -> Vec<Judged> {
        let Listed { directory, listing, .. } = listed;
        let mut judged = Vec::new();
        let mut owners = Owners::default();
        let mut add = |name: &str, status, verdict, kept| {
            let (directory, name) = (Arc::clone(directory), name.to_owned());
            judged.push(Judged { directory, name, status, verdict, kept });
        };
        for entry in listing.ledgers.iter().chain(&listing.endpoints).chain(&listing.temporaries) {
            let Ok(status) = directory.entry_status(&entry.name) else { continue };
            let mut kept = Vec::new();
            let verdict = match entry.kind {
                EntryKind::Ledger { start_time_ticks: start } => {
                    let (verdict, found) = ledger(directory, entry, start, &status, checks);
                    owners.note(entry, status.uid, start, &verdict);
                    kept = found;
                    verdict
                }
                EntryKind::Endpoint => {
                    sockets::endpoint(directory, entry, &status, &owners, checks, &*self.clock)
                }
                EntryKind::Temporary { start_time_ticks: start } => {
                    sockets::temporary(directory, entry, start, &status, &owners, checks)
                }
            };
            add(&entry.name, status, verdict, kept);
        }
        for name in sockets::OF_A_SERVICE {
            let Ok(status) = directory.entry_status(name) else { continue };
            if let Some(verdict) = sockets::of_a_service(directory, name, &status) {
                add(name, status, verdict, Vec::new());
            }
        }
        judged
    }

    /// Says which regions still have rows of the dead, and why.
    fn report_ghosts(&mut self, holders: &Holders, regions: &Regions, cleaned: &mut CleanReport) {
        if regions.are_none() {
            return;
        }
        for region in self.scan(holders, EndpointUse::WhereNeeded).regions {
            let dead = region.rows.iter().filter(|row| row.owner == RowOwner::NoProcess);
            let count = dead.clone().count();
            let bytes: u128 =
                dead.flat_map(|row| &row.kinds).map(|(_, bytes)| u128::from(*bytes)).sum();
            if count > 0 {
                let path = region_path(&self.tree, region.name_id);
                let cause = regions.why_left(region.name_id);
                let rows = match count {
                    1 => "1 row of dead processes has".to_owned(),
                    count => format!("{count} rows of dead processes have"),
                };
                let why = format!("{rows} {bytes} bytes; {cause}");
                cleaned.left.push(Cleaned { path, why });
            }
        }
    }
}

/// Judges a ledger by what is in it, or, when that cannot be read, by whether a process lives that can
/// have written it. Says in which regions its process is, unless it is dead and the ledger in use.
fn ledger(
    directory: &Arc<RuntimeDirectory>,
    entry: &DirectoryEntry,
    start_time_ticks: u64,
    status: &EntryStatus,
    checks: &Checks<'_>,
) -> (CleaningDecision, Vec<RegionMembership>) {
    let verdict = match LedgerReader::open_at(directory, &entry.name) {
        Ok(mut reader) => {
            let standing = checks.judge_ledger(&reader);
            let verdict = match &standing {
                Standing::Alive { .. } => CleaningDecision::Alive,
                Standing::Dead => dead(&reader, checks),
                Standing::Hidden => {
                    let pid = reader.owner().pid;
                    CleaningDecision::Left(format!(
                        "process {pid} is not visible from here and may live"
                    ))
                }
                Standing::Refused(lie) => CleaningDecision::Left(lie.to_string()),
            };
            let is_in_use =
                standing == Standing::Dead && !matches!(verdict, CleaningDecision::Dead(_));
            let kept = if is_in_use { Vec::new() } else { kept(&mut reader, &standing) };
            return (verdict, kept);
        }
        Err(error @ OpenError::Open { .. }) => CleaningDecision::Left(with_causes(&error)),
        Err(_) if is_locked(directory, &entry.name) => CleaningDecision::Alive,
        Err(error) => match starter_of_file(entry, start_time_ticks, status, checks) {
            Some(true) => CleaningDecision::Alive,
            Some(false) => {
                CleaningDecision::Dead(format!("{}, and its process has ended", what_it_is(&error)))
            }
            None => {
                let what = what_it_is(&error);
                CleaningDecision::Left(format!("{what}, and its process may be alive but hidden"))
            }
        },
    };
    (verdict, Vec::new())
}

/// The action for a ledger whose process was not found. One that is in use is left: by a child
/// that its process forked, or by a process that cannot be seen, as the inode of a PID namespace, by
/// which it was searched for, is given out again.
fn dead(reader: &LedgerReader, checks: &Checks<'_>) -> CleaningDecision {
    let pid = reader.owner().pid;
    let lock = reader.writer_lock();
    // What another user's process maps only root may see.
    let me = geteuid().as_raw();
    let all_seen = checks.sees_all() && [0, reader.uid()].contains(&me);
    if let Some(user) = reader.file().ok().and_then(|file| checks.mapped_by(file)) {
        CleaningDecision::Left(format!(
            "process {pid} has ended, but process {user} still maps its file"
        ))
    } else if lock == WriterLock::Held || (lock == WriterLock::Unknown && !all_seen) {
        CleaningDecision::Left(format!(
            "process {pid} is not found, but a process that is not visible from here may use its file"
        ))
    } else {
        CleaningDecision::Dead(format!("process {pid} has ended"))
    }
}

fn starter_of_file(
    entry: &DirectoryEntry,
    start_time_ticks: u64,
    status: &EntryStatus,
    checks: &Checks<'_>,
) -> Option<bool> {
    let file = FileNumber { device: status.device, inode: status.inode };
    let file = status.is_regular_file.then_some(file);
    checks.starter_lives(entry.pid, start_time_ticks, status.uid, file)
}

/// What is wrong with a file that has a ledger's name, without the advice to remove it.
fn what_it_is(error: &OpenError) -> String {
    match error {
        OpenError::NotAFile => "it is not a regular file".to_owned(),
        OpenError::Size(_) | OpenError::Magic => "it is no ledger".to_owned(),
        OpenError::NotReady => "its process did not finish it".to_owned(),
        error => with_causes(error),
    }
}

/// Whether we may remove an entry: a sticky directory lets its owner, too, remove any.
fn may_remove(directory: &RuntimeDirectory, status: &EntryStatus) -> bool {
    [0, status.uid, directory.owner()].contains(&geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_harness::Scratch;
    use telltale_ledger::directory::Purpose;
    use telltale_ledger::{Ledger, LedgerOwner};

    #[test]
    fn a_ledger_that_is_in_use_again_is_not_removed() {
        let place = Scratch::new();
        place.set_mode(0o700);
        let directory = Arc::new(RuntimeDirectory::open(place.path(), Purpose::Writing).unwrap());
        let owner = LedgerOwner::of_this_process("test", telltale_schema::clock::Timestamp(1));
        let ledger = Ledger::create(&directory, owner.unwrap()).unwrap();
        let name = directory.list().unwrap().ledgers.remove(0).name;
        let judged_dead = || Judged {
            directory: Arc::clone(&directory),
            name: name.clone(),
            status: directory.entry_status(&name).unwrap(),
            verdict: CleaningDecision::Dead("its process has ended".to_owned()),
            kept: Vec::new(),
        };
        let mut cleaned = CleanReport::default();
        judged_dead().carry_out(&mut cleaned);
        assert_eq!((cleaned.removed.len(), cleaned.left.len()), (0, 1), "{cleaned:?}");
        drop(ledger);
        std::fs::write(place.join(&name), "a leftover").unwrap();
        judged_dead().carry_out(&mut cleaned);
        assert_eq!((cleaned.removed.len(), cleaned.left.len()), (1, 1), "{cleaned:?}");
    }
}
