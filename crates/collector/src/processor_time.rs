//! The time of the host's processors: the share that they are busy, from one sample of `/proc/stat` to
//! the next.

use telltale_schema::reading::{Absence, Reading};

use crate::rate::{Rate, SampledAt};

const NOT_THE_SUM: &str = "its first line is not the sum";

/// Time that all processors together have spent since the boot, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessorTime {
    busy: u64,
    all: u64,
}

/// The share of the processors' time that is not idle, followed over time.
#[derive(Debug, Default)]
pub(crate) struct ProcessorRate(Rate<ProcessorTime, f64>);

// === impl ProcessorRate ===

impl ProcessorRate {
    /// Takes note of what `/proc/stat` is now, or why it is not known, and returns the share, from 0 to 1,
    /// since the sample before.
    pub(crate) fn follow(
        &mut self,
        stat: Result<&[u8], Reading<f64>>,
        moment: SampledAt,
    ) -> Reading<f64> {
        let time = stat.and_then(|text| {
            ProcessorTime::parse(text)
                .ok_or_else(|| Reading::absent(Absence::NotUnderstood, NOT_THE_SUM))
        });
        self.0.follow(time, moment, |before, now, _| now.busy_since(before))
    }
}

// === impl ProcessorTime ===

impl ProcessorTime {
    /// From the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    /// What follows, guests' time, is in user and nice already.
    fn parse(text: &[u8]) -> Option<Self> {
        let line = text.split(|byte| *byte == b'\n').next()?;
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        (words.next()? == "cpu").then_some(())?;
        let ticks: Vec<u64> = words.take(8).map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else { return None };
        let waiting = rest.first().copied().unwrap_or(0);
        let more = rest.iter().skip(1);
        let busy = [user, nice, system].into_iter().chain(more);
        let busy = busy.fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
        Some(Self { busy, all: busy.saturating_add(*idle).saturating_add(waiting) })
    }

    /// The share that was busy since `before`; none where no time has passed, or where the counters
    /// went back, as iowait may.
    #[allow(clippy::cast_precision_loss)]
    fn busy_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let busy = self.busy.checked_sub(before.busy)?;
        Some((busy as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessorTime;

    #[test]
    fn only_time_that_passed_is_a_share() {
        let at = |text: &str| ProcessorTime::parse(text.as_bytes());
        let first = at("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 2 3 4").unwrap();
        assert_eq!(first, ProcessorTime { busy: 150, all: 1000 });
        let later = at("cpu  130 0 60 850 60 0 0 0 9 9").unwrap();
        assert_eq!(later.busy_since(first), Some(0.4));
        assert_eq!(first.busy_since(first), None, "no time has passed");
        assert_eq!(first.busy_since(later), None, "it went back");
        assert_eq!(at("cpu 1 2 3 4").unwrap(), ProcessorTime { busy: 6, all: 10 }, "Linux 2.4");
        for bad in ["", "cpu0 1 2 3 4 5", "cpu 1 2 3", "cpu 1 2 x 4 5", "cpu -1 2 3 4 5"] {
            assert_eq!(at(bad), None, "{bad}");
        }
        let most = at(&format!("cpu {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX)).unwrap();
        assert_eq!(most.busy, u64::MAX);
    }
}
