//! How long a kernel may run without ending or waiting, and a program altogether: what the options
//! and the environment say, and noticing one that cannot be stopped.

use std::time::{Duration, Instant};

use super::AcceleratorOptions;
use super::error::OpenAcceleratorError;
use crate::interrupts;
use crate::kernels::{DeviceProgress, ExecutionError, Mark, ProgramRun, ThreadSample, Timeouts};

/// The variable that says how many seconds a kernel may run; `off` for ever.
pub const KERNEL_TIMEOUT_VARIABLE: &str = "TELLTALE_KERNEL_TIMEOUT";
/// The same for all kernels of a program together.
pub const PROGRAM_TIMEOUT_VARIABLE: &str = "TELLTALE_PROGRAM_TIMEOUT";
/// How long a kernel may run if nothing is said.
const DEFAULT: Duration = Duration::from_secs(60);
/// How many times as long as a kernel a program may run if nothing is said.
const KERNEL_TIMES: u32 = 10;
/// Checks a thread that is waited for, within the shortest time that is limited.
const CHECKS: u32 = 4;
/// Looks are no further apart than this: a thread that stays where it is cannot wake who waits.
const LONGEST_PERIOD: Duration = interrupts::PERIOD;

/// The times that kernels and programs may run.
pub(super) fn timeouts(options: &AcceleratorOptions) -> Result<Timeouts, OpenAcceleratorError> {
    let kernel = timeout(options.kernel_timeout, KERNEL_TIMEOUT_VARIABLE, Some(DEFAULT))?;
    let usual = kernel.map(|kernel| kernel.saturating_mul(KERNEL_TIMES));
    let program = timeout(options.program_timeout, PROGRAM_TIMEOUT_VARIABLE, usual)?;
    Ok(Timeouts { kernel, program })
}

fn timeout(
    explicit: Option<Duration>,
    variable: &'static str,
    usual: Option<Duration>,
) -> Result<Option<Duration>, OpenAcceleratorError> {
    let found = std::env::var_os(variable).unwrap_or_default();
    if explicit.is_some() { Ok(explicit) } else { parse(variable, &found.to_string_lossy(), usual) }
}

/// What the variable's value means; an empty one the usual.
fn parse(
    variable: &'static str,
    found: &str,
    usual: Option<Duration>,
) -> Result<Option<Duration>, OpenAcceleratorError> {
    if found.is_empty() {
        return Ok(usual);
    }
    if found == "off" {
        return Ok(None);
    }
    let seconds = found.parse().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || OpenAcceleratorError::Timeout { variable, found: found.to_owned() };
    timeout.map(Some).ok_or_else(wrong)
}

/// Notices a kernel that neither ends nor waits, and a program that does not end, where they cannot be
/// stopped: they sleep in calls of the system, or loop in a library. What takes long because the machine
/// is busy does neither.
///
/// A kernel or a program is named once it has slept for its time, or computed for twice its time: within
/// three times its time by the clock, if the machine is not busy.
pub(super) struct KernelWatch<'a> {
    progress: &'a DeviceProgress,
    timeouts: Timeouts,
    /// How long is waited between two checks.
    pub(super) period: Duration,
    last_check: Instant,
    kernel: Option<Since<Mark>>,
    program: Option<Since<ProgramRun>>,
}

/// What a check found first, and what the thread did from then on.
struct Since<T> {
    found: T,
    start: Instant,
    /// Processor time that the thread had used before.
    used: Duration,
    /// How long it slept. Each sample stands for the time before it.
    slept: Duration,
}

impl<'a> KernelWatch<'a> {
    pub(super) fn new(progress: &'a DeviceProgress, timeouts: Timeouts) -> Self {
        let period = timeouts.shortest().map_or(LONGEST_PERIOD, |timeout| timeout / CHECKS);
        let period = period.clamp(Duration::from_millis(1), LONGEST_PERIOD);
        let last_check = Instant::now();
        Self { progress, timeouts, period, last_check, kernel: None, program: None }
    }

    pub(super) fn check(&mut self) -> Result<(), ExecutionError> {
        if let Some(damage) = self.progress.damage() {
            return Err(damage);
        }
        if interrupts::are_pending() {
            return Err(ExecutionError::Interrupted);
        }
        if self.timeouts.shortest().is_none() {
            return Ok(());
        }
        let now = Instant::now();
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.last_check, now));
        // If it is longer, this process was stopped as well, and the thread may have been kept from running.
        let passed = passed.min(2 * self.period);
        let Some(sample) = self.progress.sample() else {
            (self.kernel, self.program) = (None, None);
            return Ok(());
        };
        let kernel = Since::follow(&mut self.kernel, sample.mark, &sample, passed);
        let kernel = kernel.is_over(&sample, self.timeouts.kernel);
        let program = Since::follow(&mut self.program, sample.run, &sample, passed);
        let program = program.is_over(&sample, self.timeouts.program);
        let error = if let Some(seconds) = kernel {
            let endless = |kernel, x, y| ExecutionError::Endless { kernel, x, y, seconds };
            self.progress.error(sample.run, Some(sample.mark), endless)
        } else if let Some(seconds) = program {
            let endless = |kernel, x, y| ExecutionError::EndlessProgram { kernel, x, y, seconds };
            self.progress.error(sample.run, None, endless)
        } else {
            None
        };
        error.map_or(Ok(()), Err)
    }
}

impl<T: PartialEq> Since<T> {
    /// Adds what a check found; begins again if it is something else than before.
    fn follow<'s>(
        seen: &'s mut Option<Self>,
        found: T,
        sample: &ThreadSample,
        passed: Duration,
    ) -> &'s Self {
        let before = seen.take().filter(|seen| seen.found == found).map(|mut seen| {
            seen.slept += if sample.activity.sleeps { passed } else { Duration::ZERO };
            seen
        });
        seen.insert(before.unwrap_or_else(|| Self {
            found,
            start: Instant::now(),
            used: sample.activity.used,
            slept: Duration::ZERO,
        }))
    }

    /// For how many seconds it has been there, if it has slept or computed for too long.
    fn is_over(&self, sample: &ThreadSample, timeout: Option<Duration>) -> Option<u64> {
        let timeout = timeout?;
        // Twice, for a kernel that uses the processor is stopped after once if it can be.
        let used = sample.activity.used.saturating_sub(self.used);
        let is_over = used >= timeout.saturating_mul(2) || self.slept >= timeout;
        is_over.then(|| self.start.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{KERNEL_TIMEOUT_VARIABLE, parse};

    #[test]
    fn a_timeout_is_a_number_of_seconds_or_off() {
        let parse = |found| parse(KERNEL_TIMEOUT_VARIABLE, found, Some(Duration::from_secs(7)));
        for (found, expected) in [
            ("", Some(Duration::from_secs(7))),
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
