//! Waiting for a condition with a deadline: what tests do instead of sleeping for a guessed time.

use std::time::{Duration, Instant};

/// The first pause between two checks of the condition.
const FIRST_PAUSE: Duration = Duration::from_micros(200);

/// The longest pause: short enough that a test is not slowed, long enough to leave the processor.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Returns once `condition` holds, looking at it at least once and once more at the deadline.
///
/// # Panics
/// Naming `what`, when the condition does not hold `within` that time.
#[track_caller]
pub fn wait_until(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let last_look = start.elapsed() >= within;
        if condition() {
            return;
        }
        assert!(!last_look, "waited {within:?} in vain for: {what}");
        std::thread::sleep(pause.min(within.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_when_the_condition_comes_true() {
        let mut looks = 0;
        wait_until("the third look", Duration::from_secs(10), || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    #[should_panic(expected = "the moon")]
    fn names_what_did_not_come() {
        wait_until("the moon", Duration::from_millis(2), || false);
    }
}
