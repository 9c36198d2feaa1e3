//! How busy this machine is, as /proc reports.
//!
//! What cannot be read is not known; nothing is made up for it.

use std::fs::File;
use std::io::Read;

/// Bytes of a file that are read: the first lines of `/proc/stat` and all of `/proc/meminfo`.
const MAX_FILE_BYTES: u64 = 8192;

/// The latest look at the machine.
#[derive(Debug, Default)]
pub(super) struct MachineSample {
    /// Ticks of all processors since the machine began: busy ones and all.
    ticks: Option<(u64, u64)>,
    /// How busy the processors were between the last two polls, 0 to 1.
    pub(super) busy_ratio: Option<f64>,
    /// Memory in use and in all, in bytes.
    pub(super) memory_bytes: Option<(u64, u64)>,
}

impl MachineSample {
    pub(super) fn sample(&mut self) {
        let ticks = read("/proc/stat").as_deref().and_then(ticks);
        self.busy_ratio = self.ticks.zip(ticks).and_then(|(before, now)| busy(before, now));
        self.ticks = ticks;
        self.memory_bytes = read("/proc/meminfo").as_deref().and_then(memory_bytes);
    }
}

fn read(path: &str) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Busy ticks and all ticks, from the line of all processors (proc(5), `/proc/stat`). Waiting for a
/// disk is not busy; guests are within the user's time already.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers = line.split_ascii_whitespace().take(8).map(str::parse::<u64>);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    let all = numbers.iter().try_fold(0, |sum: u64, one| sum.checked_add(*one))?;
    let idle = numbers.get(3)?.checked_add(*numbers.get(4)?)?;
    Some((all - idle, all))
}

fn busy(before: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let (busy, all) = (now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?);
    let (busy, all) = (u32::try_from(busy).ok()?, u32::try_from(all).ok()?);
    (all > 0).then(|| f64::from(busy.min(all)) / f64::from(all))
}

/// Memory in use and in all: what is not available to a new program is in use.
fn memory_bytes(text: &str) -> Option<(u64, u64)> {
    let kibibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    let all = kibibytes("MemTotal:")?;
    Some((all.checked_sub(kibibytes("MemAvailable:")?)?, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_processors_is_read() {
        let text = "cpu  10 1 5 70 4 0 0 10 3 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(ticks(text), Some((26, 100)));
        for bad in ["", "cpu0 1 2 3", "cpu  1 2 3", "cpu  1 2 3 x 5", "cpu  1 2 3 -4 5"] {
            assert_eq!(ticks(bad), None, "{bad}");
        }
        assert_eq!(busy((10, 100), (35, 150)), Some(0.5));
        assert_eq!(busy((10, 100), (10, 100)), None);
        assert_eq!(busy((10, 100), (9, 150)), None, "it never goes back");
    }

    #[test]
    fn memory_in_use_is_what_is_not_available() {
        let text = "MemTotal:       1000 kB\nMemFree:  5 kB\nMemAvailable:    400 kB\n";
        assert_eq!(memory_bytes(text), Some((600 * 1024, 1000 * 1024)));
        for bad in ["", "MemTotal: 5 kB", "MemTotal: 5 kB\nMemAvailable: 6 kB\n", "MemTotal: x kB"]
        {
            assert_eq!(memory_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_machine_has_memory() {
        let mut machine = MachineSample::default();
        machine.sample();
        let (used, all) = machine.memory_bytes.unwrap();
        assert!(used < all && all > 1 << 20);
        assert_eq!(machine.busy_ratio, None, "one look is no interval");
    }
}
