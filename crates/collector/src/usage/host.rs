//! The host: `/proc/stat`, `/proc/meminfo`, `/proc/loadavg` and the processors that are online.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::HostUsage;

use super::FileText;
use crate::hardware::kibibytes;
use crate::processor_time::ProcessorRate;

/// The files that are read of the host, in the order of [`HostRates::follow`].
pub(super) const FILES: [&str; 4] =
    ["proc/stat", "proc/meminfo", "proc/loadavg", "sys/devices/system/cpu/online"];

/// The rate of the host.
#[derive(Debug, Default)]
pub(super) struct HostRates {
    cpu: ProcessorRate,
}

// === impl HostRates ===

impl HostRates {
    /// Takes note of the texts of [`FILES`], and returns what follows.
    pub(super) fn follow(
        &mut self,
        [(stat, moment), (meminfo, _), (loadavg, _), (online, _)]: [FileText; FILES.len()],
        now: Timestamp,
    ) -> HostUsage {
        let memory = |value: fn(&[u8]) -> Option<u64>| match &meminfo {
            Ok(text) => understood(value(text), now),
            Err(error) => error.reading(),
        };
        let load = match loadavg {
            Ok(text) => match loads(&text) {
                Some(loads) => loads.map(|load| Reading::new(load, now)),
                None => [(); 3].map(|()| Reading::absent(Absence::NotUnderstood, "")),
            },
            Err(error) => [(); 3].map(|()| error.reading()),
        };
        let processors = match online {
            Ok(text) => understood(listed(&text), now),
            Err(error) => error.reading(),
        };
        let [load_1, load_5, load_15] = load;
        let stat = stat.as_deref().map_err(|error| error.reading());
        HostUsage {
            cpu_ratio: self.cpu.follow(stat, moment),
            processors,
            used_bytes: memory(|text| {
                kibibytes(text, "MemTotal")?.checked_sub(kibibytes(text, "MemAvailable")?)
            }),
            memory_bytes: memory(|text| kibibytes(text, "MemTotal")),
            load_1,
            load_5,
            load_15,
        }
    }
}

fn understood(value: Option<u64>, now: Timestamp) -> Reading<u64> {
    match value {
        Some(value) => Reading::new(value, now),
        None => Reading::absent(Absence::NotUnderstood, ""),
    }
}

/// The three averages of `/proc/loadavg`.
fn loads(text: &[u8]) -> Option<[f64; 3]> {
    let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let mut next = || {
        let load: f64 = words.next()?.parse().ok()?;
        (load.is_finite() && load >= 0.0).then_some(load)
    };
    Some([next()?, next()?, next()?])
}

/// How many numbers a list such as `0-3,8` has.
fn listed(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let mut count = 0u64;
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::{listed, loads};

    #[test]
    fn only_what_the_kernel_writes_is_understood() {
        assert_eq!(loads(b"0.20 0.18 12.5 1/80 11206\n"), Some([0.2, 0.18, 12.5]));
        for bad in [&b""[..], b"0.2 0.3", b"nan 1 1", b"-1 0 0", b"\xff 1 1"] {
            assert_eq!(loads(bad), None);
        }
        assert_eq!(listed(b"0-3,8\n"), Some(5));
        assert_eq!(listed(b"0\n"), Some(1));
        for bad in [&b""[..], b"3-0", b"a", b"0-", b"0-18446744073709551615", b"\xff"] {
            assert_eq!(listed(bad), None);
        }
    }
}
