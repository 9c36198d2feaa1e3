//! The real functions of the driver: found when they are first needed, and never loaded here.

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::mem::transmute_copy;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `CUresult`.
pub(crate) type Status = c_int;
/// `CUdeviceptr`.
pub(crate) type Pointer = u64;
/// `CUmemGenericAllocationHandle`.
pub(crate) type Handle = u64;
/// A pointer to what the driver alone knows: a context, a stream, a pool.
pub(crate) type Opaque = *mut c_void;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`.
pub(crate) const SYMBOL_NOT_FOUND: Status = 302;

/// The name by which every program loads the driver.
const LIBRARY: &CStr = c"libcuda.so.1";

/// The driver's handle, once one of its functions is known. The library then stays for good, or
/// what is known of it would lead nowhere.
static DRIVER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A function of the driver, of the signature `F`.
pub(crate) struct Function<F> {
    pub(crate) symbol: &'static CStr,
    pub(crate) address: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

impl<F: Copy> Function<F> {
    pub(crate) const fn new(symbol: &'static CStr) -> Self {
        assert!(size_of::<F>() == size_of::<*mut c_void>());
        Self { symbol, address: AtomicPtr::new(null_mut()), signature: PhantomData }
    }

    /// The function, unless the process has no driver with it.
    pub(crate) fn get(&self) -> Option<F> {
        let known = self.address.load(Ordering::Acquire);
        let address = if known.is_null() { self.find() } else { known };
        // SAFETY: `F` is a function pointer of the same size, and the address is that of the
        // driver's function of this name, whose signature is published.
        (!address.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&address) })
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // A program that is linked with the driver has it behind us.
        let mut address = find_next(self.symbol);
        if address.is_null() {
            let driver = driver();
            if !driver.is_null() {
                // SAFETY: the handle was given by the loader and the name is a C string.
                address = unsafe { libc::dlsym(driver, self.symbol.as_ptr()) };
            }
        }
        // Where the driver was found by the way of `dlsym`, that gave one of our own.
        let address = super::lookup::real_of(address);
        if !address.is_null() {
            adopt(&self.address, address);
        }
        address
    }
}

/// The next definition behind this library.
pub(crate) fn find_next(symbol: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; RTLD_NEXT asks for the next object after this one.
    unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) }
}

/// The driver that the process has; null without one.
fn driver() -> *mut c_void {
    let known = DRIVER.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    keep(LIBRARY.as_ptr())
}

/// Keeps a library that is loaded already for good.
fn keep(name: *const libc::c_char) -> *mut c_void {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name is a C string; nothing is loaded and no code of the library runs.
    let found = unsafe { libc::dlopen(name, flags) };
    if !found.is_null() {
        DRIVER.store(found, Ordering::Release);
    }
    found
}

/// Notes the driver's function in its place. Gives whether that is the one which is known: a
/// process may load a second driver, whose functions are left alone.
pub(crate) fn adopt(place: &AtomicPtr<c_void>, address: *mut c_void) -> bool {
    let known = place.compare_exchange(null_mut(), address, Ordering::AcqRel, Ordering::Acquire);
    if known.is_ok() && DRIVER.load(Ordering::Acquire).is_null() {
        let mut found = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: null_mut(),
        };
        // SAFETY: `found` is writable; any address may be asked about.
        if unsafe { libc::dladdr(address, &raw mut found) } != 0 && !found.dli_fname.is_null() {
            keep(found.dli_fname);
        }
    }
    known.map_or_else(|known| known == address, |_| true)
}
