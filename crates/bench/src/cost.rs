//! What being asked for metrics costs a workload that no client asks: threads, memory, wake-ups.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::rundir::RunDirectory;
use crate::sample::{Effort, Measurements};
use crate::table::{Row, Table, Target, Unit};
use crate::workers::{WorkerProcess, WorkerService};

/// How long idle processes are watched in a full run.
const WATCHED: Duration = Duration::from_secs(5);
/// How long a process may take to come to rest before it is watched.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

/// What one process uses at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Threads, the main one included.
    pub threads: f64,
    /// Resident memory that is the process's own or shared, in bytes.
    pub resident_bytes: f64,
    /// Times that a thread of it slept of its own accord, and so had to be woken, since it started.
    pub sleeps: f64,
}

/// Reads the usage of a process from `/proc`.
///
/// # Errors
/// When the process is gone or a line is missing.
pub fn usage(pid: u32) -> io::Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut sleeps = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        sleeps += field(&status, "voluntary_ctxt_switches:")?;
    }
    Ok(Usage {
        threads: field(&status, "Threads:")?,
        resident_bytes: field(&status, "VmRSS:")? * 1024.0,
        sleeps,
    })
}

pub(crate) fn field(status: &str, name: &str) -> io::Result<f64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| io::Error::other(format!("no {name} in a process's status")))
}

/// What a service adds to processes that do nothing else, one value per process.
#[derive(Debug, Clone, PartialEq)]
struct Added {
    threads: Measurements,
    resident_bytes: Measurements,
    wakes_per_second: Measurements,
}

/// Waits until every thread of a process sleeps: until then it is still on its way there from having
/// said that it is ready, and would be counted as woken.
fn settle(pid: u32) -> io::Result<()> {
    let deadline = Instant::now() + SETTLED_WITHIN;
    loop {
        let mut asleep = true;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let status = fs::read_to_string(task?.path().join("status"))?;
            asleep &= status.lines().any(|line| line.starts_with("State:\tS"));
        }
        if asleep {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(io::Error::other(format!("process {pid} does not come to rest")));
        }
        thread::yield_now();
    }
}

/// Watches idle workers of `service` for `watched`, and subtracts the median of `idle` ones.
fn added(
    service: &[WorkerProcess],
    idle: &[WorkerProcess],
    watched: Duration,
) -> io::Result<Added> {
    let all = |workers: &[WorkerProcess]| -> io::Result<Vec<Usage>> {
        workers.iter().map(|worker| usage(worker.id())).collect()
    };
    for worker in idle.iter().chain(service) {
        settle(worker.id())?;
    }
    let idle = all(idle)?;
    let floor =
        |part: fn(&Usage) -> f64| Measurements::new(idle.iter().map(part).collect()).median();
    let started = Instant::now();
    let before = all(service)?;
    // The window is the measurement itself: nothing is waited for.
    thread::sleep(watched);
    let after = all(service)?;
    let seconds = started.elapsed().as_secs_f64();
    let less = |part: fn(&Usage) -> f64| {
        Measurements::new(after.iter().map(|usage| part(usage) - floor(part)).collect())
    };
    let wakes = before.iter().zip(&after).map(|(b, a)| (a.sleeps - b.sleeps) / seconds).collect();
    Ok(Added {
        threads: less(|usage| usage.threads),
        resident_bytes: less(|usage| usage.resident_bytes),
        wakes_per_second: Measurements::new(wakes),
    })
}

/// Threads, memory and wake-ups that an endpoint adds to a process that no client asks.
///
/// # Errors
/// When a worker cannot be started or read.
pub fn table(worker: &Path, effort: Effort) -> io::Result<Table> {
    let run = RunDirectory::create()?;
    let several = |service: WorkerService| -> io::Result<Vec<WorkerProcess>> {
        (0..effort.repeats())
            .map(|_| WorkerProcess::start(worker, run.path(), service, None))
            .collect()
    };
    let watched = match effort {
        Effort::Full => WATCHED,
        Effort::Quick => WATCHED / 5,
        Effort::Once => Duration::ZERO,
    };
    let (idle, seed, ours) = (
        several(WorkerService::Idle)?,
        several(WorkerService::Seed { base: 0 })?,
        several(WorkerService::Ours { base: 0 })?,
    );
    let (seed, ours) = (added(&seed, &idle, watched)?, added(&ours, &idle, watched)?);
    let row = |what: &str, unit: Unit, [ours, baseline]: [Measurements; 2], limit: f64| Row {
        what: what.to_owned(),
        unit,
        ours: Some(ours),
        baseline: Some(baseline),
        target: Target { at_most: Some(limit), ..Target::default() },
    };
    let mebibyte = 1024.0 * 1024.0;
    Ok(Table {
        heading: format!(
            "What an idle endpoint adds to a process ({} processes each, watched {} s); \
             baseline: the original's server",
            effort.repeats(),
            watched.as_secs()
        ),
        rows: vec![
            row("threads", Unit::Count, [ours.threads, seed.threads], 1.0),
            row(
                "resident memory",
                Unit::Bytes,
                [ours.resident_bytes, seed.resident_bytes],
                mebibyte,
            ),
            row(
                "wake-ups a second",
                Unit::Count,
                [ours.wakes_per_second, seed.wakes_per_second],
                0.0,
            ),
        ],
        remarks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn status_fields_are_found_by_their_whole_name() {
        let status = "Name:\tx\nVmRSS:\t  12 kB\nnonvoluntary_ctxt_switches:\t5\nvoluntary_ctxt_switches:\t7\n";
        assert_eq!(field(status, "VmRSS:").ok(), Some(12.0));
        assert_eq!(field(status, "voluntary_ctxt_switches:").ok(), Some(7.0));
        assert!(field(status, "Threads:").is_err());
    }
}
