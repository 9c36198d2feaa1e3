//! One process: `/proc/<pid>/stat` and `/proc/<pid>/io`.

use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::ProcessUsage;

use super::{LEAST_SPAN, Rate, SampledAt};
use crate::processes::{NANOSECONDS_PER_TICK, Procfs};
use crate::tree::Unreadable;

/// What the kernel has counted for a process since its start.
#[derive(Debug, Clone)]
pub(super) struct ProcessCounters {
    /// When it started, in ticks after boot.
    pub(super) start_ticks: u64,
    cpu_ticks: u64,
    threads: u64,
    resident_pages: u64,
    /// Bytes that storage read and wrote for it, or why they are not known.
    storage: Result<[u64; 2], Reading<u64>>,
}

/// The rates of a process, and what they were computed from last.
#[derive(Debug, Default)]
pub(super) struct ProcessRates {
    before: Option<(ProcessCounters, u64)>,
    cpu: Rate<f64>,
    storage: [Rate<u64>; 2],
}

// === impl ProcessCounters ===

impl ProcessCounters {
    /// Reads those of the process that has `pid` now.
    pub(super) fn read(procfs: &Procfs, pid: u32) -> Result<Self, (Absence, String)> {
        let unreadable = |error: Unreadable| match error.absence() {
            Absence::Gone => (Absence::Gone, String::new()),
            _ if error.is_missing() => (Absence::Gone, String::new()),
            absence => (absence, error.to_string()),
        };
        let directory = procfs.directory(pid).map_err(unreadable)?;
        let stat = directory.attribute("stat").map_err(unreadable)?;
        let storage = match directory.attribute("io") {
            Ok(text) => storage(&text).ok_or_else(|| Reading::absent(Absence::NotUnderstood, "")),
            Err(error) if error.is_missing() => {
                Err(Reading::absent(Absence::Unsupported, "this kernel does not count it"))
            }
            Err(error) if error.absence() == Absence::Gone => {
                Err(Reading::absent(Absence::Gone, ""))
            }
            Err(error) => Err(error.reading()),
        };
        let bad = || (Absence::NotUnderstood, String::from("its stat is no such line"));
        Self::parse(&stat, storage).ok_or_else(bad)
    }

    /// From a `stat` line: utime and stime (fields 14 and 15), num_threads (20), starttime (22) and rss
    /// (24), see proc_pid_stat(5). The name may hold brackets and spaces, so they are counted from the
    /// last bracket.
    fn parse(line: &[u8], storage: Result<[u64; 2], Reading<u64>>) -> Option<Self> {
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(22).collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)?.checked_add(field(15)?)?,
            threads: field(20)?,
            start_ticks: field(22)?,
            resident_pages: field(24)?,
            storage,
        })
    }
}

/// `read_bytes` and `write_bytes` of `/proc/<pid>/io`.
fn storage(text: &[u8]) -> Option<[u64; 2]> {
    let text = std::str::from_utf8(text).ok()?;
    let line = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().parse().ok()
    };
    Some([line("read_bytes")?, line("write_bytes")?])
}

// === impl ProcessRates ===

