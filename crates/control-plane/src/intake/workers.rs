//! How the node's workers are, as /proc reports: whether one is stopped, and what each uses.
//!
//! Only the process that the agent started is checked, not what it starts in turn. A process
//! that is gone, or is another than it was, has no usage.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use telltale_cluster::intake::{WorkerProcess, WorkerUsage};
use telltale_schema::process::ProcessStat;

/// Bytes of `/proc/<pid>/stat` that are read; the kernel writes 52 numbers and a name of at most 64.
const MAX_STAT_BYTES: u64 = 4096;

/// The latest look at each worker.
#[derive(Debug, Default)]
pub(super) struct Usage {
    latest: Vec<WorkerUsage>,
    at: Option<Instant>,
}

impl Usage {
    pub(super) fn latest(&self) -> &[WorkerUsage] {
        &self.latest
    }

    pub(super) fn sample(&mut self, processes: &[WorkerProcess], now: Instant) {
        let before = std::mem::take(&mut self.latest);
        let passed = self.at.replace(now).map(|at| now.duration_since(at).as_secs_f64());
        let ticks_per_second = ticks_per_second();
        let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
        for process in processes {
            let Some(text) = read(process.pid) else { continue };
            let Some(stat) = ProcessStat::parse(&text) else { continue };
            let cpu_seconds = seconds(stat.cpu_ticks, ticks_per_second);
            let is_it = |usage: &&WorkerUsage| {
                (usage.rank, usage.pid) == (process.rank, process.pid)
                    && usage.cpu_seconds <= cpu_seconds
            };
            let cpu_ratio = before
                .iter()
                .find(is_it)
                .zip(passed.filter(|passed| *passed > 0.0))
                .map(|(usage, passed)| (cpu_seconds - usage.cpu_seconds) / passed);
            self.latest.push(WorkerUsage {
                rank: process.rank,
                pid: process.pid,
                is_stopped: matches!(stat.state, b'T' | b't'),
                resident_bytes: stat.resident_pages.saturating_mul(page_bytes),
                cpu_seconds,
                cpu_ratio,
            });
        }
    }
}

fn ticks_per_second() -> u32 {
    u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100).max(1)
}

fn seconds(ticks: u64, ticks_per_second: u32) -> f64 {
    let each = u64::from(ticks_per_second);
    let rest_ns = ticks % each * 1_000_000_000 / each;
    (Duration::from_secs(ticks / each) + Duration::from_nanos(rest_ns)).as_secs_f64()
}

fn read(pid: u32) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(format!("/proc/{pid}/stat")).ok()?;
    file.take(MAX_STAT_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use telltale_cluster::rank::Rank;

    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "these are told exactly")]
    fn processor_time_goes_on_after_years() {
        assert_eq!(seconds(150, 100), 1.5);
        // 64 processors for a month, and one tick more.
        let month = 64 * 30 * 86_400;
        assert_eq!(seconds(month * 100, 100), 165_888_000.0);
        assert!(seconds(month * 100 + 1, 100) > 165_888_000.0);
        assert!(seconds(u64::MAX, 1).is_finite());
    }

    #[test]
    fn a_process_has_a_usage_while_it_is_there() {
        let own = WorkerProcess { rank: Rank(3), pid: std::process::id() };
        let gone = WorkerProcess { rank: Rank(4), pid: u32::MAX };
        let mut usage = Usage::default();
        usage.sample(&[own, gone], Instant::now());
        let [first] = usage.latest() else { panic!("{usage:?}") };
        assert_eq!((first.rank, first.is_stopped, first.cpu_ratio), (Rank(3), false, None));
        assert!(first.resident_bytes > 100_000);
        usage.sample(&[own], Instant::now());
        assert!(usage.latest()[0].cpu_ratio.is_some_and(|ratio| ratio >= 0.0));
    }
}
