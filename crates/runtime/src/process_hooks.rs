//! What must happen when the process forks or exits, and which signals our thread gets: none.
//! This module has the crate's only unsafe code: these calls have no safe form.
//!
//! State that changes seldom (sessions, registered metrics) lies behind one lock. A forking
//! thread takes that lock first, so the child finds the state whole, and both sides release it
//! afterwards. What belongs to the parent is recognised in the child by its epoch and left alone:
//! neither removed nor unmapped. Nothing here is called while a counter is updated.

mod fatal_signals;

pub(crate) use fatal_signals::{flush_before_death, let_faults_through};

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use crate::waiting;

/// Descriptors that a child closes at once: a listener it kept would hold its parent's endpoint
/// open after the parent's death.
pub(crate) const MAX_LISTENERS: usize = 8;
const NO_DESCRIPTOR: i32 = -1;
/// Attempts at the lock in a hook.
const MAX_ATTEMPTS: u32 = 1_000;

static EPOCH: AtomicU64 = AtomicU64::new(0);
/// The lock that forks hold, with whether the system took the hooks.
static INSTALLED: OnceLock<(&'static dyn HookedLock, bool)> = OnceLock::new();
static LISTENERS: [AtomicI32; MAX_LISTENERS] =
    [const { AtomicI32::new(NO_DESCRIPTOR) }; MAX_LISTENERS];

/// How many forks lie between the first process and this one.
#[inline]
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// State that a forking thread locks, so that parent and child both find it whole.
pub(crate) struct ForkLock<T> {
    state: SpinMutex<T>,
    in_child: fn(&mut T),
    at_exit: fn(&mut T),
}

/// What the hooks do with such a lock.
trait HookedLock: Sync {
    fn hold(&self);
    /// # Safety
    /// Only the thread that called [`HookedLock::hold`], or its copy in the child, may call it, once.
    unsafe fn release(&self);
    fn in_child(&self);
    fn at_exit(&self);
}

impl<T> ForkLock<T> {
    /// `in_child` is called in each forked child before its `fork` returns, and must not allocate: another
    /// thread may have been allocating at the fork. `at_exit` is called when the process ends by
    /// `exit`. Both only if the lock can be had soon.
    pub(crate) const fn new(state: T, in_child: fn(&mut T), at_exit: fn(&mut T)) -> Self {
        Self { state: SpinMutex::new(state), in_child, at_exit }
    }

    /// Takes the lock, however long that takes.
    pub(crate) fn lock(&self) -> SpinMutexGuard<'_, T> {
        waiting::lock(&self.state)
    }
}

impl<T: Send> HookedLock for ForkLock<T> {
    fn hold(&self) {
        SpinMutexGuard::leak(self.lock());
    }

    unsafe fn release(&self) {
        // SAFETY: the caller is on the thread that took the lock in `hold` and leaked the guard, of
        // which no reference is kept; no other thread can have released it.
        unsafe { self.state.force_unlock() };
    }

    fn in_child(&self) {
        // The child's only thread has just released it.
        if let Some(mut state) = waiting::lock_within(&self.state, MAX_ATTEMPTS) {
            (self.in_child)(&mut state);
        }
    }

    fn at_exit(&self) {
        // Another thread may hold the lock while it is stopped for ever by this very exit.
        if let Some(mut state) = waiting::lock_within(&self.state, MAX_ATTEMPTS) {
            (self.at_exit)(&mut state);
        }
    }
}

/// Registers the hooks, which hold `lock` across forks, once in the life of a process and its
/// children; there is one such lock.
///
/// Returns whether the system took them.
pub(crate) fn install<T: Send>(lock: &'static ForkLock<T>) -> bool {
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: the three handlers are `extern "C"` functions without arguments that live as
        // long as this library, and none of them unwinds: they do arithmetic, spin, and close.
        // `atexit` gets such a function too. Both calls only add to lists inside libc.
        let refused = unsafe {
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child))
                | libc::atexit(at_exit)
        };
        (lock, refused == 0)
    });
    installed.1
}

/// The lock that forks hold.
fn held() -> Option<&'static dyn HookedLock> {
    INSTALLED.get().map(|(lock, _)| *lock)
}

extern "C" fn before_fork() {
    // It is released by `in_parent` and `in_child`.
    if let Some(lock) = held() {
        lock.hold();
    }
}

extern "C" fn in_parent() {
    if let Some(lock) = held() {
        // SAFETY: this runs on the thread that ran `before_fork`, once after it.
        unsafe { lock.release() };
    }
}

