//! Where the device's thread is, for those who wait for it: a kernel that cannot be stopped, or had to
//! be stopped for good, can be named.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::execution_error::ExecutionError;
use super::fault::KernelFault;
use super::plan::Plan;

/// Bits of the mark that count how often a kernel was switched to.
const COUNT_SHIFT: u32 = 32;
const KERNEL_SHIFT: u32 = 16;
const PLACE_MASK: u64 = 0xFFFF;
/// How often a handler tries to take a lock that others have for a moment.
const MAX_TRIES: u32 = 1_000;

/// Written by the device's thread, read by others.
#[derive(Debug, Default)]
pub(crate) struct DeviceProgress {
    /// Switches so far, the kernel's number, the core's place in the grid.
    mark: AtomicU64,
    /// How often a program began or ended: odd while one runs.
    programs: AtomicU64,
    running: Mutex<Option<RunningProgram>>,
    /// What the kernel did in which the thread stays for ever.
    damage: OnceLock<KernelFault>,
    /// The thread's number; 0 before it has started.
    thread: AtomicI32,
}

/// A program that runs.
#[derive(Debug)]
struct RunningProgram {
    plan: Arc<Plan>,
    /// What the operation is called that it belongs to.
    operation: Option<&'static str>,
}

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadActivity {
    /// The processor's time that it has used.
    pub(crate) used: Duration,
    /// It waits in a call of the system.
    pub(crate) sleeps: bool,
}

/// Where the thread was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// Which run of a program it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramRun(u64);

/// The thread at one moment at which a program ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadSample {
    pub(crate) run: ProgramRun,
    pub(crate) mark: Mark,
    pub(crate) activity: ThreadActivity,
}

impl DeviceProgress {
    /// Says that this is the device's thread.
    pub(super) fn is_of_this_thread(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_pid(), Ordering::Relaxed);
    }

    /// Says which program runs now, for an operation of this name.
    pub(crate) fn begins(&self, plan: Arc<Plan>, operation: Option<&'static str>) {
        self.set(Some(RunningProgram { plan, operation }));
    }

    /// Says that no program runs any more.
    pub(crate) fn ends(&self) {
        self.set(None);
    }

    fn set(&self, running: Option<RunningProgram>) {
        // Only this thread writes it.
        let programs = self.programs.load(Ordering::Relaxed).wrapping_add(1);
        let mut guarded = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.programs.store(programs, Ordering::Relaxed);
        *guarded = running;
    }

    /// Says that the thread stays where it is for ever. It is said once, by the device's thread, so
    /// nothing is waited for, and a handler of a signal can say it.
    pub(super) fn is_damaged(&self, fault: KernelFault) {
        let _ = self.damage.set(fault);
    }

    /// Why the thread stays where it is, if it does.
    pub(crate) fn damage(&self) -> Option<ExecutionError> {
        self.damage.get().and_then(|fault| self.damaged_by(*fault))
    }

    #[cold]
    fn damaged_by(&self, source: KernelFault) -> Option<ExecutionError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref()?.error(self.switch(), |kernel, x, y| ExecutionError::Damaged {
            kernel,
            x,
            y,
            source,
        })
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

    /// The run of a program that is going on, if one is. Takes no lock.
    pub(super) fn run(&self) -> Option<ProgramRun> {
        let programs = self.programs.load(Ordering::Relaxed);
        (programs % 2 == 1).then_some(ProgramRun(programs))
    }

    /// Where the thread is now, and what it does; none while no program runs.
    pub(crate) fn sample(&self) -> Option<ThreadSample> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (run, mark) = (self.run()?, self.switch());
        drop(running);
        Some(ThreadSample { run, mark, activity: self.activity() })
    }

    /// Of a thread that the system says nothing about it is thought that it sleeps: then elapsed
    /// time decides.
    fn activity(&self) -> ThreadActivity {
        let thread = self.thread.load(Ordering::Relaxed);
        let reported = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        reported
            .ok()
            .and_then(|line| ThreadActivity::of(&line))
            .unwrap_or(ThreadActivity { used: Duration::ZERO, sleeps: true })
    }

    /// What `error` makes of the kernel that is switched to and of its core's column and row, as an
    /// error of its operation. None if this run is over by now, or if another kernel than that of `mark`
    /// was switched to.
    pub(crate) fn error(
        &self,
        run: ProgramRun,
        mark: Option<Mark>,
        error: impl FnOnce(Arc<str>, u16, u16) -> ExecutionError,
    ) -> Option<ExecutionError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.switch();
        let is_there = self.run() == Some(run) && mark.is_none_or(|mark| mark == now);
        running.as_ref().filter(|_| is_there)?.error(now, error)
    }

    /// Tells where the thread is, if that can be said soon: a handler of a signal waits for no lock for
    /// ever.
    pub(super) fn report_soon(&self, tell: impl FnOnce(&str, u16, u16)) {
        let mut tries = (0..MAX_TRIES).inspect(|_| std::thread::yield_now());
        let Some(running) = tries.find_map(|_| self.running.try_lock().ok()) else { return };
        if let Some((kernel, x, y)) = running.as_ref().and_then(|it| it.named(self.switch())) {
            tell(kernel, x, y);
        }
    }
}

impl RunningProgram {
    fn error(
        &self,
        mark: Mark,
        error: impl FnOnce(Arc<str>, u16, u16) -> ExecutionError,
    ) -> Option<ExecutionError> {
        let (kernel, x, y) = self.named(mark)?;
        let error = error(Arc::clone(kernel), x, y);
        Some(match self.operation {
            Some(operation) => ExecutionError::Operation { operation, source: Arc::new(error) },
            None => error,
        })
    }

    fn named(&self, mark: Mark) -> Option<(&Arc<str>, u16, u16)> {
        let kernel = usize::try_from(mark.0 >> KERNEL_SHIFT & PLACE_MASK).ok()?;
        let place = usize::try_from(mark.0 & PLACE_MASK).ok()?;
        let core = self.plan.cores.iter().find(|core| core.place == place)?;
        Some((&self.plan.kernels.get(kernel)?.name, core.x, core.y))
    }
}

impl ThreadActivity {
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

    use super::{DeviceProgress, ThreadActivity};

    #[test]
    fn a_thread_that_runs_is_distinguished_from_one_that_sleeps() {
        let line = "7 (a) R b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        let a_second = rustix::param::clock_ticks_per_second();
        let used = Duration::from_millis(200_000 / a_second);
        assert_eq!(ThreadActivity::of(line), Some(ThreadActivity { used, sleeps: true }));
        assert_eq!(ThreadActivity::of("7 (a) R 1"), None);
        let progress = DeviceProgress::default();
        progress.is_of_this_thread();
        assert!(!progress.activity().sleeps, "it runs at this moment");
    }
}
