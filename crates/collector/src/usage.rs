//! What processes and their host use of processors, memory and storage: read while a view shows it.
//!
//! Two small files of each process and four of the host, from which rates follow from one reading to
//! the next. Nothing is read, and nothing kept, while no one asks.

mod host;
mod process;

use std::collections::HashMap;
use std::time::Duration;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{HostUsage, Process, ProcessState, ProcessUsage};

use crate::processes::{Booted, Procfs};
use host::HostRates;
use process::{ProcessCounters, ProcessRates};

/// Over less time no rate is computed: the kernel counts in ticks of 10 ms.
pub(crate) const LEAST_SPAN: Duration = Duration::from_millis(200);

const FIRST_SAMPLE: &str = "it is measured from one sample to the next";

/// What is followed while someone looks.
#[derive(Debug, Default)]
pub(crate) struct UsageReader {
    /// By pid and start.
    processes: HashMap<(u32, u64), ProcessRates>,
    host: HostRates,
}

/// When something is read: by the wall clock, and by a clock that never goes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledAt {
    pub(crate) at: Timestamp,
    pub(crate) monotonic_ns: u64,
}

// === impl UsageReader ===

impl UsageReader {
    /// Fills in what these processes use, and returns what all together do.
    pub(crate) fn read(
        &mut self,
        (procfs, booted): (&Procfs, Booted),
        processes: &mut [Process],
        now: SampledAt,
    ) -> HostUsage {
        let mut before = std::mem::take(&mut self.processes);
        for process in processes {
            let counters = match (process.state, process.pid) {
                (ProcessState::Dead, _) => Err((Absence::Ended, String::new())),
                (ProcessState::Hidden, _) | (_, None) => Err((Absence::Hidden, String::new())),
                (ProcessState::Alive, Some(pid)) => {
                    ProcessCounters::read(procfs, pid).and_then(|found| {
                        let is_same = process.started_at == Some(booted.start(found.start_ticks));
                        if is_same { Ok((pid, found)) } else { Err((Absence::Gone, String::new())) }
                    })
                }
            };
            let usage = match counters {
                Err((reason, detail)) => ProcessUsage::absent(reason, &detail),
                Ok((pid, counters)) => {
                    let key = (pid, counters.start_ticks);
                    let mut rates = before.remove(&key).unwrap_or_default();
                    let usage = rates.follow(counters, now);
                    self.processes.insert(key, rates);
                    usage
                }
            };
            process.usage = Some(Box::new(usage));
        }
        self.host.read(procfs, now)
    }
}

/// A rate that is followed over time.
#[derive(Debug, Clone, PartialEq)]
struct Rate<T>(Reading<T>);

impl<T> Default for Rate<T> {
    fn default() -> Self {
        Self(Reading::absent(Absence::NotYet, FIRST_SAMPLE))
    }
}
