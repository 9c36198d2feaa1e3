//! Which files of the runtime directory are a dead process's, and removing those.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustix::fs::{AtFlags, statat};
use rustix::process::geteuid;
use telltale_ledger::directory::{Entry, EntryKind, EntryStatus, RuntimeDirectory};
use telltale_ledger::{FileNumber, LedgerReader, OpenError, WriterLock, is_locked};
use telltale_schema::clock::Clock;
use telltale_schema::text::with_causes;

use super::EndpointUse;
use super::clearing::{Kept, Regions, kept};
use super::endpoints::is_listening;
use super::identity::{Checks, Standing};
use super::listings::Listed;
use super::{Holders, Processes};
use crate::clean::{CleanReport, Cleaned};
use crate::clock::since_boot_ns;
use crate::observation::RowOwner;
use crate::report::Report;

/// What is to be done with a file.
enum Verdict {
    /// Its process lives.
    Alive,
    /// Its process has ended for certain.
    Dead(String),
    /// It stays, for this reason.
    Left(String),
}

/// An entry of a runtime directory, and what is to be done with it.
struct Judged {
    directory: Arc<RuntimeDirectory>,
    entry: Entry,
    status: EntryStatus,
    verdict: Verdict,
    /// In which regions its process is.
    kept: Vec<Kept>,
}

impl Judged {
    /// What its process has in regions, as far as that counts there. A ledger that cannot be removed
    /// would count again when its process has long been taken out.
    fn counted(&self) -> Vec<Kept> {
        let counts = match self.verdict {
            Verdict::Dead(_) => may_remove(&self.directory, &self.status),
            Verdict::Alive | Verdict::Left(_) => true,
        };
        if counts { self.kept.clone() } else { Vec::new() }
    }
}

impl Processes {
    /// Removes what the dead left in the main runtime directory, and takes them out of regions.
    pub(crate) fn clean(&mut self, holders: &Holders) -> CleanReport {
        let mut cleaned = CleanReport::default();
        let mut report = Report::default();
        let listed = self.list_main(&mut report);
        let checks = Checks::new(&self.procfs, &self.standpoint, holders.pids.iter().copied());
        let mut judged = Vec::new();
        for Listed { directory, listing, .. } in listed {
            // The pids of ledgers that were found dead here, with their users.
            let mut dead = BTreeSet::new();
            for entry in
                listing.ledgers.iter().chain(&listing.endpoints).chain(&listing.temporaries)
            {
                let Ok(status) = directory.entry_status(&entry.name) else { continue };
                let mut kept = Vec::new();
                let verdict = match entry.kind {
                    EntryKind::Ledger { start_time_ticks } => {
                        let (verdict, found) =
                            ledger(&directory, entry, start_time_ticks, &status, &checks);
                        kept = found;
                        verdict
                    }
                    EntryKind::Endpoint => {
                        let paired = dead.contains(&(entry.pid, status.uid));
                        endpoint(&directory, entry, &status, paired, &checks, &*self.clock)
                    }
                    EntryKind::Temporary { start_time_ticks } => {
                        temporary(entry, start_time_ticks, &status, &checks)
                    }
                };
                if matches!(verdict, Verdict::Dead(_)) {
                    dead.insert((entry.pid, status.uid));
                }
                let (directory, entry) = (Arc::clone(&directory), entry.clone());
                judged.push(Judged { directory, entry, status, verdict, kept });
            }
        }
        let kept: Vec<Kept> = judged.iter().flat_map(Judged::counted).collect();
        let regions = self.clear_regions(&kept, holders, &mut cleaned);
        for Judged { directory, entry, status, verdict, kept } in judged {
            let verdict = match (verdict, regions.why_kept(&kept)) {
                (Verdict::Dead(why), Some(stays)) => Verdict::Left(format!("{why}; {stays}")),
                (verdict, _) => verdict,
            };
            carry_out(&directory, &entry, &status, verdict, &mut cleaned);
        }
        for error in report.into_errors() {
            cleaned.failed += 1;
            cleaned.left.push(Cleaned { path: error.subject, why: error.detail });
        }
        self.tell_ghosts(holders, &regions, &mut cleaned);
        cleaned
    }

