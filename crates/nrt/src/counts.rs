//! `telltale_debug.h`: what became of the events.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use telltale_debug_stream::StreamCounters;

use crate::abi::{CoreCounts, DebugCounts};
use crate::cores;
use crate::forks::refuse_child;
use crate::status::{Status, guarded};

/// Reports what became of a core's events.
///
/// # Safety
/// `counts` is null or points to memory for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_debug_counts(
    logical_nc_idx: c_int,
    counts: *mut DebugCounts,
) -> Status {
    if counts.is_null() {
        return Status::INVALID;
    }
    guarded(|| {
        refuse_child()?;
        let core = cores::one(logical_nc_idx)?;
        let unallocated = core.unallocated.load(Ordering::Relaxed);
        // SAFETY: not null, and the caller vouches for the rest.
        unsafe { counts.write(of(&core.stream.counters(), unallocated)) };
        Ok(())
    })
}

/// Reports what became of the events of all cores that were used, without beginning the use of the
/// library.
///
/// # Safety
/// `core_counts` is null or points to `room` structures of `struct_size` bytes; `count` is null or
/// points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_debug_read_cores(
    core_counts: *mut CoreCounts,
    struct_size: usize,
    room: usize,
    count: *mut usize,
) -> Status {
    guarded(|| {
        refuse_child()?;
        let fits = struct_size >= size_of::<CoreCounts>()
            && struct_size.is_multiple_of(align_of::<CoreCounts>());
        let (Some(count), true) = (NonNull::new(count), fits) else { return Err(Status::INVALID) };
        if room > 0 && (core_counts.is_null() || !core_counts.is_aligned()) {
            return Err(Status::INVALID);
        }
        let mut found = 0;
        for (core, counters, unallocated) in cores::used() {
            if found < room {
                let reported = CoreCounts {
                    logical_nc_idx: core,
                    connected: counters.connected.into(),
                    counts: of(&counters, unallocated),
                    filtered: counters.filtered,
                    unsaved: counters.unsaved,
                    waiting_bytes: counters.waiting_bytes,
                };
                // SAFETY: the place is one of the `room` structures that the caller vouches for,
                // which are no smaller than this one, and as aligned as the first of them.
                unsafe { core_counts.byte_add(found * struct_size).write(reported) };
            }
            found += 1;
        }
        // SAFETY: not null, and the caller vouches for the rest.
        unsafe { count.write(found) };
        Ok(())
    })
}

fn of(found: &StreamCounters, unallocated: u64) -> DebugCounts {
    DebugCounts {
        produced: found.produced,
        // A count that is a moment older may be smaller.
        delivered: found.delivered.saturating_sub(unallocated),
        waiting: found.waiting,
        unread: found.unread,
        dropped_events: found.lost.events,
        dropped_bytes: found.lost.bytes,
        dropped_memory: found.lost.memory + unallocated,
    }
}
