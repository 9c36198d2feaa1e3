//! Lets messages gather before a busy thread waits for more.
//!
//! Ten thousand nodes report at ten thousand moments of a second. A thread that goes to sleep after each report and
//! is woken for the next spends a quarter of its time on that; network cards moderate interrupts for the same
//! reason. A thread that is woken rarely is left alone.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a busy thread rests before it waits: the longest that this delays anything.
const REST: Duration = Duration::from_millis(4);
/// Waits less than this apart are in quick succession.
const QUICK: Duration = Duration::from_millis(1);
/// So many of these in a row make busy.
const BUSY_AFTER: u32 = 32;
/// How long it then counts as that, before it is checked again.
const BUSY_FOR: Duration = Duration::from_millis(100);

/// Watches how often the threads of a runtime wait.
#[derive(Debug, Default)]
pub struct Moderation(Mutex<WaitHistory>);

/// How often a thread has waited lately.
#[derive(Debug, Default)]
struct WaitHistory {
    last: Option<Instant>,
    /// Waits in quick succession.
    quick: u32,
    busy_until: Option<Instant>,
}

impl Moderation {
    /// Rests if the runtime is busy. To be called when one of its threads is about to wait
    /// (`tokio::runtime::Builder::on_thread_park`).
    pub fn before_wait(&self) {
        let rests = self.0.lock().unwrap_or_else(PoisonError::into_inner).rests(Instant::now());
        if rests {
            std::thread::sleep(REST);
        }
    }
}

impl WaitHistory {
    /// Whether a thread about to wait now must rest first.
    fn rests(&mut self, now: Instant) -> bool {
        let last = self.last.replace(now);
        if self.busy_until.is_some_and(|until| now < until) {
            return true;
        }
        let is_quick = last.is_some_and(|last| now.saturating_duration_since(last) < QUICK);
        self.quick = if is_quick { self.quick + 1 } else { 0 };
        if self.quick < BUSY_AFTER {
            return false;
        }
        (self.quick, self.busy_until) = (0, Some(now + BUSY_FOR));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a second in which a thread is woken every `each`, how often it rests.
    fn rests(each: Duration) -> u32 {
        let start = Instant::now();
        let (mut pace, mut now, mut rests) = (WaitHistory::default(), start, 0);
        while now < start + Duration::from_secs(1) {
            if pace.rests(now) {
                rests += 1;
                now += REST;
            }
            now += each;
        }
        rests
    }

    #[test]
    fn a_thread_that_is_woken_all_the_time_rests_and_others_do_not() {
        assert_eq!(rests(Duration::from_millis(5)), 0);
        assert_eq!(rests(QUICK), 0);
        // Without rests it would wait ten thousand times.
        let busy = rests(Duration::from_micros(100));
        assert!((200..=250).contains(&busy), "{busy}");
    }

    #[test]
    fn a_burst_is_soon_forgotten() {
        let (mut pace, start) = (WaitHistory::default(), Instant::now());
        let burst: Vec<bool> = (0..=BUSY_AFTER).map(|_| pace.rests(start)).collect();
        assert_eq!(burst.iter().filter(|rests| **rests).count(), 1);
        assert!(pace.rests(start + BUSY_FOR / 2));
        assert!(!pace.rests(start + BUSY_FOR));
        assert!(!pace.rests(start + 2 * BUSY_FOR));
    }
}
