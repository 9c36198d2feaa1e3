//! How long a kernel may run: a timer of the thread's processor time, so that a machine under load
//! or a stopped process takes nothing of it.
//!
//! It runs for as long as the thread does and costs nothing between its ticks, which look whether
//! another kernel was switched to since.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::handlers;
use crate::kernels::progress::{Mark, Progress};

/// Ticks within the time that a kernel may run.
const TICKS: u32 = 8;
/// Ticks are no further apart than this, and no closer.
const LONGEST: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(1);

/// The timer, and what its ticks saw. Only the thread that it belongs to uses it.
pub(super) struct Budget {
    progress: Arc<Progress>,
    timer: libc::timer_t,
    timeout: Duration,
    period: Duration,
    /// The kernel that ran at the last tick, and for how many ticks it has.
    seen: Cell<(Option<Mark>, u32)>,
    /// The kernel's time is over, and it is to be met in its own code.
    is_urgent: Cell<bool>,
}

/// What the signals of these timers carry, and nobody else's.
pub(super) fn value() -> libc::sigval {
    static OURS: u8 = 0;
    libc::sigval { sival_ptr: (&raw const OURS).cast_mut().cast() }
}

impl Budget {
    /// Starts a timer of this thread.
    pub(super) fn start(progress: Arc<Progress>, timeout: Duration) -> io::Result<Self> {
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
        let period = (timeout / TICKS).clamp(SHORTEST, LONGEST);
        let seen = Cell::new((None, 0));
        let budget = Self { progress, timer, timeout, period, seen, is_urgent: Cell::new(false) };
        budget.set(period)?;
        Ok(budget)
    }

    /// Whether the kernel that runs at this tick has run for its whole time. If so, ticks follow
    /// each other closely until it is stopped.
    pub(super) fn is_spent(&self) -> bool {
        let mark = self.progress.switch();
        let (before, ticks) = self.seen.get();
        let ticks = if before == Some(mark) { ticks.saturating_add(1) } else { 0 };
        self.seen.set((Some(mark), ticks));
        let is_spent = ticks > 0 && (self.is_urgent.get() || self.period * ticks >= self.timeout);
        if self.is_urgent.replace(is_spent) != is_spent {
            // A timer that was made can be set; if not, the next tick is a period away.
            let _ = self.set(if is_spent { SHORTEST } else { self.period });
        }
        is_spent
    }

    /// How long a kernel may run.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
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

impl Drop for Budget {
    fn drop(&mut self) {
        // SAFETY: the timer is this value's own and not used any more.
        unsafe { libc::timer_delete(self.timer) };
    }
}
