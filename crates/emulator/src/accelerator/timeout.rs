//! How long a kernel may run without ending or waiting: what the options and the environment say,
//! and noticing one that cannot be stopped.

use std::time::{Duration, Instant};

use super::error::OpenAcceleratorError;
use crate::kernels::{ExecutionError, Mark, Progress};

/// The variable that says how many seconds a kernel may run; `off` for ever.
pub const KERNEL_TIMEOUT_VARIABLE: &str = "TELLTALE_KERNEL_TIMEOUT";
/// If nothing is said.
const DEFAULT: Duration = Duration::from_secs(60);
/// Looks at a thread that is waited for, within the time that a kernel may run.
const LOOKS: u32 = 4;
/// Looks are no further apart than this: a thread that stays where it is cannot wake who waits.
const LONGEST_PERIOD: Duration = Duration::from_millis(250);

/// The time that a kernel may run; none for ever.
pub(super) fn kernel_timeout(
    explicit: Option<Duration>,
) -> Result<Option<Duration>, OpenAcceleratorError> {
    let variable = std::env::var_os(KERNEL_TIMEOUT_VARIABLE).unwrap_or_default();
    if explicit.is_some() { Ok(explicit) } else { parse(&variable.to_string_lossy()) }
}

/// What the variable's value means; an empty one is none.
fn parse(found: &str) -> Result<Option<Duration>, OpenAcceleratorError> {
    if found.is_empty() {
        return Ok(Some(DEFAULT));
    }
    if found == "off" {
        return Ok(None);
    }
    let seconds = found.parse().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || OpenAcceleratorError::KernelTimeout { found: found.to_owned() };
    timeout.map(Some).ok_or_else(wrong)
}

/// Notices a kernel that neither ends nor waits and cannot be stopped: it sleeps in a call of the
/// system, or loops in a library. What takes long because the machine is busy is neither.
pub(super) struct Watch<'a> {
    progress: &'a Progress,
    timeout: Option<Duration>,
    /// How long is waited between two looks.
    pub(super) period: Duration,
    seen: Option<Seen>,
}

/// A kernel at the first look.
struct Seen {
    mark: Mark,
    since: Instant,
    used: Duration,
    /// It has slept at every look since.
    sleeps: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(progress: &'a Progress, timeout: Option<Duration>) -> Self {
        let period = timeout.map_or(LONGEST_PERIOD, |timeout| timeout / LOOKS);
        let period = period.clamp(Duration::from_millis(1), LONGEST_PERIOD);
        Self { progress, timeout, period, seen: None }
    }

    pub(super) fn look(&mut self) -> Result<(), ExecutionError> {
        if let Some(damage) = self.progress.damage() {
            return Err(damage);
        }
        let Some(timeout) = self.timeout else { return Ok(()) };
        let Some((mark, activity)) = self.progress.look() else {
            self.seen = None;
            return Ok(());
        };
        let seen = self.seen.take().filter(|seen| seen.mark == mark);
        let mut seen = seen.unwrap_or_else(|| Seen {
            mark,
            since: Instant::now(),
            used: activity.used,
            sleeps: true,
        });
        seen.sleeps &= activity.sleeps;
        let elapsed = seen.since.elapsed();
        // Twice, for a kernel that uses the processor is stopped after once if it can be.
        let is_stuck = activity.used.saturating_sub(seen.used) >= 2 * timeout;
        if (is_stuck || (seen.sleeps && elapsed >= timeout))
            && let Some((kernel, x, y)) = self.progress.named(mark)
        {
            return Err(ExecutionError::Endless { kernel, x, y, seconds: elapsed.as_secs() });
        }
        self.seen = Some(seen);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse;

    #[test]
    fn a_timeout_is_a_number_of_seconds_or_off() {
        for (found, expected) in [
            ("", Some(Duration::from_secs(60))),
            ("0.25", Some(Duration::from_millis(250))),
            ("3600", Some(Duration::from_secs(3_600))),
            ("off", None),
        ] {
            assert_eq!(parse(found).ok(), Some(expected), "{found:?}");
        }
        for wrong in ["0", "-1", "NaN", "inf", "1e300", "soon", "60 s"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("TELLTALE_KERNEL_TIMEOUT is {wrong:?}")), "{error}");
        }
    }
}
