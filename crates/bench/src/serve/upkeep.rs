//! What the service costs the machine: processor time and memory, at rest and over many processes
//! that come and go, beside its rivals where they are installed.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::cost;
use crate::machine::BusyMachine;
use crate::served::Served;
use crate::workers::{WorkerProcess, WorkerService};

/// From one scrape to the next.
const SCRAPES_EACH: Duration = Duration::from_secs(15);
/// Processes that come and go at the same time.
const AT_ONCE: usize = 4;

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    /// All of it.
    pub(super) all: f64,
    /// What it has for itself: without the pages of its program and of other files.
    pub(super) own: f64,
}

/// What servers cost over the same span, one after the other in the order given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Share of one processor.
    pub(super) share: f64,
    /// Resident memory at the end.
    pub(super) resident: Resident,
}

/// What happened to the service's memory while processes came and went.
#[derive(Debug)]
pub(super) struct Churned {
    /// Processes that came and went in each round.
    pub(super) processes: u64,
    /// Resident memory before the first round and after each.
    pub(super) resident: Vec<Resident>,
    /// How long a round took.
    pub(super) round: Duration,
    /// Share of one processor over all rounds.
    pub(super) share: f64,
}

/// Processor time of a process so far, of all its threads, also of those that have ended, in
/// nanoseconds.
pub(super) fn processor_ns(pid: u32) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name may have spaces and parentheses in it; proc_pid_stat(5) counts from 1.
    let after = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let ticks = |field: usize| after.split_whitespace().nth(field - 3)?.parse::<f64>().ok();
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    match (ticks(14), ticks(15)) {
        (Some(user), Some(system)) => Ok((user + system) / per_second * 1e9),
        _ => Err(io::Error::other("no processor time in a process's stat")),
    }
}

/// Resident memory of a process.
pub(super) fn resident(pid: u32) -> io::Result<Resident> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let bytes = |name| cost::field(&status, name).map(|kibibytes| kibibytes * 1024.0);
    Ok(Resident { all: bytes("VmRSS:")?, own: bytes("RssAnon:")? })
}

/// Has each server run for `span` with one scrape each 15 s, all of them at once.
pub(super) fn at_rest(servers: &mut [&mut Served], span: Duration) -> io::Result<Vec<Cost>> {
    let mut body = Vec::new();
    let began = Instant::now();
    let before: Vec<f64> =
        servers.iter().map(|server| processor_ns(server.pid())).collect::<io::Result<_>>()?;
    while began.elapsed() < span {
        thread::sleep(SCRAPES_EACH.min(span.saturating_sub(began.elapsed())));
        servers.iter_mut().try_for_each(|server| server.scrape(&mut body))?;
    }
    let passed_ns = began.elapsed().as_nanos() as f64;
    let cost = |(server, before): (&&mut Served, f64)| {
        let share = (processor_ns(server.pid())? - before) / passed_ns;
        Ok(Cost { share, resident: resident(server.pid())? })
    };
    servers.iter().zip(before).map(cost).collect()
}

/// Has `processes` processes come and go, and again, in `rounds` rounds; looks at the memory of
/// the service with this pid after each, `settled` after its last process has gone.
pub(super) fn churn(
    worker: &Path,
    busy: &BusyMachine,
    pid: u32,
    (processes, rounds): (u64, usize),
    settled: Duration,
) -> io::Result<Churned> {
    let began = Instant::now();
    let before_ns = processor_ns(pid)?;
    let mut memory = vec![resident(pid)?];
    let mut round = Duration::ZERO;
    for _ in 0..rounds {
        let started = Instant::now();
        let mut living: VecDeque<WorkerProcess> = VecDeque::with_capacity(AT_ONCE + 1);
        for number in 0..processes {
            living.push_back(WorkerProcess::start(
                worker,
                busy.root(),
                WorkerService::Visitor { number },
                None,
            )?);
            if living.len() > AT_ONCE {
                drop(living.pop_front());
            }
        }
        drop(living);
        round = started.elapsed();
        thread::sleep(settled);
        memory.push(resident(pid)?);
    }
    let share = (processor_ns(pid)? - before_ns) / began.elapsed().as_nanos() as f64;
    Ok(Churned { processes, resident: memory, round, share })
}
