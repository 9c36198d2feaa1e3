//! Waiting for another thread that compiles or uses the same program, and how that ends early.

use std::time::{Duration, Instant};

/// Whether the calling thread must stop waiting. It may take its time and run code of the host language: no lock of
/// the cache is held meanwhile.
pub type InterruptCheck = fn() -> bool;

/// How often a waiting thread calls its check.
pub(crate) const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// Attempts to take a program that another thread uses before there is a pause between them.
const FIRST_ATTEMPTS: u32 = 100;
/// The pause after those.
const ATTEMPT_PERIOD: Duration = Duration::from_millis(1);

/// Why a thread does not wait for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotWait {
    /// The program is in use or compiled further up on this thread's own stack.
    Reentered,
    /// The thread's check returned true.
    Interrupted,
}

/// Calls `attempt` until it gives something.
///
/// # Errors
/// When the check, called about ten times a second, returns true first.
pub(crate) fn wait_for<R>(
    check: InterruptCheck,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, CannotWait> {
    let mut next_check = Instant::now() + CHECK_PERIOD;
    let mut attempts = 0;
    loop {
        if let Some(found) = attempt() {
            return Ok(found);
        }
        if attempts < FIRST_ATTEMPTS {
            // Most uses take microseconds.
            attempts += 1;
            std::thread::yield_now();
            continue;
        }
        if Instant::now() >= next_check {
            if check() {
                return Err(CannotWait::Interrupted);
            }
            next_check = Instant::now() + CHECK_PERIOD;
        }
        std::thread::sleep(ATTEMPT_PERIOD);
    }
}
