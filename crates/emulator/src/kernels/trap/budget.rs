//! How long a kernel, and all kernels of a program together, may run: a timer of the thread's
//! processor time, so that a machine under load or a stopped process takes nothing of it.
//!
//! It runs for as long as the thread does and costs nothing between its ticks, which look whether
//! another kernel was switched to, or another program began, since.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::handlers;
use crate::kernels::fault::KernelFault;
use crate::kernels::progress::{DeviceProgress, Mark, ProgramRun};
use crate::kernels::timeouts::Timeouts;

/// Ticks within the shortest time that is limited.
const TICKS: u32 = 8;
/// Ticks are no further apart than this, and no closer.
const LONGEST: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(1);

/// The timer, and what its ticks saw. Only the thread that it belongs to uses it.
pub(super) struct Budget {
    progress: Arc<DeviceProgress>,
    timer: libc::timer_t,
    timeouts: Timeouts,
    period: Duration,
    kernel: Since<Mark>,
    program: Since<ProgramRun>,
    /// Whose time was over at the last tick: the kernel must be met in its own code.
    spent: Cell<Option<KernelFault>>,
}

/// What ran at the last tick, and how much processor time the thread had used when a tick first
/// found it.
struct Since<T>(Cell<Option<(T, Duration)>>);

/// What the signals of these timers carry, and no other's.
pub(super) fn value() -> libc::sigval {
    static OURS: u8 = 0;
    libc::sigval { sival_ptr: (&raw const OURS).cast_mut().cast() }
}

impl Budget {
    /// Starts a timer of this thread.
    pub(super) fn start(
        progress: Arc<DeviceProgress>,
        timeouts: Timeouts,
        shortest: Duration,
    ) -> io::Result<Self> {
        // SAFETY: all zeros is a valid event; what matters is set.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = handlers::tick();
        event.sigev_value = value();
        // SAFETY: the call has no conditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = MaybeUninit::uninit();
        let clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: both pointers are valid, and the signal has a handler.
        if unsafe { libc::timer_create(clock, &raw mut event, timer.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it wrote it.
        let timer = unsafe { timer.assume_init() };
        let period = (shortest / TICKS).clamp(SHORTEST, LONGEST);
        let (kernel, program) = (Since(Cell::new(None)), Since(Cell::new(None)));
        let spent = Cell::new(None);
        let budget = Self { progress, timer, timeouts, period, kernel, program, spent };
        budget.set(period)?;
        Ok(budget)
    }

    /// What the kernel does wrong that runs at this tick, if its time or its program's is over. Then
    /// ticks follow each other closely until one meets it in its own code.
    pub(super) fn tick(&self) -> Option<KernelFault> {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        let now = Duration::try_from(now).unwrap_or_default();
        let run = self.progress.run();
        let mark = run.map(|_| self.progress.switch());
        let (kernel, program) = (self.kernel.used(mark, now), self.program.used(run, now));
        let is_over = |used, timeout: Option<Duration>| timeout.filter(|timeout| used >= *timeout);
        let kernel = is_over(kernel, self.timeouts.kernel)
            .map(|timeout| KernelFault::Endless { milliseconds: milliseconds(timeout) });
        let program = is_over(program, self.timeouts.program)
            .map(|timeout| KernelFault::ProgramEndless { milliseconds: milliseconds(timeout) });
        let spent = kernel.or(program);
        if self.spent.replace(spent).is_some() != spent.is_some() {
            // A timer that was made can be set; if not, the next tick is a period away.
            let _ = self.set(if spent.is_some() { SHORTEST } else { self.period });
        }
        spent
    }

    /// What the last tick found.
    pub(super) fn spent(&self) -> Option<KernelFault> {
        self.spent.get()
    }

    fn set(&self, period: Duration) -> io::Result<()> {
        let period = libc::timespec {
            tv_sec: libc::time_t::try_from(period.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(period.subsec_nanos().cast_signed()),
        };
        let setting = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer is this value's own; the setting is valid.
        match unsafe { libc::timer_settime(self.timer, 0, &raw const setting, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl<T: Copy + PartialEq> Since<T> {
    /// How much processor time was used since a tick first found this.
    fn used(&self, found: Option<T>, now: Duration) -> Duration {
        let before = self.0.get().filter(|(before, _)| found == Some(*before));
        let since = before.map_or(now, |(_, since)| since);
        self.0.set(found.map(|found| (found, since)));
        now.saturating_sub(since)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for Budget {
    fn drop(&mut self) {
        // SAFETY: the timer is this value's own and not used any more.
        unsafe { libc::timer_delete(self.timer) };
    }
}
