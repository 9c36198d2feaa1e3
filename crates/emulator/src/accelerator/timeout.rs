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
/// How often somebody who waits looks where there is no limit.
const UNLIMITED_PERIOD: Duration = Duration::from_secs(60);

/// The time that a kernel may run; none for ever.
pub(super) fn kernel_timeout(
    explicit: Option<Duration>,
) -> Result<Option<Duration>, OpenAcceleratorError> {
    if explicit.is_some() {
        return Ok(explicit);
    }
    let variable = std::env::var_os(KERNEL_TIMEOUT_VARIABLE).filter(|value| !value.is_empty());
    let Some(found) = variable else { return Ok(Some(DEFAULT)) };
    let found = found.to_string_lossy().into_owned();
    if found == "off" {
        return Ok(None);
    }
    let seconds = found.parse().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.map(Some).ok_or(OpenAcceleratorError::KernelTimeout { found })
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
        let period = timeout.map_or(UNLIMITED_PERIOD, |timeout| timeout / LOOKS);
        Self { progress, timeout, period: period.max(Duration::from_millis(1)), seen: None }
    }

    pub(super) fn look(&mut self) -> Result<(), ExecutionError> {
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
