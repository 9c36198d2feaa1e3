//! Since when a process has recorded nothing: no allocation, no operation, no dispatch.

use std::collections::BTreeMap;

use telltale_schema::metric::definitions::{
    PROCESS_OPERATIONS_TOTAL, PROCESS_PROGRAM_CACHE_HITS_TOTAL, PROCESS_PROGRAM_CACHE_MISSES_TOTAL,
};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{MetricValue, Process, ProcessState, Snapshot};

/// Processes that are followed at one time.
const MAX_TRACKED: usize = 8192;

/// What each process had done when it last did something.
#[derive(Default)]
pub(super) struct ProcessActivity {
    tracked: BTreeMap<ProcessIdentity, Last>,
}

struct Last {
    done: u64,
    changed_ns: u64,
    seen: bool,
}

impl ProcessActivity {
    /// Takes note of a snapshot. A process that is seen for the first time counts as active.
    pub(super) fn observe(&mut self, now_ns: u64, snapshot: &Snapshot) {
        let living = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
        for (process, identity) in living.filter_map(|one| Some((one, one.identity?))) {
            let Some(done) = done(process) else { continue };
            let full = self.tracked.len() >= MAX_TRACKED;
            match self.tracked.get_mut(&identity) {
                Some(last) => {
                    last.seen = true;
                    if last.done != done {
                        (last.done, last.changed_ns) = (done, now_ns);
                    }
                }
                None if full => {}
                None => {
                    self.tracked.insert(identity, Last { done, changed_ns: now_ns, seen: true });
                }
            }
        }
    }

    /// For how long a process has done nothing; `None` if unknown.
    pub(super) fn quiet_ns(&self, identity: ProcessIdentity, now_ns: u64) -> Option<u64> {
        let last = self.tracked.get(&identity)?;
        Some(now_ns.saturating_sub(last.changed_ns))
    }

    /// Drops who was not in the last snapshot.
    pub(super) fn forget_the_unseen(&mut self) {
        self.tracked.retain(|_, last| std::mem::take(&mut last.seen));
    }
}

/// A number that changes whenever the process does something; none for a process that records
/// nothing itself. Sums wrap: only change counts.
fn done(process: &Process) -> Option<u64> {
    let kinds = process.devices.iter().flat_map(|held| &held.kinds);
    let recorded: Vec<_> = kinds.filter_map(|kind| kind.usage.recorded()).collect();
    if recorded.is_empty() {
        return None;
    }
    let allocations = recorded.iter().map(|usage| usage.allocations.wrapping_add(usage.live_bytes));
    let counted = [
        PROCESS_OPERATIONS_TOTAL.name,
        PROCESS_PROGRAM_CACHE_HITS_TOTAL.name,
        PROCESS_PROGRAM_CACHE_MISSES_TOTAL.name,
    ];
    let operations = process.metrics.iter().filter(|metric| counted.contains(&&*metric.name));
    let operations = operations.map(|metric| match metric.value {
        MetricValue::Counter(count) => count,
        MetricValue::Gauge(value) => value.to_bits(),
        MetricValue::Histogram { .. } => 0,
    });
    Some(allocations.chain(operations).fold(0, u64::wrapping_add))
}
