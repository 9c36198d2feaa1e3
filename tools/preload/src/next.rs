//! The allocator behind this library: whatever would have been called without it.
//!
//! Each function is a pointer that leads to a stand-in at first. The stand-in looks all of them up
//! with `dlsym`, which may itself allocate; calls that arrive meanwhile, from this or another
//! thread, are served from the [`crate::early`] buffer. No thread waits for another, and a call costs one load.

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::mem::transmute_copy;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::early::{copy_early, early};
use crate::filter;

/// A function of the C library, of the signature `F`.
pub(crate) struct Function<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

/// `malloc`.
pub(crate) type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
/// `calloc`, and the others that take two sizes.
pub(crate) type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
/// `realloc`.
pub(crate) type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
/// `free`.
pub(crate) type Free = unsafe extern "C" fn(*mut c_void);
/// `posix_memalign`.
pub(crate) type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
/// `_exit`.
pub(crate) type Exit = unsafe extern "C" fn(c_int) -> !;

pub(crate) static MALLOC: Function<Malloc> = Function::new(c"malloc", first_malloc as *const ());
pub(crate) static CALLOC: Function<Calloc> = Function::new(c"calloc", first_calloc as *const ());
pub(crate) static REALLOC: Function<Realloc> =
    Function::new(c"realloc", first_realloc as *const ());
pub(crate) static FREE: Function<Free> = Function::new(c"free", first_free as *const ());
pub(crate) static MEMALIGN: Function<Calloc> =
    Function::new(c"memalign", first_memalign as *const ());
pub(crate) static ALIGNED_ALLOC: Function<Calloc> =
    Function::new(c"aligned_alloc", first_memalign as *const ());
pub(crate) static POSIX_MEMALIGN: Function<PosixMemalign> =
    Function::new(c"posix_memalign", first_posix_memalign as *const ());
pub(crate) static VALLOC: Function<Malloc> = Function::new(c"valloc", first_valloc as *const ());
pub(crate) static PVALLOC: Function<Malloc> = Function::new(c"pvalloc", first_valloc as *const ());
pub(crate) static EXIT: Function<Exit> = Function::new(c"_exit", first_exit as *const ());

static FOUND: AtomicBool = AtomicBool::new(false);
static SEARCHING: AtomicBool = AtomicBool::new(false);

impl<F: Copy> Function<F> {
    const fn new(name: &'static CStr, first: *const ()) -> Self {
        assert!(size_of::<F>() == size_of::<*mut c_void>());
        let address = AtomicPtr::new(first.cast_mut().cast());
        Self { name, address, signature: PhantomData }
    }

    /// The function, or what stands in for it.
    #[inline(always)]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: `F` is a function pointer of the same size, and the address is one of a function
        // of that signature: the stand-in that `new` was given, or the C library's of that name.
        unsafe { transmute_copy::<*mut c_void, F>(&address) }
    }

    /// Finds the function. Gives whether there is one.
    fn find(&self) -> bool {
        // SAFETY: the name is a C string; RTLD_NEXT asks for the next object after this one.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if !address.is_null() {
            self.address.store(address, Ordering::Relaxed);
        }
        !address.is_null()
    }
}

/// Looks the functions up, once. False while someone, perhaps this very thread, is at it.
fn search() -> bool {
    if SEARCHING.swap(true, Ordering::Relaxed) {
        // SYNC: functions found
        return FOUND.load(Ordering::Acquire);
    }
    // The others first: a caller that finds the new `malloc` may free its blocks by the new `free`.
    let needed = FREE.find() & REALLOC.find() & CALLOC.find() & POSIX_MEMALIGN.find();
    // A C library without these is never asked for them.
    let _ = MEMALIGN.find() | ALIGNED_ALLOC.find();
    let _ = VALLOC.find() | PVALLOC.find() | EXIT.find();
    if !(needed & MALLOC.find()) {
        // A program without these functions has no C library; nothing could go on.
        // SAFETY: abort takes nothing and returns nothing.
        unsafe { libc::abort() };
    }
    // SYNC: functions found
    FOUND.store(true, Ordering::Release);
    true
}

/// An early block, whose free the hooks will notice.
fn early_block(alignment: usize, size: usize) -> *mut c_void {
    let block = early(alignment, size);
    filter::mark_for_ever(block as usize);
    block
}

unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    if search() {
        // SAFETY: forwarded unchanged; the pointer leads to the C library now.
        return unsafe { MALLOC.get()(size) };
    }
    early_block(1, size)
}

unsafe extern "C" fn first_calloc(count: usize, size: usize) -> *mut c_void {
    if search() {
        // SAFETY: forwarded unchanged.
        return unsafe { CALLOC.get()(count, size) };
    }
    count.checked_mul(size).map_or(null_mut(), |bytes| early_block(1, bytes))
}

unsafe extern "C" fn first_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if search() {
        // SAFETY: forwarded unchanged; the hooks keep early blocks away.
        return unsafe { REALLOC.get()(block, size) };
    }
    let moved = early_block(1, size);
    if !block.is_null() && !moved.is_null() {
        // SAFETY: `moved` has `size` bytes; before the allocator is known, every block is an early
        // one.
        unsafe { copy_early(block, moved, size) };
    }
    moved
}

unsafe extern "C" fn first_free(block: *mut c_void) {
    if search() {
        // SAFETY: forwarded unchanged; the hooks keep early blocks away.
        unsafe { FREE.get()(block) };
    }
}

/// Of `aligned_alloc` too.
unsafe extern "C" fn first_memalign(alignment: usize, size: usize) -> *mut c_void {
    if search() {
        // SAFETY: forwarded unchanged.
        return unsafe { MEMALIGN.get()(alignment, size) };
    }
    early_block(alignment, size)
}

unsafe extern "C" fn first_posix_memalign(
    target: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if search() {
        // SAFETY: forwarded unchanged.
        return unsafe { POSIX_MEMALIGN.get()(target, alignment, size) };
    }
    let block = early_block(alignment, size);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise: the target is writable.
    unsafe { *target = block };
    0
}

/// Of `pvalloc` too: no code asks for whole pages before the program has begun.
unsafe extern "C" fn first_valloc(size: usize) -> *mut c_void {
    if search() {
        // SAFETY: forwarded unchanged.
        return unsafe { VALLOC.get()(size) };
    }
    early_block(4096, size)
}

unsafe extern "C" fn first_exit(status: c_int) -> ! {
    // SAFETY: the system call takes a number and does not return.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    // SAFETY: abort takes nothing and returns nothing.
    unsafe { libc::abort() }
}
