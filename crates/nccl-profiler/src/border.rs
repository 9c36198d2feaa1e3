//! Where NCCL comes in: the tables that it searches for, and the reading of what its pointers point at.
//!
//! Pointers are believed only for the length of the call. Every call gives success, whatever happens,
//! as NCCL asks of a profiler; no panic crosses the border.

mod description;
mod loaded;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use description::{EventArguments, EventDescription};
use loaded::Opening;

use crate::clock::now_ns;

/// NCCL's `ncclResult_t` of a call that went well.
const SUCCESS: c_int = 0;

/// NCCL's `ncclDebugLogger_t`: level, subsystems, file, line, format and what the format names.
pub(crate) type Logger = unsafe extern "C" fn(
    level: c_int,
    flags: std::ffi::c_ulong,
    file: *const c_char,
    line: c_int,
    format: *const c_char,
    ...
);

/// `ncclProfiler_v5_t` and `ncclProfiler_v6_t`, which differ in what an event's description can say.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)] // NCCL's header says what each is.
pub struct ProfilerTable {
    pub name: Name,
    pub init: unsafe extern "C" fn(
        context: *mut *mut c_void,
        communicator: u64,
        mask: *mut c_int,
        name: *const c_char,
        nodes: c_int,
        ranks: c_int,
        rank: c_int,
        logger: Option<Logger>,
    ) -> c_int,
    pub start_event: unsafe extern "C" fn(
        context: *mut c_void,
        handle: *mut *mut c_void,
        description: *const EventDescription,
    ) -> c_int,
    pub stop_event: unsafe extern "C" fn(handle: *mut c_void) -> c_int,
    pub record_event_state: unsafe extern "C" fn(
        handle: *mut c_void,
        state: c_int,
        arguments: *const EventArguments,
    ) -> c_int,
    pub finalize: unsafe extern "C" fn(context: *mut c_void) -> c_int,
}

/// A name that lives as long as the library.
#[derive(Debug)]
#[repr(transparent)]
pub struct Name(*const c_char);

// SAFETY: it points to a constant, which is never written.
unsafe impl Sync for Name {}

const TABLE: ProfilerTable = ProfilerTable {
    name: Name(c"Telltale".as_ptr()),
    init,
    start_event,
    stop_event,
    record_event_state,
    finalize,
};

/// The table that NCCL 2.28 and later search for.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // NCCL's name.
pub static ncclProfiler_v5: ProfilerTable = TABLE;

/// The table with copy-engine events, which NCCL 2.30 and later search for first.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // NCCL's name.
pub static ncclProfiler_v6: ProfilerTable = TABLE;

/// Runs `body`; a panic ends here.
fn guarded(body: impl FnOnce()) -> c_int {
    // Nothing is left half done that another call would trip over: values stand alone.
    let _ = catch_unwind(AssertUnwindSafe(body));
    SUCCESS
}

/// # Safety
/// As NCCL calls it: `context` and `mask` point to places for an answer or are null, `name` is null or
/// a C string, `logger` is NCCL's.
unsafe extern "C" fn init(
    context: *mut *mut c_void,
    communicator: u64,
    mask: *mut c_int,
    name: *const c_char,
    _nodes: c_int,
    ranks: c_int,
    rank: c_int,
    logger: Option<Logger>,
) -> c_int {
    guarded(|| {
        if context.is_null() || mask.is_null() {
            return;
        }
        // SAFETY: `name` is null or a C string; it is read within this call.
        let name = unsafe { description::text(name, crate::communicators::MAX_NAME_BYTES) };
        let opening = Opening { communicator, name, ranks, rank, logger };
        let (number, events) = loaded::open(&opening);
        // SAFETY: neither is null, and NCCL vouches for the rest.
        unsafe {
            context.write(pointer(number));
            mask.write(events);
        }
    })
}

/// # Safety
/// As NCCL calls it: `handle` points to a place for an answer or is null, `description` to a
/// description or is null, with C strings or null in its text fields.
unsafe extern "C" fn start_event(
    context: *mut c_void,
    handle: *mut *mut c_void,
    description: *const EventDescription,
) -> c_int {
    guarded(|| {
        if handle.is_null() {
            return;
        }
        let begin = || {
            // SAFETY: null or a description that NCCL keeps for this call.
            let begun = unsafe { description.as_ref()?.begun()? };
            loaded::profiler()?.begin(number(context), begun, now_ns())
        };
        let given = begin().map_or(0, |handle| handle.number());
        // SAFETY: not null, and NCCL vouches for the rest.
        unsafe { handle.write(pointer(given)) };
    })
}

/// # Safety
/// None is asked for: `handle` is a number to this library.
unsafe extern "C" fn stop_event(handle: *mut c_void) -> c_int {
    guarded(|| {
        if let Some(profiler) = loaded::profiler() {
            profiler.end(number(handle), now_ns());
        }
    })
}

/// # Safety
/// As NCCL calls it: `arguments` points to arguments or is null. `handle` is a number.
unsafe extern "C" fn record_event_state(
    handle: *mut c_void,
    state: c_int,
    arguments: *const EventArguments,
) -> c_int {
    guarded(|| {
        if let Some(profiler) = loaded::profiler() {
            // SAFETY: null or arguments that NCCL keeps for this call.
            let state_value = unsafe { arguments.as_ref() }.map_or(0, EventArguments::state_value);
            profiler.change(number(handle), state, state_value, now_ns());
        }
    })
}

/// # Safety
/// None is asked for: `context` is a number to this library.
unsafe extern "C" fn finalize(context: *mut c_void) -> c_int {
    guarded(|| loaded::close(number(context)))
}

/// What NCCL keeps in place of a pointer; it never checks what it points at.
fn pointer(number: u64) -> *mut c_void {
    let address = usize::try_from(number).expect("pointers have 64 bits where NCCL runs");
    std::ptr::without_provenance_mut(address)
}

fn number(pointer: *mut c_void) -> u64 {
    u64::try_from(pointer.addr()).expect("an address has at most 64 bits")
}
