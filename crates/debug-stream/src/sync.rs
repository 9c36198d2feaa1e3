//! The only place in this crate that names the atomics of the descriptor's protocol.
//!
//! `wake_up` uses nothing else, so that the package `telltale-debug-stream-models` can compile it
//! against loom's. Both ends of an ordering carry the same `SYNC:` label.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use std::time::Duration;

/// Checks a lock before the processor is given to other threads.
const SPINS_BEFORE_YIELD: u32 = 64;
/// Yields before the thread sleeps, in case the holder has a lower real-time priority.
const YIELDS_BEFORE_SLEEP: u32 = 64;
/// How long it then sleeps at a time.
const SLEEP: Duration = Duration::from_micros(50);

/// Stores, and lets nothing later in the program be seen before the store. SYNC: silence
///
/// An exchange, because a fence of its own costs four times as much on x86-64. Code that relies on
/// it loads with [`Ordering::SeqCst`] afterwards.
#[inline(always)]
pub(crate) fn store_and_fence(state: &AtomicU32, value: u32) {
    state.swap(value, Ordering::SeqCst);
}

/// Waits between two checks of what another thread holds for a moment; `attempts` starts at zero.
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