impl ProcessRates {
    /// Takes note of what the counters are now, and returns what follows.
    pub(super) fn follow(&mut self, now: ProcessCounters, moment: SampledAt) -> ProcessUsage {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let resident_bytes = Reading::new(now.resident_pages.saturating_mul(page), moment.at);
        let threads = Reading::new(now.threads, moment.at);
        if let Err(absent) = &now.storage {
            self.storage = [(); 2].map(|()| Rate(absent.clone()));
        }
        match &self.before {
            None => self.before = Some((now, moment.monotonic_ns)),
            Some((before, then_ns)) => {
                let span_ns = moment.monotonic_ns.saturating_sub(*then_ns);
                if u128::from(span_ns) >= LEAST_SPAN.as_nanos() {
                    self.compute(&before.clone(), &now, span_ns, moment);
                    self.before = Some((now, moment.monotonic_ns));
                }
            }
        }
        let [read, written] = &self.storage;
        ProcessUsage {
            cpu_ratio: self.cpu.0.clone(),
            resident_bytes,
            threads,
            read_bytes_per_second: read.0.clone(),
            written_bytes_per_second: written.0.clone(),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn compute(
        &mut self,
        before: &ProcessCounters,
        now: &ProcessCounters,
        span_ns: u64,
        moment: SampledAt,
    ) {
        let ticks = now.cpu_ticks.saturating_sub(before.cpu_ticks);
        let busy_ns = ticks.saturating_mul(NANOSECONDS_PER_TICK);
        self.cpu = Rate(Reading::new(busy_ns as f64 / span_ns as f64, moment.at));
        if let (Ok(before), Ok(now)) = (&before.storage, &now.storage) {
            let rate = |before: u64, now: u64| {
                let bytes = u128::from(now.saturating_sub(before)) * 1_000_000_000;
                let rate = u64::try_from(bytes / u128::from(span_ns)).unwrap_or(u64::MAX);
                Rate(Reading::new(rate, moment.at))
            };
            self.storage = [rate(before[0], now[0]), rate(before[1], now[1])];
        }
    }
}

#[cfg(test)]
mod tests {
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::{Absence, Reading};

    use super::super::SampledAt;
    use super::{ProcessCounters, ProcessRates, storage};

    fn moment(milliseconds: u64) -> SampledAt {
        let ns = milliseconds * 1_000_000;
        SampledAt { at: Timestamp(ns), monotonic_ns: ns }
    }

    fn counters(cpu_ticks: u64, bytes: Result<[u64; 2], Reading<u64>>) -> ProcessCounters {
        let line =
            format!("7 (x) (y) R 1 7 7 0 -1 4 0 0 0 0 {cpu_ticks} 5 0 0 20 0 3 0 4242 9 17 0");
        ProcessCounters::parse(line.as_bytes(), bytes).unwrap()
    }

    #[test]
    fn rates_are_of_the_time_that_passed() {
        let mut rates = ProcessRates::default();
        let first = rates.follow(counters(100, Ok([0, 10])), moment(0));
        assert_eq!(first.threads.value(), Some(&3));
        let page = u64::try_from(rustix::param::page_size()).unwrap();
        assert_eq!(first.resident_bytes.value(), Some(&(17 * page)));
        assert!(matches!(first.cpu_ratio, Reading::Absent { absent: Absence::NotYet, .. }));
        assert!(matches!(
            first.read_bytes_per_second,
            Reading::Absent { absent: Absence::NotYet, .. }
        ));
        let second = rates.follow(counters(150, Ok([4096, 10])), moment(500));
        assert_eq!(second.cpu_ratio.value(), Some(&1.0), "500 ms in 500 ms");
        assert_eq!(second.read_bytes_per_second.value(), Some(&8192));
        assert_eq!(second.written_bytes_per_second.value(), Some(&0));
        let soon = rates.follow(counters(151, Ok([9999, 10])), moment(501));
        assert_eq!(soon.cpu_ratio, second.cpu_ratio, "a tick in a millisecond says nothing");
        assert_eq!(soon.read_bytes_per_second, second.read_bytes_per_second);
        let back = rates.follow(counters(0, Ok([0, 0])), moment(1500));
        assert_eq!(back.cpu_ratio.value(), Some(&0.0), "a counter that goes back is no time");
    }

    #[test]
    fn what_may_not_be_read_has_its_reason() {
        let mut rates = ProcessRates::default();
        let denied = Reading::absent(Absence::Permission, "no");
        rates.follow(counters(0, Err(denied.clone())), moment(0));
        let usage = rates.follow(counters(10, Err(denied.clone())), moment(1000));
        assert_eq!((usage.cpu_ratio.value(), usage.read_bytes_per_second), (Some(&0.1), denied));
    }

    #[test]
    fn what_is_no_such_file_is_nothing() {
        assert_eq!(storage(b"rchar: 1\nread_bytes: 4096\nwrite_bytes: 12\n"), Some([4096, 12]));
        for bad in [&b""[..], b"read_bytes: 1", b"read_bytes: -1\nwrite_bytes: 2", b"\xff"] {
            assert_eq!(storage(bad), None);
        }
        for bad in [
            &b""[..],
            b"7 (x",
            b"7 (x) R 1 2 3",
            b"7 (x) R 1 7 7 0 -1 4 0 0 0 0 a 5 0 0 20 0 3 0 1 9 17",
        ] {
            assert!(ProcessCounters::parse(bad, Ok([0; 2])).is_none());
        }
    }
}
