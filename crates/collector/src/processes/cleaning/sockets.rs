//! Which sockets of a runtime directory no process listens at, and whether they may go.
//!
//! A process that was restored from a checkpoint (CRIU) listens again at the name by which its socket was
//! first bound, not at that of its endpoint, and has another start than its names say. So a socket stays
//! while a process listens there, or while the ledger beside it is not a dead process's.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, statat};
use telltale_ledger::directory::{DirectoryEntry, EntryStatus, RuntimeDirectory};
use telltale_schema::clock::Clock;

use super::CleaningDecision;
use crate::clock::since_boot_ns;
use crate::processes::endpoints::is_listening;
use crate::processes::identity::Checks;
use crate::sockets;

/// Sockets that a service makes in a runtime directory: those it makes by itself, and the one that its help
/// names for HTTP.
pub(super) const OF_A_SERVICE: [&str; 3] =
    [sockets::TELEMETRY, sockets::LEGACY_CLIENTS, sockets::HTTP];

/// How old a service's socket is before it may go: a service binds it first and listens then.
const YOUNG: Duration = Duration::from_secs(2);

/// What the ledgers of one directory show of the processes that sockets are named after, by pid and user.
#[derive(Debug, Default)]
pub(super) struct Owners {
    dead: BTreeSet<(u32, u32)>,
    /// Of ledgers that are not dead processes', with the start in their names.
    others: BTreeSet<(u32, u32, u64)>,
}

impl Owners {
    /// Takes in what a ledger was judged to be.
    pub(super) fn note(
        &mut self,
        ledger: &DirectoryEntry,
        uid: u32,
        start: u64,
        verdict: &CleaningDecision,
    ) {
        match verdict {
            CleaningDecision::Dead(_) => _ = self.dead.insert((ledger.pid, uid)),
            CleaningDecision::Alive | CleaningDecision::Left(_) => {
                _ = self.others.insert((ledger.pid, uid, start))
            }
        }
    }

    /// Whether a process with this pid and user may live, which began at `start` by its own clock.
    fn may_live(&self, pid: u32, uid: u32, start: impl std::ops::RangeBounds<u64>) -> bool {
        let of_pid = self.others.range((pid, uid, 0)..=(pid, uid, u64::MAX));
        of_pid.into_iter().any(|(_, _, began)| start.contains(began))
    }
}

/// Judges an endpoint: it has no listener, and no living process can have made it.
pub(super) fn endpoint(
    directory: &RuntimeDirectory,
    entry: &DirectoryEntry,
    status: &EntryStatus,
    owners: &Owners,
    checks: &Checks<'_>,
    clock: &dyn Clock,
) -> CleaningDecision {
    if let Some(verdict) = by_listener(directory, &entry.name, status) {
        return verdict;
    }
    if owners.may_live(entry.pid, status.uid, ..) {
        return of_a_living_ledger(entry.pid);
    }
    // No process can listen at it again, and the ledger beside it is a dead process's.
    if owners.dead.contains(&(entry.pid, status.uid)) {
        return CleaningDecision::Dead(
            "no process listens there, and its process has ended".to_owned(),
        );
    }
    let made_ns = made_ns(directory, &entry.name, clock);
    match checks.namesake_lives(entry.pid, status.uid, made_ns) {
        Some(true) => {
            let pid = entry.pid;
            CleaningDecision::Left(format!(
                "no process listens there, but a process {pid} of that user lives"
            ))
        }
        None => CleaningDecision::Left(
            "no process listens there, but its process may be alive but hidden".into(),
        ),
        Some(false) => {
            CleaningDecision::Dead("no process listens there, and its process has ended".to_owned())
        }
    }
}

/// Judges a socket that has no endpoint's name: its process was killed before it could give one,
/// is just about to, or was restored from a checkpoint.
pub(super) fn temporary(
    directory: &RuntimeDirectory,
    entry: &DirectoryEntry,
    start_time_ticks: u64,
    status: &EntryStatus,
    owners: &Owners,
    checks: &Checks<'_>,
) -> CleaningDecision {
    if let Some(verdict) = by_listener(directory, &entry.name, status) {
        return verdict;
    }
    if owners.may_live(entry.pid, status.uid, start_time_ticks..=start_time_ticks) {
        return of_a_living_ledger(entry.pid);
    }
    match checks.starter_lives(entry.pid, start_time_ticks, status.uid, None) {
        Some(true) => CleaningDecision::Alive,
        Some(false) => {
            CleaningDecision::Dead("the process that began to make it has ended".to_owned())
        }
        None => CleaningDecision::Left("its process may be alive but hidden".to_owned()),
    }
}

/// Judges a service's socket; none where there is nothing to say of it.
pub(super) fn of_a_service(
    directory: &RuntimeDirectory,
    name: &str,
    status: &EntryStatus,
) -> Option<CleaningDecision> {
    let made = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(status.changed.0).ok()?);
    let is_young = made.elapsed().is_ok_and(|age| age < YOUNG);
    match is_listening(directory, name) {
        Some(false) if status.is_socket && !is_young => {
            Some(CleaningDecision::Dead("no service listens there".to_owned()))
        }
        _ => None,
    }
}

/// What follows from whether a process listens there; none if none does.
fn by_listener(
    directory: &RuntimeDirectory,
    name: &str,
    status: &EntryStatus,
) -> Option<CleaningDecision> {
    if !status.is_socket {
        return Some(CleaningDecision::Left("it is not a socket".to_owned()));
    }
    match is_listening(directory, name) {
        Some(true) => Some(CleaningDecision::Alive),
        Some(false) => None,
        None => {
            Some(CleaningDecision::Left("whether a process listens there is unknown".to_owned()))
        }
    }
}

fn of_a_living_ledger(pid: u32) -> CleaningDecision {
    CleaningDecision::Left(format!(
        "no process listens there, but the ledger of process {pid} is in use"
    ))
}

/// When a socket was made, in nanoseconds since boot; now, if unknown.
fn made_ns(directory: &RuntimeDirectory, name: &str, clock: &dyn Clock) -> u64 {
    let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return since_boot_ns();
    };
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(u64::MAX);
    let age_ns = clock.now().0.saturating_sub(seconds.saturating_mul(1_000_000_000));
    since_boot_ns().saturating_sub(age_ns)
}
