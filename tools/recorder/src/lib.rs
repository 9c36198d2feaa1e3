//! LD_PRELOAD library that records a process's large allocations.
//!
//! `TELLTALE_RECORD_FILE=FILE LD_PRELOAD=libtelltale_recorder.so PROGRAM` writes one raw record
//! for every allocation of at least `TELLTALE_RECORD_THRESHOLD` bytes and for its free;
//! `telltale-trace-convert` makes a trace of them. `docs/traces.md` tells the user's side.
//!
//! The program must not notice: whatever goes wrong here costs records, which are counted, and
//! never an allocation. Without the variable the hooks only forward.
//!
//! The path of a call: `hooks` → `next` (the real allocator) → `recording` → `table`.

mod early;
mod file;
mod hooks;
mod next;
mod raw;
mod recording;
mod table;

use std::ffi::{CStr, c_char, c_int};

/// Blocks smaller than this are not recorded unless the user says otherwise.
const DEFAULT_THRESHOLD_BYTES: usize = 4096;

/// Run by the loader before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

extern "C" fn start(_count: c_int, arguments: *const *const c_char, _: *const *const c_char) {
    let Some(path) = variable(c"TELLTALE_RECORD_FILE").filter(|path| !path.is_empty()) else {
        return;
    };
    let begun =
        number(c"TELLTALE_RECORD_THRESHOLD", DEFAULT_THRESHOLD_BYTES).and_then(|threshold_bytes| {
            let records = number(c"TELLTALE_RECORD_LIMIT", raw::MAX_RECORDS)?;
            // SAFETY: the loader passes the program's argument vector, which ends with a null.
            let arguments = unsafe { recording::until_null(arguments) };
            recording::begin(path, threshold_bytes, records.min(raw::MAX_RECORDS), arguments)
        });
    if let Err(reason) = begun {
        complain(reason);
    }
}

/// A variable of the environment, unless the program runs with rights that its user has not.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a C string. No other thread exists yet that could change the
    // environment; the value is only used before this library's constructor returns.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        let trusted = libc::getauxval(libc::AT_SECURE) == 0;
        (trusted && !value.is_null()).then(|| CStr::from_ptr(value))
    }
}

fn number(name: &CStr, default: usize) -> Result<usize, &'static CStr> {
    let Some(text) = variable(name) else { return Ok(default) };
    let number = text.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or(c"TELLTALE_RECORD_THRESHOLD and TELLTALE_RECORD_LIMIT take a whole number")
}

/// One line, because the user asked for a recording and gets none. The program goes on.
fn complain(reason: &CStr) {
    for text in [c"telltale-recorder: nothing is recorded: ", reason, c"\n"] {
        let bytes = text.to_bytes();
        // SAFETY: the bytes are readable. A closed standard error is no reason to do anything.
        let _ = unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
    }
}
