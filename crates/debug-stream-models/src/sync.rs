//! Loom's stand-ins for what the debug stream's own `sync` names.

use std::cell::Cell;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

thread_local! {
    /// Set by a model that is to show what the fences are for. Loom runs all threads of a model on
    /// one of the system's.
    pub(crate) static WITHOUT_FENCES: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn fence(ordering: Ordering) {
    if !WITHOUT_FENCES.get() {
        loom::sync::atomic::fence(ordering);
    }
}

/// Loom knows the strength of fences only, so it has one here.
pub(crate) fn store_and_fence(state: &AtomicU32, value: u32) {
    state.store(value, Ordering::Release);
    fence(Ordering::SeqCst);
}

/// Lets another thread go on: loom tries every order, not every duration.
pub(crate) fn wait_a_little(_attempts: &mut u32) {
    loom::thread::yield_now();
}
