//! How long to wait before a message is sent again: longer each time, by chance a little more or
//! less so that many machines do not come at once, and never beyond the next export. Pure but for
//! the chance.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use super::send::SendError;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);
/// Attempts for the messages of one export, the first ones not counted.
const MOST_ATTEMPTS: u32 = 5;

/// The waits of one export.
#[derive(Debug)]
pub(super) struct ExportWaits {
    left: Duration,
    attempts: u32,
}

impl ExportWaits {
    pub(super) fn new(interval: Duration) -> Self {
        Self { left: interval, attempts: 0 }
    }

    /// How long to wait after this failure; none when it is time to give up.
    pub(super) fn next(&mut self, error: &SendError) -> Option<Duration> {
        if !error.is_worth_a_try() || self.attempts >= MOST_ATTEMPTS {
            return None;
        }
        let pause =
            error.wish().unwrap_or_else(|| jittered(FIRST * (1 << self.attempts), chance()));
        self.attempts += 1;
        self.left = self.left.checked_sub(pause)?;
        Some(pause)
    }
}

/// From half to all of `wait`.
fn jittered(wait: Duration, chance: u64) -> Duration {
    let share = u32::try_from(chance % 1000).expect("below a thousand");
    wait / 2 + wait / 2000 * share
}

/// A number that differs from machine to machine and from call to call.
fn chance() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::{ExportWaits, MOST_ATTEMPTS, jittered};
    use crate::otlp::send::SendError;
    use std::time::Duration;

    fn unavailable(after: Option<u64>) -> SendError {
        let after = after.map(Duration::from_secs);
        SendError::Refused { status: "503".to_owned(), again: true, after }
    }

    #[test]
    fn waits_grow_are_bounded_and_end_with_the_interval() {
        let mut waiting = ExportWaits::new(Duration::from_secs(3600));
        let waits: Vec<Duration> =
            std::iter::from_fn(|| waiting.next(&unavailable(None))).collect();
        assert_eq!(waits.len(), usize::try_from(MOST_ATTEMPTS).unwrap());
        for (place, wait) in waits.iter().enumerate() {
            let most = Duration::from_secs(1 << place);
            assert!(*wait >= most / 2 && *wait <= most, "{waits:?}");
        }
        let mut short = ExportWaits::new(Duration::from_secs(10));
        assert_eq!(short.next(&unavailable(Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(short.next(&unavailable(Some(7))), None, "beyond the next export");
        let never = SendError::Refused { status: "400".to_owned(), again: false, after: None };
        assert_eq!(ExportWaits::new(Duration::from_secs(60)).next(&never), None);
    }

    #[test]
    fn chance_stays_within_half() {
        let second = Duration::from_secs(1);
        assert_eq!(jittered(second, 0), second / 2);
        assert!(jittered(second, 999) <= second);
    }
}
