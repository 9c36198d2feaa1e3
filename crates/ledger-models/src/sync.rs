//! Loom's stand-ins for what the ledger's own `sync` names.

pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};

/// A full fence: the asymmetric pair costs the light end nothing and gives no less.
pub(crate) fn light_barrier() {
    fence(Ordering::SeqCst);
}

/// See [`light_barrier`].
pub(crate) fn heavy_barrier() -> bool {
    fence(Ordering::SeqCst);
    true
}
