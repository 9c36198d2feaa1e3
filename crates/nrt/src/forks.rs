//! Whether this process is a child of one that used the library, for the price of a load.
//!
//! A child may find any lock held by a thread that it does not have, so it must be turned away
//! before it takes one. A child made by a bare `clone` system call is not noticed.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::glance;
use crate::status::Status;

/// Forks between the first use of the library and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_the_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    glance::end();
}

/// Refuses a child of the process that used the library first.
#[inline(always)]
pub(crate) fn refuse_child() -> Result<(), Status> {
    if FORKS.load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(Status::INVALID) }
}

/// Has the C library report forks from now on.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler stays loaded (build.rs links with `nodelete`) and only writes to
        // atomics, which is allowed in a child of a process with threads. A refusal, for want of
        // memory, leaves forks unnoticed, as with a bare `clone`.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    });
}