    /// Says which regions still have rows of the dead, and why.
    fn tell_ghosts(&mut self, holders: &Holders, regions: &Regions, cleaned: &mut CleanReport) {
        if regions.are_none() {
            return;
        }
        for region in self.look(holders, EndpointUse::WhereNeeded).regions {
            let dead = region.rows.iter().filter(|row| row.owner == RowOwner::Nobody);
            let count = dead.clone().count();
            let bytes: u128 =
                dead.flat_map(|row| &row.kinds).map(|(_, bytes)| u128::from(*bytes)).sum();
            if count > 0 {
                let path = self.region_path(region.name_id);
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
    entry: &Entry,
    start_time_ticks: u64,
    status: &EntryStatus,
    checks: &Checks<'_>,
) -> (Verdict, Vec<Kept>) {
    let verdict = match LedgerReader::open_at(directory, &entry.name) {
        Ok(mut reader) => {
            let standing = checks.judge_ledger(&reader);
            let verdict = match &standing {
                Standing::Alive { .. } => Verdict::Alive,
                Standing::Dead => dead(&reader, checks),
                Standing::Hidden => {
                    let pid = reader.owner().pid;
                    Verdict::Left(format!("process {pid} is not visible from here and may live"))
                }
                Standing::Refused(lie) => Verdict::Left(lie.to_string()),
            };
            let is_in_use = standing == Standing::Dead && !matches!(verdict, Verdict::Dead(_));
            let kept = if is_in_use { Vec::new() } else { kept(&mut reader, &standing) };
            return (verdict, kept);
        }
        Err(error @ OpenError::Open { .. }) => Verdict::Left(with_causes(&error)),
        Err(_) if is_locked(directory, &entry.name) => Verdict::Alive,
        Err(error) => match starter_of_file(entry, start_time_ticks, status, checks) {
            Some(true) => Verdict::Alive,
            Some(false) => {
                Verdict::Dead(format!("{}, and its process has ended", what_it_is(&error)))
            }
            None => {
                let what = what_it_is(&error);
                Verdict::Left(format!("{what}, and its process may live out of our sight"))
            }
        },
    };
    (verdict, Vec::new())
}

/// What is to be done with a ledger whose process was not found. One that is in use is left: by a child
/// that its process forked, or by a process that cannot be seen, as the inode of a PID namespace, by
/// which it was looked for, is given out again.
fn dead(reader: &LedgerReader, checks: &Checks<'_>) -> Verdict {
    let pid = reader.owner().pid;
    let lock = reader.writer_lock();
    // What another user's process maps only root may see.
    let me = geteuid().as_raw();
    let all_seen = checks.sees_all() && [0, reader.uid()].contains(&me);
    if let Some(user) = reader.file().ok().and_then(|file| checks.mapped_by(file)) {
        Verdict::Left(format!("process {pid} has ended, but process {user} still maps its file"))
    } else if lock == WriterLock::Held || (lock == WriterLock::Unknown && !all_seen) {
        Verdict::Left(format!(
            "process {pid} is not found, but a process that is not visible from here may use its file"
        ))
    } else {
        Verdict::Dead(format!("process {pid} has ended"))
    }
}

fn starter_of_file(
    entry: &Entry,
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

/// Judges an endpoint: nobody listens there, and nobody lives who can have made it.
fn endpoint(
    directory: &Arc<RuntimeDirectory>,
    entry: &Entry,
    status: &EntryStatus,
    paired: bool,
    checks: &Checks<'_>,
    clock: &dyn Clock,
) -> Verdict {
    if !status.is_socket {
        return Verdict::Left("it is not a socket".to_owned());
    }
    match is_listening(directory, &entry.name) {
        Some(true) => return Verdict::Alive,
        Some(false) => {}
        None => return Verdict::Left("whether anybody listens there cannot be told".to_owned()),
    }
    // Nobody can listen at it again, and the ledger beside it is a dead process's.
    if paired {
        return Verdict::Dead("nobody listens there, and its process has ended".to_owned());
    }
    let made_ns = made_ns(directory, &entry.name, clock);
    match checks.namesake_lives(entry.pid, status.uid, made_ns) {
        Some(true) => {
            let pid = entry.pid;
            Verdict::Left(format!("nobody listens there, but a process {pid} of that user lives"))
        }
        None => {
            Verdict::Left("nobody listens there, but its process may live out of our sight".into())
        }
        Some(false) => Verdict::Dead("nobody listens there, and its process has ended".to_owned()),
    }
}

/// Judges a socket that has no endpoint's name: its process was killed before it could give one,
/// or is just about to.
fn temporary(
    entry: &Entry,
    start_time_ticks: u64,
    status: &EntryStatus,
    checks: &Checks<'_>,
) -> Verdict {
    if !status.is_socket {
        return Verdict::Left("it is not a socket".to_owned());
    }
    match checks.starter_lives(entry.pid, start_time_ticks, status.uid, None) {
        Some(true) => Verdict::Alive,
        Some(false) => Verdict::Dead("the process that began to make it has ended".to_owned()),
        None => Verdict::Left("its process may live out of our sight".to_owned()),
    }
}

/// When a socket was made, in nanoseconds since boot; now, if that cannot be told.
fn made_ns(directory: &RuntimeDirectory, name: &str, clock: &dyn Clock) -> u64 {
    let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return since_boot_ns();
    };
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(u64::MAX);
    let age_ns = clock.now().0.saturating_sub(seconds.saturating_mul(1_000_000_000));
    since_boot_ns().saturating_sub(age_ns)
}

/// Whether we may remove an entry: a sticky directory lets its owner, too, remove any.
fn may_remove(directory: &RuntimeDirectory, status: &EntryStatus) -> bool {
    [0, status.uid, directory.owner()].contains(&geteuid().as_raw())
}

fn carry_out(
    directory: &RuntimeDirectory,
    entry: &Entry,
    status: &EntryStatus,
    verdict: Verdict,
    cleaned: &mut CleanReport,
) {
    let path = directory.path().join(&entry.name).display().to_string();
    match verdict {
        Verdict::Alive => cleaned.alive += 1,
        Verdict::Left(why) => cleaned.left.push(Cleaned { path, why }),
        Verdict::Dead(why) => {
            if !may_remove(directory, status) {
                let why = format!(
                    "{why}; it belongs to user {}, who, the directory's owner or root can remove it",
                    status.uid
                );
                cleaned.left.push(Cleaned { path, why });
                return;
            }
            // The name may have been given to a new file since it was judged.
            let same = directory.entry_status(&entry.name).is_ok_and(|now| now == *status);
            match same.then(|| directory.remove(&entry.name)) {
                Some(Ok(())) => cleaned.removed.push(Cleaned { path, why }),
                Some(Err(error)) => {
                    let why = format!("{why}; cannot remove it: {error}");
                    cleaned.left.push(Cleaned { path, why });
                    cleaned.failed += 1;
                }
                None => {}
            }
        }
    }
}
