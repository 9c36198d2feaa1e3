//! Where the inline part of `telltale_debug.h` looks, to know without a call that there is no reader.
//!
//! Nothing here decides anything: an entry is the address of the byte that the core's stream itself
//! keeps, and where there is none, the call is made and finds out.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use telltale_debug_stream::{Publisher, cores};

/// Entries that programs were compiled to check, `TELLTALE_DEBUG_GLANCE_CORES`: may never get less.
pub const GLANCE_CORES: usize = cores::MAX_CORES as usize;

static ENTRIES: [AtomicPtr<bool>; GLANCE_CORES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; GLANCE_CORES];
/// How many of them, from the first, may have an address.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The entries. A pointer and not the entries themselves, because a program may be linked with a copy
/// of what this names, made when it starts.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name in C")]
pub static telltale_debug_glance: &[AtomicPtr<bool>; GLANCE_CORES] = &ENTRIES;

/// Lets programs check whether a core has a reader, by a publisher that is never dropped.
pub(crate) fn allow(index: usize, publisher: &'static Publisher) {
    let Some(entry) = ENTRIES.get(index) else { return };
    // First, so that a child of `fork` never has an address beyond these.
    USED.fetch_max(index + 1, Ordering::SeqCst);
    // It is never written through: the header only loads.
    entry.store(publisher.connected_at().cast_mut(), Ordering::Release);
}

/// Has programs call from now on. In a child of `fork`, where no more than atomics are allowed.
pub(crate) fn end() {
    for entry in ENTRIES.iter().take(USED.load(Ordering::SeqCst)) {
        entry.store(ptr::null_mut(), Ordering::Relaxed);
    }
}
