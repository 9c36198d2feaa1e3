//! How a caller that is about to end the process, or wants to be sure, has the writing thread write what
//! waits, and waits for it.
//!
//! Everything here that [`before_death`] calls may run in a signal handler: atomics, system calls,
//! no lock and no memory. Waiting is bounded: it ends when nothing was written for a while.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::thread::futex;

/// How long a dying process waits while no event gets written: file systems stall for seconds.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long it waits at most.
const MOST_TIMEOUT: Duration = Duration::from_secs(20);

/// The process that started the writing thread first; 0 before that.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The writing thread, as the kernel numbers it; 0 before it runs.
static THREAD: AtomicU32 = AtomicU32::new(0);
/// Whether the writing thread is there, or about to be.
static RUNS: AtomicBool = AtomicBool::new(false);
static WAKE_UP: OnceLock<Arc<OwnedFd>> = OnceLock::new();
/// The number of the last request; they wrap.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// The number of the last request that was met. Threads wait on it.
static MET: AtomicU32 = AtomicU32::new(0);
/// Events written; wraps.
static WRITTEN: AtomicU32 = AtomicU32::new(0);
/// Whether the thread is to end after the next request is met.
static ENDS: AtomicBool = AtomicBool::new(false);

// === What the writing thread tells ===

pub(super) fn begins() {
    OWNER.store(std::process::id(), Ordering::Relaxed);
    ENDS.store(false, Ordering::Relaxed);
    RUNS.store(true, Ordering::Relaxed);
}

pub(super) fn is_this_thread() {
    THREAD.store(this_thread(), Ordering::Relaxed);
}

/// It is no longer waited for.
pub(super) fn ended() {
    THREAD.store(0, Ordering::Relaxed);
    RUNS.store(false, Ordering::Release);
    met(ASKED.load(Ordering::Acquire));
}

/// The number of the last request.
pub(super) fn asked() -> u32 {
    // SYNC: request
    ASKED.load(Ordering::Acquire)
}

/// Tells that everything published before the request `number` is written.
pub(super) fn met(number: u32) {
    if MET.swap(number, Ordering::Release) != number {
        let _ = futex::wake(&MET, futex::Flags::PRIVATE, u32::MAX >> 1);
    }
}

/// The number of the last request that was met.
pub(super) fn last_met() -> u32 {
    MET.load(Ordering::Relaxed)
}

pub(super) fn wrote_one() {
    WRITTEN.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn is_to_end() -> bool {
    ENDS.load(Ordering::Acquire)
}

// === What others ask ===

/// Whether this process is a child of the one whose thread it is.
pub(super) fn is_foreign() -> bool {
    let owner = OWNER.load(Ordering::Relaxed);
    owner != 0 && owner != std::process::id()
}

pub(super) fn is_running() -> bool {
    RUNS.load(Ordering::Acquire)
}

pub(super) fn wake_up() -> Option<Arc<OwnedFd>> {
    WAKE_UP.get().map(Arc::clone)
}

pub(super) fn set_wake_up(wake_up: Arc<OwnedFd>) -> Arc<OwnedFd> {
    Arc::clone(WAKE_UP.get_or_init(|| wake_up))
}

/// Wakes the thread; whether that could be done.
pub(super) fn ring() -> bool {
    WAKE_UP.get().is_some_and(|wake_up| rustix::io::write(wake_up, &1_u64.to_ne_bytes()).is_ok())
}

/// Has everything that waits written; whether that came to pass in time. True without a writer.
pub(super) fn written_within(timeout: Duration) -> bool {
    if is_foreign() || !is_running() {
        return true;
    }
    let deadline = Instant::now().checked_add(timeout);
    wait_for(request(), || {
        deadline.map_or(TIMEOUT, |at| at.saturating_duration_since(Instant::now()).min(TIMEOUT))
    })
}

/// Has the thread write what waits and end. Waits as [`before_death`] does.
pub(super) fn stop() {
    if is_running() {
        ENDS.store(true, Ordering::Release);
        wait_while_it_writes();
    }
}

/// Has the thread write what waits, because the process is about to end. Returns at once in a
/// child of `fork`, on the writing thread, and where there is none.
pub(crate) fn before_death() {
    if OWNER.load(Ordering::Relaxed) == std::process::id()
        && is_running()
        && THREAD.load(Ordering::Relaxed) != this_thread()
    {
        wait_while_it_writes();
    }
}

fn wait_while_it_writes() {
    let start = Instant::now();
    let mut seen = (WRITTEN.load(Ordering::Relaxed), start);
    wait_for(request(), || {
        let (now, written) = (Instant::now(), WRITTEN.load(Ordering::Relaxed));
        if written != seen.0 {
            seen = (written, now);
        }
        let over = now.duration_since(start) >= MOST_TIMEOUT;
        if over { Duration::ZERO } else { TIMEOUT.saturating_sub(now.duration_since(seen.1)) }
    });
}

/// Asks for everything that was published before to be written.
fn request() -> u32 {
    // SYNC: request
    let number = ASKED.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    ring();
    number
}

/// Waits until the request is met or no time is left; whether it was met.
fn wait_for(number: u32, mut left: impl FnMut() -> Duration) -> bool {
    loop {
        let met = MET.load(Ordering::Acquire);
        // The numbers wrap: the difference tells which is the later one.
        if met.wrapping_sub(number) <= u32::MAX / 2 || !is_running() {
            return true;
        }
        let left = left();
        if left.is_zero() {
            return false;
        }
        let Ok(left) = left.try_into() else { return false };
        // Woken, out of time or interrupted: the check above reports.
        let _ = futex::wait(&MET, futex::Flags::PRIVATE, met, Some(&left));
    }
}

fn this_thread() -> u32 {
    u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(u32::MAX)
}
