//! LD_PRELOAD library that keeps a ledger of a program that knows nothing of it.
//!
//! `telltale run` starts programs with it; docs/run.md tells the user's side. Large allocations of
//! host memory are recorded, and all of CUDA's.
//!
//! The program must not notice: no thread, no descriptor, no handler of its own, no result that is
//! another one. Whatever goes wrong here costs records, which are counted, and never an allocation.
//! Without the variables of `telltale run` everything is only passed on.
//!
//! The path of a call: `hooks` → `next` (the real allocator) → `recording` → `session` (the ledger);
//! of the driver's: `cuda::dlsym` or `cuda::lookup` → `cuda::wrapped` → `cuda::memory` or `cuda::physical` → `session`.

mod cuda;
#[path = "../../recorder/src/early.rs"]
mod early;
mod exits;
mod filter;
mod hooks;
mod next;
mod own_memory;
mod recording;
mod session;
mod settings;
#[path = "../../recorder/src/table.rs"]
#[allow(dead_code, reason = "the recorder makes its table in a static")]
mod table;

/// Run by the loader before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Run when the program ends by itself, after its own destructors.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn start() {
    if let Some(settings) = settings::Settings::of_this_process() {
        recording::prepare(settings);
    }
}

extern "C" fn end() {
    recording::end();
}
