//! One process: `/proc/<pid>/stat`, and the text of `/proc/<pid>/io`.

use telltale_schema::process::ProcessStat;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::ProcessUsage;

use super::FileText;
use crate::processes::{NANOSECONDS_PER_TICK, Procfs};
use crate::rate::{Rate, SampledAt};
use crate::tree::{Directory, Unreadable};

/// What the kernel has counted for a process since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessCounters {
    /// When it started, in ticks after boot.
    pub(super) start_ticks: u64,
    cpu_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

/// The rates of a process: its processor time, and the bytes that storage reads and writes for it.
#[derive(Debug, Default)]
pub(super) struct ProcessRates {
    cpu: Rate<u64, f64>,
    storage: [Rate<u64, u64>; 2],
}

// === impl ProcessCounters ===

impl ProcessCounters {
    /// Reads those of the process that has `pid` now, and returns its directory with them.
    pub(super) fn read(procfs: &Procfs, pid: u32) -> Result<(Self, Directory), (Absence, String)> {
        let unreadable = |error: Unreadable| match error.absence() {
            Absence::Gone => (Absence::Gone, String::new()),
            _ if error.is_missing() => (Absence::Gone, String::new()),
            absence => (absence, error.to_string()),
        };
        let directory = procfs.directory(pid).map_err(unreadable)?;
        let stat = directory.attribute("stat").map_err(unreadable)?;
        let bad = || (Absence::NotUnderstood, String::from("its stat is no such line"));
        let counters = Self::parse(&stat).ok_or_else(bad)?;
        Ok((counters, directory))
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let stat = ProcessStat::parse(line)?;
        Some(Self {
            start_ticks: stat.start_time_ticks,
            cpu_ticks: stat.cpu_ticks,
            threads: stat.threads,
            resident_pages: stat.resident_pages,
        })
    }
}

/// Reads the text with the storage counters of the process whose directory this is. May hang: the
/// kernel waits for a lock that a process holds while it starts another program.
pub(super) fn read_storage(directory: &Directory) -> Result<Vec<u8>, Unreadable> {
    directory.attribute("io")
}

