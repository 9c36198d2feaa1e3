//! Which process this is, for the price of a load: a number that changes in a child of `fork`.
//!
//! A child made by a bare `clone` system call is not noticed, because the C library is not notified.

use std::sync::Once;

use crate::sync::{AtomicU32, Ordering};

/// How many forks lie between the process that first asked and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_the_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The number of this process; has the C library count forks from the first call on.
pub(crate) fn generation_now() -> u32 {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler is a function of this library, which is not unloaded while threads
        // of the process can fork: its streams are in use. It only adds to an atomic, which is
        // allowed in a child of a process with threads. rustix has no call for this. A refusal
        // (memory) leaves forks unnoticed, as with a bare `clone`.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    });
    generation()
}

/// The number of this process, once [`generation_now`] has been called.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}
