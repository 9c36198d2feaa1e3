//! The allocator behind this library: whatever would have been called without it.
//!
//! It is found with `dlsym`, which may itself allocate. Calls that arrive meanwhile, from this or
//! another thread, are served from the [`crate::early`] buffer; no thread waits for another.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The functions that are forwarded to.
pub(crate) struct Next {
    pub(crate) malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(crate) calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) memalign: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) aligned_alloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int,
}

/// Names in the order of the fields of [`Next`].
const NAMES: [&CStr; 7] =
    [c"malloc", c"calloc", c"realloc", c"free", c"memalign", c"aligned_alloc", c"posix_memalign"];

/// The found functions; all zero until [`FOUND`] is set.
static FUNCTIONS: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];
static FOUND: AtomicBool = AtomicBool::new(false);
static SEARCHING: AtomicBool = AtomicBool::new(false);

/// The allocator behind, or `None` while it is being searched for: use the early buffer then.
pub(crate) fn next() -> Option<Next> {
    // SYNC: functions found.
    if !FOUND.load(Ordering::Acquire) && !search() {
        return None;
    }
    let [malloc, calloc, realloc, free, memalign, aligned_alloc, posix_memalign] =
        FUNCTIONS.each_ref().map(|function| function.load(Ordering::Relaxed));
    // SAFETY: `search` stored the non-null addresses of the C functions of these names, in this
    // order, before it set FOUND; the signatures are those of the C library.
    unsafe {
        Some(Next {
            malloc: transmute::<usize, unsafe extern "C" fn(usize) -> *mut c_void>(malloc),
            calloc: transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut c_void>(calloc),
            realloc: transmute::<usize, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(
                realloc,
            ),
            free: transmute::<usize, unsafe extern "C" fn(*mut c_void)>(free),
            memalign: transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut c_void>(
                memalign,
            ),
            aligned_alloc: transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut c_void>(
                aligned_alloc,
            ),
            posix_memalign: transmute::<
                usize,
                unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int,
            >(posix_memalign),
        })
    }
}

/// Looks the functions up, once. False while someone, perhaps this very thread, is at it.
fn search() -> bool {
    if SEARCHING.swap(true, Ordering::Relaxed) {
        return false;
    }
    for (name, function) in NAMES.iter().zip(&FUNCTIONS) {
        // SAFETY: the name is a C string; RTLD_NEXT asks for the next object after this one.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        if address.is_null() {
            // A program without these functions has no C library; nothing could go on.
            // SAFETY: abort takes nothing and returns nothing.
            unsafe { libc::abort() };
        }
        function.store(address as usize, Ordering::Relaxed);
    }
    // SYNC: functions found.
    FOUND.store(true, Ordering::Release);
    true
}
