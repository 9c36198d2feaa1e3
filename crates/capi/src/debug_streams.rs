//! The debug streams of libtelltale_nrt, where the process has that library too: this one's endpoint
//! is the process's, so it shows them.
//!
//! The library is searched for when a device is opened and never loaded. Each of the two has its own
//! copy of all code and state; the one function below is all they share.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use telltale_runtime::{Losses, StreamCounters, show_other_debug_streams};

/// Cores that are asked for: as many as libtelltale_nrt takes from the environment at most.
const MAX_CORES: usize = 4096;

/// `telltale_debug_core_s` of `telltale_debug.h`, with the counts in line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct CoreCounts {
    core: u32,
    connected: u32,
    produced: u64,
    delivered: u64,
    waiting: u64,
    unread: u64,
    dropped_events: u64,
    dropped_bytes: u64,
    dropped_memory: u64,
    filtered: u64,
    unsaved: u64,
    waiting_bytes: u64,
}

/// `telltale_debug_read_cores`.
type ReadCores = unsafe extern "C" fn(*mut CoreCounts, usize, usize, *mut usize) -> c_int;

static READ_CORES: OnceLock<ReadCores> = OnceLock::new();

/// Has the endpoint show the other library's streams from now on, if it is there.
pub(crate) fn look_for_library() {
    if READ_CORES.get().is_some() {
        return;
    }
    if let Some(found) = find()
        && READ_CORES.set(found).is_ok()
    {
        show_other_debug_streams(read);
    }
}

fn find() -> Option<ReadCores> {
    let name = c"libtelltale_nrt.so.0";
    // SAFETY: the name ends with a zero. With RTLD_NOLOAD nothing is loaded and no code of the
    // library runs; the library is never unloaded (its build.rs links with `nodelete`).
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the handle was just given, and the name ends with a zero.
    let symbol = unsafe { libc::dlsym(library, c"telltale_debug_read_cores".as_ptr()) };
    // SAFETY: the symbol of a library of this name and version is null or a function of this type.
    unsafe { std::mem::transmute::<*mut c_void, Option<ReadCores>>(symbol) }
}

fn read() -> Vec<(u32, StreamCounters)> {
    let Some(read_cores) = READ_CORES.get() else { return Vec::new() };
    let mut cores = vec![CoreCounts::default(); MAX_CORES];
    let mut count = 0;
    // SAFETY: there is room for so many structures of this size, which all numbers fit.
    let status = unsafe {
        read_cores(cores.as_mut_ptr(), size_of::<CoreCounts>(), cores.len(), &raw mut count)
    };
    cores.truncate(if status == 0 { count } else { 0 });
    cores.iter().map(|one| (one.core, counters(one))).collect()
}

fn counters(one: &CoreCounts) -> StreamCounters {
    StreamCounters {
        connected: one.connected != 0,
        produced: one.produced,
        delivered: one.delivered,
        unread: one.unread,
        waiting: one.waiting,
        waiting_bytes: one.waiting_bytes,
        // Not reported, and not shown.
        high_water: 0,
        lost: Losses {
            events: one.dropped_events,
            bytes: one.dropped_bytes,
            memory: one.dropped_memory,
        },
        filtered: one.filtered,
        unsaved: one.unsaved,
        idle_bytes: 0,
        descriptor_writes: 0,
    }
}
