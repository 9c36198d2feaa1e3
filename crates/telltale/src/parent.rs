//! A process that ends with the one that started it, even if that one is killed.

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Ties this process to its parent, which has the given pid; false when that one has ended already.
pub(crate) fn tie_to(parent: i32) -> bool {
    // Ignored where the kernel refuses: then only the tie to the parent is missing.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have ended before the tie was made.
    getppid().is_some_and(|now| now.as_raw_pid() == parent)
}
