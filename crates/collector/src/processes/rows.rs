//! Regions of tt-metal: read from every `/dev/shm` that can be seen, and whose their rows are.
//!
//! A row has a pid of an unknown PID namespace and a name, no start time. It is believed to be a
//! process's when pid and name fit and the process is not younger than the row.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use telltale_ledger::RegionMirror;
use telltale_ledger::region::{
    Counters, FileIdentity, LastUpdate, MAX_DIRECTORY_ENTRIES, MAX_REGIONS, Now, ProcessRow,
    RegionFinding, RegionKind, RegionReadError, RegionReading, UpdateClock, scan,
};
use telltale_schema::memory::MemoryKind;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::ProcessState;
use telltale_schema::text::with_causes;

use super::described::Description;
use super::identity::{NANOSECONDS_PER_TICK, SLACK_NS};
use crate::observation::{ProcessObservation, RegionObservation, RowObservation, RowOwner};
use crate::report::{SourceReport, Surplus};

/// Scans a `/dev/shm` and adds what is new there. What is wrong with one that was found by a process of
/// `user` is that user's; without one it is this machine's own.
pub(crate) fn scan_into(
    (directory, user): (&Path, Option<u32>),
    now: Now,
    seen: &mut BTreeSet<FileIdentity>,
    regions: &mut Vec<RegionReading>,
    report: &mut SourceReport,
) {
    let shown = directory.display().to_string();
    let fails = |report: &mut SourceReport, detail: String| match user {
        Some(user) => report.odd_entry(user, &shown, Absence::Failed, detail),
        None => report.error(&shown, Absence::Failed, detail),
    };
    let found = match scan(directory, now) {
        Ok(found) => found,
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            return fails(report, with_causes(&error));
        }
    };
    if found.entries_left_out {
        let detail = format!(
            "it has more than the {MAX_DIRECTORY_ENTRIES} names that are looked at; remove what no \
             process needs"
        );
        fails(report, detail);
    }
    let mut surplus = Surplus::default();
    for (owner, count) in found.left_out {
        surplus.add_many(owner, count, &shown);
    }
    report.surplus(surplus, &format!("{MAX_REGIONS} regions are read; remove stale ones"));
    for result in found.regions {
        match result {
            Ok(reading) if seen.insert(reading.file) => {
                report_findings(&reading, report);
                regions.push(reading);
            }
            Ok(_) | Err(RegionReadError::Vanished { .. }) => {}
            Err(error) => {
                let reason = match &error {
                    RegionReadError::PermissionDenied { .. } => Absence::Permission,
                    RegionReadError::Decode { .. } => Absence::NotUnderstood,
                    _ => Absence::Failed,
                };
                // Who may make files there may also take the name of a region.
                let entry = std::fs::symlink_metadata(directory.join(error.name()));
                let detail = with_causes(&error);
                match entry.map(|entry| entry.uid()) {
                    Ok(owner) if reason == Absence::Permission => {
                        report.closed_entry(owner, &shown, detail);
                    }
                    Ok(owner) => report.odd_entry(owner, &shown, reason, detail),
                    // It is gone since.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(_) => fails(report, detail),
                }
            }
        }
    }
}

/// Reports what makes a region's values wrong. What merely has another place in a snapshot
/// (ghosts, a remainder without rows) is no error.
fn report_findings(reading: &RegionReading, report: &mut SourceReport) {
    for finding in &reading.region.findings {
        let detail = match finding {
            RegionFinding::WrappedCounter { kind, raw, .. } => {
                format!("a {} counter has wrapped to {raw}; it is left out", kind_name(*kind))
            }
            RegionFinding::Drift { kind, total_bytes, rows_bytes }
                if *rows_bytes > u128::from(*total_bytes) =>
            {
                let name = kind_name(*kind);
                format!("its {name} rows have {rows_bytes} bytes, its total {total_bytes}")
            }
            RegionFinding::TableFull { rest_is_in_totals: false } => {
                "its process table is full; further processes are nowhere".to_owned()
            }
            RegionFinding::DuplicatePid { pid } => {
                format!("pid {pid} has several rows, of different PID namespaces")
            }
            RegionFinding::Unsettled { reads } => format!("it changed in each of {reads} reads"),
            _ => continue,
        };
        let subject = format!("region {}", reading.name_id);
        report.odd_entry(reading.owner_uid, subject, Absence::Implausible, detail);
    }
}

fn kind_name(kind: RegionKind) -> &'static str {
    memory_kind(kind).name()
}

/// The kind under which a region's counter is shown: it does not distinguish kernels.
fn memory_kind(kind: RegionKind) -> MemoryKind {
    match kind {
        RegionKind::Dram => MemoryKind::Dram,
        RegionKind::L1 => MemoryKind::L1,
        RegionKind::L1Small => MemoryKind::L1Small,
        RegionKind::Trace => MemoryKind::Trace,
        RegionKind::Cb => MemoryKind::Cb,
        RegionKind::Kernel => MemoryKind::KernelApplication,
    }
}

