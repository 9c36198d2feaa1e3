//! Where the device's thread is, for whoever waits for it: a kernel that cannot be stopped can be
//! named.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::plan::Plan;

/// Bits of the mark that count how often a kernel was switched to.
const COUNT_SHIFT: u32 = 32;
const KERNEL_SHIFT: u32 = 16;
const PLACE_MASK: u64 = 0xFFFF;

/// Written by the device's thread, read by others.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Switches so far, the kernel's number, the core's place in the grid.
    mark: AtomicU64,
    plan: Mutex<Option<Arc<Plan>>>,
    /// The thread's number; 0 before it has started.
    thread: AtomicI32,
}

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Activity {
    /// The processor's time that it has used.
    pub(crate) used: Duration,
    /// It waits in a call of the system.
    pub(crate) sleeps: bool,
}

/// Where the thread was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Progress {
    /// Says that this is the device's thread.
    pub(super) fn is_of_this_thread(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_pid(), Ordering::Relaxed);
    }

    /// Says which program runs now, if any.
    pub(crate) fn runs(&self, plan: Option<Arc<Plan>>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Says which kernel is switched to. Only the device's thread calls this.
    pub(super) fn at(&self, kernel: usize, place: usize) {
        let count = (self.mark.load(Ordering::Relaxed) >> COUNT_SHIFT).wrapping_add(1);
        let kernel = (kernel as u64 & PLACE_MASK) << KERNEL_SHIFT;
        let mark = count << COUNT_SHIFT | kernel | (place as u64 & PLACE_MASK);
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// Where the thread was last switched to. Takes no lock.
    pub(super) fn switch(&self) -> Mark {
        Mark(self.mark.load(Ordering::Relaxed))
    }

    /// Where the thread is now, and what it does; none while no program runs.
    pub(crate) fn look(&self) -> Option<(Mark, Activity)> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.as_ref()?;
        let mark = self.switch();
        drop(plan);
        Some((mark, self.activity()))
    }

    /// Of a thread that the system says nothing about it is thought that it sleeps: then elapsed
    /// time decides.
    fn activity(&self) -> Activity {
        let thread = self.thread.load(Ordering::Relaxed);
        let told = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        told.ok()
            .and_then(|line| Activity::of(&line))
            .unwrap_or(Activity { used: Duration::ZERO, sleeps: true })
    }

    /// The kernel and the core's column and row that a mark stands for, if its program still runs.
    pub(crate) fn named(&self, mark: Mark) -> Option<(Arc<str>, u16, u16)> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plan.as_ref()?;
        let kernel = usize::try_from(mark.0 >> KERNEL_SHIFT & PLACE_MASK).ok()?;
        let place = usize::try_from(mark.0 & PLACE_MASK).ok()?;
        let core = plan.cores.iter().find(|core| core.place == place)?;
        Some((Arc::clone(&plan.kernels.get(kernel)?.name), core.x, core.y))
    }
}

impl Activity {
    /// From the line of `/proc/…/stat`: behind the name in parentheses, the state is field 3, the
    /// times in user code and in the kernel are fields 14 and 15.
    fn of(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let sleeps = matches!(fields.next()?, "S" | "D");
        let mut times = fields.skip(10).map(str::parse::<u64>);
        let ticks = times.next()?.ok()?.saturating_add(times.next()?.ok()?);
        let a_second = rustix::param::clock_ticks_per_second().max(1);
        let used = Duration::from_millis(ticks.saturating_mul(1_000) / a_second);
        Some(Self { used, sleeps })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Activity, Progress};

    #[test]
    fn a_thread_that_runs_is_told_from_one_that_sleeps() {
        let line = "7 (a) R b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        let a_second = rustix::param::clock_ticks_per_second();
        let used = Duration::from_millis(200_000 / a_second);
        assert_eq!(Activity::of(line), Some(Activity { used, sleeps: true }));
        assert_eq!(Activity::of("7 (a) R 1"), None);
        let progress = Progress::default();
        progress.is_of_this_thread();
        assert!(!progress.activity().sleeps, "it runs at this moment");
    }
}
