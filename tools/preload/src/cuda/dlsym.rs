//! Where the program asks the loader for functions by name: `dlsym`. It is written for x86-64 alone.
//!
//! It must be passed on without a trace: for RTLD_NEXT the loader checks who called, and that must
//! not be this library. So it is a jump and no call.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::driver::find_next;
use super::lookup::replaced;
use super::wrapped::WRAPPED;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The versions of the symbol in the C libraries there are.
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];

/// The C library's function, or what finds it.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(find_and_jump as *const () as *mut c_void);

/// See `dlsym(3)`.
///
/// # Safety
/// As the C function.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "test rsi, rsi",
        "jz 2f",
        "cmp word ptr [rsi], 0x7563", // "cu"
        "jne 2f",
        "cmp rdi, -1", // RTLD_NEXT
        "jne {look_up}",
        "2:",
        "mov rax, qword ptr [rip + {real}]",
        "jmp rax",
        look_up = sym look_up,
        real = sym REAL,
    )
}

/// A name that begins with `cu`, asked of anything but the next object.
///
/// # Safety
/// As `dlsym(3)`.
unsafe extern "C" fn look_up(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise: the name is a C string.
    let asked = unsafe { CStr::from_ptr(name) };
    // SAFETY: the address is that of the C library's function, or of `find_and_jump`, which has
    // the same signature. Only RTLD_NEXT depends on who asks.
    let found =
        unsafe { transmute::<*mut c_void, Dlsym>(REAL.load(Ordering::Relaxed))(handle, name) };
    let Some(one) = WRAPPED.iter().find(|one| one.symbol == asked) else { return found };
    // The scope of the whole program begins with ours, whether it has a driver or not.
    let found = match found.cast_const() == one.ours.cast() {
        true => find_next(asked),
        false => found,
    };
    if found.is_null() { null_mut() } else { replaced(one, found) }
}

/// What stands in for the C library's function until it is found.
#[unsafe(naked)]
unsafe extern "C" fn find_and_jump(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        find = sym find,
    )
}

extern "C" fn find() -> *mut c_void {
    for version in VERSIONS {
        // SAFETY: both names are C strings.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            REAL.store(found, Ordering::Relaxed);
            return found;
        }
    }
    // A program that asks for symbols has a C library with one of these.
    // SAFETY: abort takes nothing and returns nothing.
    unsafe { libc::abort() }
}