fn kinds(counters: &Counters) -> Vec<(MemoryKind, u64)> {
    counters.iter().map(|(kind, bytes)| (memory_kind(kind), bytes)).collect()
}

/// The region as reconciliation wants it; `owner` says whose a row is.
pub(crate) fn observe(
    reading: &RegionReading,
    mut owner: impl FnMut(&ProcessRow) -> RowOwner,
) -> RegionObservation {
    let region = &reading.region;
    let rows = region.processes.iter().map(|row| RowObservation {
        pid: row.pid,
        name: row.name.clone(),
        kinds: kinds(&row.bytes),
        owner: owner(row),
    });
    RegionObservation {
        name_id: reading.name_id,
        owner_uid: Some(reading.owner_uid),
        board_serial: region.board_serial,
        references: region.reference_count,
        rows: rows.collect(),
        totals: kinds(&region.totals),
    }
}

/// The place of the process, known by what it left in a runtime directory and not seen alive, whose
/// row it is: pid and name fit in whatever PID namespace, and it kept one since the machine started.
pub(crate) fn left_by(
    row: &ProcessRow,
    observed: &[ProcessObservation],
    boot_id: Option<[u8; 16]>,
) -> Option<usize> {
    observed.iter().position(|one| {
        let process = &one.process;
        let fits = process
            .identity
            .is_some_and(|identity| identity.pid == row.pid && Some(identity.boot_id) == boot_id);
        let devices = one.memory.iter().flat_map(|memory| &memory.devices);
        fits && process.state != ProcessState::Alive
            && (row.name.is_empty() || row.name == process.name)
            && devices.into_iter().any(|device| device.mirror == RegionMirror::TotalsAndRow)
    })
}

/// Whether the row can be this process's, whose monotonic clock is `ahead_ns` ahead of ours.
pub(crate) fn fits(
    row: &ProcessRow,
    pid: u32,
    process: &Description,
    ahead_ns: impl FnOnce() -> i128,
) -> bool {
    let known_pid = row.pid == pid || process.namespace_pids.contains(&row.pid);
    let named = row.name.is_empty() || row.name == process.name;
    let uptime_ns = crate::clock::since_boot_ns();
    let is_younger =
        || is_younger((process.start_time_ticks, uptime_ns), &row.last_update, ahead_ns);
    known_pid && named && !is_younger()
}

/// Whether a process that started then is younger than the row's last change: then the pid was
/// given out again. Start and uptime are by our boot clock.
///
/// A stamp of the monotonic clock counts as in the time namespace of its writer, which is asked for
/// only where the process would otherwise be refused.
fn is_younger(
    (start_time_ticks, uptime_ns): (u64, u64),
    last_update: &LastUpdate,
    ahead_ns: impl FnOnce() -> i128,
) -> bool {
    let LastUpdate::Ago { clock, age_ns, .. } = *last_update else { return false };
    let start_ns = start_time_ticks.saturating_mul(NANOSECONDS_PER_TICK);
    // One that started before our boot clock did has a start beyond all bounds, and no age.
    let Some(process_age_ns) = uptime_ns.checked_sub(start_ns) else { return false };
    let oldest_ns = i128::from(process_age_ns.saturating_add(SLACK_NS));
    let age_ns = i128::from(age_ns);
    oldest_ns < age_ns && (clock == UpdateClock::Epoch || oldest_ns < age_ns + ahead_ns())
}

#[cfg(test)]
mod tests {
    use super::is_younger;
    use telltale_ledger::region::{LastUpdate, UpdateClock};

    #[test]
    fn a_row_is_dated_by_the_clock_of_its_writer() {
        const HOUR: u64 = 3_600_000_000_000;
        // Two hours after the boot; the process began in the second of them.
        let younger = |start_ticks, clock, age_ns, ahead_ns: i128| {
            let last_update = LastUpdate::Ago { clock, stamp_ns: 1, age_ns };
            is_younger((start_ticks, 2 * HOUR), &last_update, || ahead_ns)
        };
        let start = HOUR / 10_000_000;
        let (monotonic, epoch) = (UpdateClock::Monotonic, UpdateClock::Epoch);
        for clock in [monotonic, epoch] {
            assert!(!younger(start, clock, HOUR, 0));
            assert!(younger(start, clock, HOUR + HOUR / 2, 0), "of an earlier process");
        }
        // Its monotonic clock is behind ours by half an hour, which makes its stamps look older.
        let half = i128::from(HOUR / 2);
        assert!(!younger(start, monotonic, HOUR + HOUR / 2, -half));
        assert!(younger(start, epoch, HOUR + HOUR / 2, -half), "the wall clock is one for all");
        assert!(younger(start, monotonic, 2 * HOUR, -half));
        // `/proc` shows a start before the beginning of our boot clock as one without end.
        assert!(!younger((u64::MAX - HOUR) / 10_000_000, monotonic, 2 * HOUR, 0));
    }
}