/// The bytes that storage read and wrote, or why they are not known.
fn storage_counters(text: Result<Vec<u8>, Unreadable>) -> Result<[u64; 2], Reading<u64>> {
    match text {
        Ok(text) => storage(&text).ok_or_else(|| Reading::absent(Absence::NotUnderstood, "")),
        Err(error) if error.is_missing() => {
            Err(Reading::absent(Absence::Unsupported, "this kernel does not count it"))
        }
        Err(error) if error.absence() == Absence::Gone => Err(Reading::absent(Absence::Gone, "")),
        Err(error) => Err(error.reading()),
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
    /// Takes note of what the counters are now, those of storage as read a little later, and returns
    /// what follows.
    pub(super) fn follow(
        &mut self,
        (now, moment): (ProcessCounters, SampledAt),
        (storage, storage_moment): FileText,
    ) -> ProcessUsage {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let [read, written] = match storage_counters(storage) {
            Ok(counters) => counters.map(Ok),
            Err(absent) => [Err(absent.clone()), Err(absent)],
        };
        let [read_rate, written_rate] = &mut self.storage;
        ProcessUsage {
            cpu_ratio: self.cpu.follow(Ok(now.cpu_ticks), moment, processors),
            resident_bytes: Reading::new(now.resident_pages.saturating_mul(page), moment.at),
            threads: Reading::new(now.threads, moment.at),
            read_bytes_per_second: read_rate.follow(read, storage_moment, a_second),
            written_bytes_per_second: written_rate.follow(written, storage_moment, a_second),
        }
    }
}

/// How many processors were busy with it, from ticks.
#[allow(clippy::cast_precision_loss, clippy::unnecessary_wraps)]
fn processors(before: u64, now: u64, span_ns: u64) -> Option<f64> {
    let busy_ns = now.saturating_sub(before).saturating_mul(NANOSECONDS_PER_TICK);
    Some(busy_ns as f64 / span_ns as f64)
}

#[allow(clippy::unnecessary_wraps)]
fn a_second(before: u64, now: u64, span_ns: u64) -> Option<u64> {
    let gained = u128::from(now.saturating_sub(before)) * 1_000_000_000;
    Some(u64::try_from(gained / u128::from(span_ns)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::{Absence, Reading};
    use telltale_schema::snapshot::ProcessUsage;

    use super::{ProcessCounters, ProcessRates, storage};
    use crate::rate::SampledAt;
    use crate::tree::Unreadable;

    /// What follows from these counters of a process at a time.
    fn follow(
        rates: &mut ProcessRates,
        milliseconds: u64,
        cpu_ticks: u64,
        storage: Result<[u64; 2], Unreadable>,
    ) -> ProcessUsage {
        let ns = milliseconds * 1_000_000;
        let moment = SampledAt { at: Timestamp(ns), monotonic_ns: ns };
        let line =
            format!("7 (x) (y) R 1 7 7 0 -1 4 0 0 0 0 {cpu_ticks} 5 0 0 20 0 3 0 4242 9 17 0");
        let counters = ProcessCounters::parse(line.as_bytes()).unwrap();
        let text = |[read, written]: [u64; 2]| {
            format!("rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}\n").into_bytes()
        };
        rates.follow((counters, moment), (storage.map(text), moment))
    }

    fn reason<T>(reading: &Reading<T>) -> Option<Absence> {
        reading.absence().map(|(reason, _)| reason)
    }

    #[test]
    fn rates_are_of_the_time_that_passed() {
        let mut rates = ProcessRates::default();
        let first = follow(&mut rates, 0, 100, Ok([0, 10]));
        assert_eq!(first.threads.value(), Some(&3));
        let page = u64::try_from(rustix::param::page_size()).unwrap();
        assert_eq!(first.resident_bytes.value(), Some(&(17 * page)));
        assert_eq!(reason(&first.cpu_ratio), Some(Absence::NotYet));
        assert_eq!(reason(&first.read_bytes_per_second), Some(Absence::NotYet));
        let second = follow(&mut rates, 500, 150, Ok([4096, 10]));
        assert_eq!(second.cpu_ratio.value(), Some(&1.0), "500 ms in 500 ms");
        assert_eq!(second.read_bytes_per_second.value(), Some(&8192));
        assert_eq!(second.written_bytes_per_second.value(), Some(&0));
        let soon = follow(&mut rates, 501, 151, Ok([9999, 10]));
        assert_eq!(soon.cpu_ratio, second.cpu_ratio, "a tick in a millisecond says nothing");
        assert_eq!(soon.read_bytes_per_second, second.read_bytes_per_second);
        let back = follow(&mut rates, 1500, 0, Ok([0, 0]));
        assert_eq!(back.cpu_ratio.value(), Some(&0.0), "a counter that goes back is no time");
    }

    #[test]
    fn what_could_not_be_read_has_its_reason_until_it_can() {
        for (error, expected) in [
            (Unreadable::Errno(Errno::ACCESS), Absence::Permission),
            (Unreadable::Errno(Errno::SRCH), Absence::Gone),
            (Unreadable::Errno(Errno::NOENT), Absence::Unsupported),
            (Unreadable::Hung, Absence::TimedOut),
        ] {
            let mut rates = ProcessRates::default();
            for milliseconds in [0, 1000] {
                let usage = follow(&mut rates, milliseconds, milliseconds / 100, Err(error));
                assert_eq!(reason(&usage.read_bytes_per_second), Some(expected));
                assert_eq!(reason(&usage.written_bytes_per_second), Some(expected));
            }
            let readable = follow(&mut rates, 2000, 20, Ok([10, 20]));
            assert_eq!(readable.cpu_ratio.value(), Some(&0.1));
            assert_eq!(reason(&readable.read_bytes_per_second), Some(Absence::NotYet), "{error}");
            let next = follow(&mut rates, 3000, 30, Ok([15, 20]));
            assert_eq!(next.read_bytes_per_second.value(), Some(&5));
            assert_eq!(next.written_bytes_per_second.value(), Some(&0));
        }
    }

    #[test]
    fn what_is_no_such_file_is_nothing() {
        assert_eq!(storage(b"rchar: 1\nread_bytes: 4096\nwrite_bytes: 12\n"), Some([4096, 12]));
        for bad in [&b""[..], b"read_bytes: 1", b"read_bytes: -1\nwrite_bytes: 2", b"\xff"] {
            assert_eq!(storage(bad), None);
        }
    }
}
