//! The only place in this crate that names atomics, locks and barriers.
//!
//! The files that hold the algorithms (`bias`, `cell`, `claims`, `posting`) use nothing else, so that
//! the package `telltale-ledger-models` can compile them against loom's. Both ends of an ordering
//! carry the same `SYNC:` label.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering,
};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use std::time::Duration;

/// Checks a lock before the processor is given to other threads.
const SPINS_BEFORE_YIELD: u32 = 64;
/// Yields before the thread sleeps, in case the holder has a lower real-time priority.
const YIELDS_BEFORE_SLEEP: u32 = 64;
/// How long it then sleeps at a time.
const SLEEP: Duration = Duration::from_micros(50);

/// The cheap end of an asymmetric barrier: keeps the compiler from moving a load before an
/// earlier store. Costs no instruction. SYNC: asymmetric barrier
#[inline(always)]
pub(crate) fn light_barrier() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// The dear end: makes every running thread of this process pass a full barrier, so that its
/// stores before a [`light_barrier`] are visible or its loads after it see ours. Microseconds, one
/// system call, used once in a process's life. SYNC: asymmetric barrier
///
/// Returns whether the kernel did it; a sandbox may forbid the call.
pub(crate) fn heavy_barrier() -> bool {
    std::sync::atomic::fence(Ordering::SeqCst);
    rustix::thread::membarrier(rustix::thread::MembarrierCommand::PrivateExpedited).is_ok()
}

/// Must have been called once in this process before [`heavy_barrier`]. Cheap while the process
/// has one thread.
pub(crate) fn prepare_heavy_barrier() {
    // A refusal shows again, and is handled, in `heavy_barrier`.
    let _ = rustix::thread::membarrier(rustix::thread::MembarrierCommand::RegisterPrivateExpedited);
}

/// Waits between two checks of what another thread holds for a moment; `attempts` starts at zero.
/// The thread is never parked, so that no thread pays for waking it.
pub(crate) fn wait_a_little(attempts: &mut u32) {
    *attempts = attempts.saturating_add(1);
    if *attempts < SPINS_BEFORE_YIELD {
        std::hint::spin_loop();
    } else if *attempts < SPINS_BEFORE_YIELD + YIELDS_BEFORE_SLEEP {
        std::thread::yield_now();
    } else {
        std::thread::sleep(SLEEP);
    }
}
