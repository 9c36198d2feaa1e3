//! What it costs workloads that the service looks at them each second.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::BusyMachine;
use crate::workers::{WorkerProcess, WorkerService};

/// What all workloads together took for being looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disturbance {
    /// Processor time of one workload as a share of the time that passed, with the service.
    pub(super) share: f64,
    /// The same while the service stood still.
    pub(super) without: f64,
}

/// The service, standing still until this is dropped.
pub(super) struct Halted(Pid);

// === impl Halted ===

impl Halted {
    pub(super) fn halt(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("no process has this number"))?;
        kill_process(pid, Signal::STOP)?;
        Ok(Self(pid))
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        // A service that is gone needs not go on.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Processor time of the living threads of these processes, in nanoseconds
/// (Documentation/scheduler/sched-stats.rst).
fn spent_ns(pids: &[u32]) -> io::Result<f64> {
    let mut sum = 0.0;
    for pid in pids {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let word = text.split_whitespace().next().unwrap_or_default();
            sum += word.parse::<f64>().map_err(io::Error::other)?;
        }
    }
    Ok(sum)
}

/// Watches workloads that do nothing for `span` with the service, and for as long without.
pub(super) fn idle(busy: &BusyMachine, service: u32, span: Duration) -> io::Result<Disturbance> {
    let pids = busy.pids();
    let watched = || -> io::Result<f64> {
        let (began, before) = (Instant::now(), spent_ns(&pids)?);
        thread::sleep(span);
        let spent = spent_ns(&pids)? - before;
        Ok(spent / began.elapsed().as_nanos() as f64 / pids.len() as f64)
    };
    let share = watched()?;
    let halted = Halted::halt(service)?;
    let without = watched()?;
    drop(halted);
    Ok(Disturbance { share, without })
}

/// Has a workload repeat the same work, alternating with and without the service;
/// nanoseconds of its processor time for each, without first.
pub(super) fn toiling(
    worker: &Path,
    busy: &BusyMachine,
    service: u32,
    (pairs, turns): (u64, usize),
) -> io::Result<[Vec<f64>; 2]> {
    let mut toiler =
        WorkerProcess::start(worker, busy.root(), WorkerService::Toiler { pairs }, None)?;
    toiler.ask()?;
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        let halted = Halted::halt(service)?;
        taken[0].push(toiler.ask()?);
        drop(halted);
        taken[1].push(toiler.ask()?);
    }
    Ok(taken)
}
