//! Loom's stand-ins for what the ledger's own `sync` names.

use std::cell::Cell;

pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};

thread_local! {
    /// Set by a model that is to show what the barriers are for. Loom runs all threads of a model
    /// on one of the system's.
    pub(crate) static WITHOUT_BARRIERS: Cell<bool> = const { Cell::new(false) };
}

/// A full fence: the asymmetric pair costs the light end nothing and gives no less.
pub(crate) fn light_barrier() {
    if !WITHOUT_BARRIERS.get() {
        fence(Ordering::SeqCst);
    }
}

/// See [`light_barrier`].
pub(crate) fn heavy_barrier() -> bool {
    light_barrier();
    true
}

/// Lets another thread go on: loom tries every order, not every duration.
pub(crate) fn wait_a_little(_attempts: &mut u32) {
    loom::thread::yield_now();
}