extern "C" fn in_child() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    for listener in &LISTENERS {
        let descriptor = listener.swap(NO_DESCRIPTOR, Ordering::Relaxed);
        if descriptor != NO_DESCRIPTOR {
            // SAFETY: the descriptor was registered by its owner in the parent, which in this
            // process is part of the state that `Cold::leave_to_parent` never drops or uses, so
            // it is closed here once. `close` may be called between fork and exec.
            unsafe { libc::close(descriptor) };
        }
    }
    if let Some(lock) = held() {
        // SAFETY: as in `in_parent`; the child's only thread is the copy of the one that forked.
        unsafe { lock.release() };
        lock.in_child();
    }
}

extern "C" fn at_exit() {
    if let Some(lock) = held() {
        lock.at_exit();
    }
}

/// A listening descriptor that children close.
#[derive(Debug)]
pub(crate) struct ClosedInChild {
    descriptor: i32,
}

impl ClosedInChild {
    /// Registers `listener`. Beyond [`MAX_LISTENERS`] children keep theirs.
    pub(crate) fn register(listener: BorrowedFd<'_>) -> Self {
        let descriptor = listener.as_raw_fd();
        let free = |place: &&AtomicI32| {
            place
                .compare_exchange(NO_DESCRIPTOR, descriptor, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        let _ = LISTENERS.iter().find(free);
        Self { descriptor }
    }
}

impl Drop for ClosedInChild {
    fn drop(&mut self) {
        for place in &LISTENERS {
            let taken_out = place.compare_exchange(
                self.descriptor,
                NO_DESCRIPTOR,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if taken_out.is_ok() {
                return;
            }
        }
    }
}

/// Runs `start`, which starts a thread, so that the thread gets none of the process's signals:
/// their handlers expect the application's threads.
pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` initialises `all` and cannot fail for a valid pointer;
    // `pthread_sigmask` reads `all` and, when it succeeds, initialises `before`. It concerns
    // this thread alone.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let started = start();
    if blocked {
        // SAFETY: `before` was initialised by the call that succeeded above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    started
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use telltale_harness::Scratch;
    use telltale_schema::memory::MemoryKind;

    use crate::{Device, DeviceDescription, Options, Runtime};

    static DEVICE: OnceLock<Device> = OnceLock::new();
    static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

    /// An application's handler that uses the device's allocator.
    extern "C" fn allocate(_signal: libc::c_int) {
        if let Some(device) = DEVICE.get() {
            let number = INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
            // Both kinds are in one space, where the loop below has address 0.
            device.allocate(MemoryKind::Trace, (number + 1) << 8, 1);
        }
    }

    #[test]
    fn an_allocation_in_a_signal_handler_is_recorded_or_counted_as_unrecorded() {
        const TIMEOUT: Duration = Duration::from_secs(20);
        let scratch = Scratch::new();
        let mut options = Options::from_variables("test 1", |_| None);
        options.directory = Some(scratch.path().to_path_buf());
        let runtime = Runtime::start(options);
        let device = DEVICE.get_or_init(|| runtime.open_device(DeviceDescription::default()));
        let session = device.session().expect("the device is recorded");
        let handler: extern "C" fn(libc::c_int) = allocate;
        // SAFETY: `allocate` may interrupt the loop below: what it calls takes no lock that the
        // interrupted code can hold, which is what is tested, and this test's thread, the only one
        // that is sent the signal, runs the application's allocator nowhere but inside an event.
        unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
        // SAFETY: the call has no conditions.
        let recording = unsafe { libc::pthread_self() };
        let is_over = AtomicBool::new(false);
        let mut rounds = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // SAFETY: the thread waits for this one before it ends.
                    unsafe { libc::pthread_kill(recording, libc::SIGUSR1) };
                    std::thread::yield_now();
                }
            });
            let until = Instant::now() + TIMEOUT;
            while session.fault_counts().unrecorded_events == 0 && Instant::now() < until {
                for _ in 0..1_000 {
                    device.allocate(MemoryKind::Dram, 0, 3);
                    device.free(MemoryKind::Dram, 0);
                    rounds += 1;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let faults = session.fault_counts();
        let usage = session.usage().expect("there is a ledger").usage;
        let of = |wanted| {
            let found = usage.iter().find(|(_, kind, _)| *kind == wanted);
            found.map(|(_, _, usage)| *usage).unwrap_or_default()
        };
        assert_eq!(
            (of(MemoryKind::Dram).allocations, of(MemoryKind::Dram).live_bytes),
            (rounds, 0)
        );
        let handled = of(MemoryKind::Trace).allocations + faults.unrecorded_events;
        assert_eq!(handled, INTERRUPTIONS.load(Ordering::Relaxed));
        assert!(faults.unrecorded_events > 0, "no signal came inside an event");
        assert_eq!(faults.unknown_frees + faults.double_frees + faults.reused_live_addresses, 0);
    }
}
