//! Each function of the driver that stands behind one of ours, with the names it is asked for by.
//!
//! `cuGetProcAddress` is asked for a name without a suffix and a version of CUDA, and for streams by a
//! flag; `dlsym` for the symbol.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::Range;
use std::sync::atomic::AtomicPtr;

use super::driver::{Function, Handle, Opaque, Pointer, SYMBOL_NOT_FOUND, Status};
use super::extent::{Plane, Volume};
use super::memory::Place;
use super::{arrays, contexts, lookup, memory, physical};

/// One of them.
pub(crate) struct Wrapped {
    /// The symbol in the driver's library, by which `dlsym` is asked.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "`dlsym` is not ours there")
    )]
    pub(crate) symbol: &'static CStr,
    /// The name that `cuGetProcAddress` is asked for.
    pub(crate) asked: &'static CStr,
    /// The versions of CUDA for which that is this function.
    pub(crate) versions: Range<c_int>,
    /// Whether it is that with or without a default stream for each thread; none where it is both.
    pub(crate) per_thread: Option<bool>,
    /// Our function.
    pub(crate) ours: *const (),
    /// Where the driver's is noted.
    pub(crate) real: &'static AtomicPtr<c_void>,
}

// SAFETY: the pointer is that of a function.
unsafe impl Sync for Wrapped {}

/// Every version that may come.
const ANY: c_int = c_int::MAX;

/// Defines our function, the place of the driver's, and their row in the table.
macro_rules! wrapped {
    ($($symbol:ident, $asked:literal, $versions:expr, $per_thread:expr,
        ($($name:ident: $type:ty),*), |$real:ident| $call:expr;)*) => {
        /// All of them.
        pub(crate) static WRAPPED: [Wrapped; [$(stringify!($symbol)),*].len()] = [$(Wrapped {
            symbol: real::$symbol.symbol,
            asked: $asked,
            versions: $versions,
            per_thread: $per_thread,
            ours: $symbol as *const (),
            real: &real::$symbol.address,
        }),*];

        /// The driver's functions.
        #[allow(non_upper_case_globals, reason = "the driver's names")]
        mod real {
            use super::{
                Function, Handle, Opaque, Plane, Pointer, Status, Volume, c_char, c_int, c_uint,
                c_void,
            };
            $(pub(super) static $symbol: Function<unsafe extern "C" fn($($type),*) -> Status> =
                Function::new(
                    match std::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($symbol), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("a name has no zero inside"),
                    },
                );)*
        }

        $(/// See the driver's function of this name.
        ///
        /// # Safety
        /// As the driver's function.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the driver's name")]
        unsafe extern "C" fn $symbol($($name: $type),*) -> Status {
            let Some($real) = real::$symbol.get() else { return SYMBOL_NOT_FOUND };
            // SAFETY: forwarded unchanged, once; the caller's promises are the driver's.
            unsafe { $call }
        })*
    };
}

wrapped! {
    cuGetProcAddress, c"cuGetProcAddress", 0..12_000, None,
        (name: *const c_char, target: *mut *mut c_void, version: c_int, flags: u64),
        |real| lookup::answer((name, target, version, flags), real(name, target, version, flags));
    cuGetProcAddress_v2, c"cuGetProcAddress", 12_000..ANY, None,
        (name: *const c_char, target: *mut *mut c_void, version: c_int, flags: u64,
            found: *mut c_int),
        |real| lookup::answer(
            (name, target, version, flags), real(name, target, version, flags, found));

    cuMemAlloc_v2, c"cuMemAlloc", 3_020..ANY, None, (target: *mut Pointer, bytes: usize),
        |real| memory::allocate(Place::Device, target, bytes, || real(target, bytes));
    cuMemAllocPitch_v2, c"cuMemAllocPitch", 3_020..ANY, None,
        (target: *mut Pointer, pitch: *mut usize, width: usize, height: usize, element: c_uint),
        |real| memory::allocate_pitch(
            (target, pitch, height), || real(target, pitch, width, height, element));
    cuMemAllocManaged, c"cuMemAllocManaged", 6_000..ANY, None,
        (target: *mut Pointer, bytes: usize, flags: c_uint),
        |real| memory::allocate(Place::Device, target, bytes, || real(target, bytes, flags));
    cuMemFree_v2, c"cuMemFree", 3_020..ANY, None, (block: Pointer),
        |real| memory::free(block, || real(block));

    cuMemAllocAsync, c"cuMemAllocAsync", 11_020..ANY, Some(false),
        (target: *mut Pointer, bytes: usize, stream: Opaque),
        |real| memory::allocate(Place::Device, target, bytes, || real(target, bytes, stream));
    cuMemAllocAsync_ptsz, c"cuMemAllocAsync", 11_020..ANY, Some(true),
        (target: *mut Pointer, bytes: usize, stream: Opaque),
        |real| memory::allocate(Place::Device, target, bytes, || real(target, bytes, stream));
    cuMemAllocFromPoolAsync, c"cuMemAllocFromPoolAsync", 11_020..ANY, Some(false),
        (target: *mut Pointer, bytes: usize, pool: Opaque, stream: Opaque),
        |real| memory::allocate(Place::Device, target, bytes, || real(target, bytes, pool, stream));
    cuMemAllocFromPoolAsync_ptsz, c"cuMemAllocFromPoolAsync", 11_020..ANY, Some(true),
        (target: *mut Pointer, bytes: usize, pool: Opaque, stream: Opaque),
        |real| memory::allocate(Place::Device, target, bytes, || real(target, bytes, pool, stream));
    cuMemFreeAsync, c"cuMemFreeAsync", 11_020..ANY, Some(false), (block: Pointer, stream: Opaque),
        |real| memory::free(block, || real(block, stream));
    cuMemFreeAsync_ptsz, c"cuMemFreeAsync", 11_020..ANY, Some(true),
        (block: Pointer, stream: Opaque),
        |real| memory::free(block, || real(block, stream));

    cuMemAllocHost_v2, c"cuMemAllocHost", 3_020..ANY, None,
        (target: *mut *mut c_void, bytes: usize),
        |real| memory::allocate(Place::Host, target.cast(), bytes, || real(target, bytes));
    cuMemHostAlloc, c"cuMemHostAlloc", 2_020..ANY, None,
        (target: *mut *mut c_void, bytes: usize, flags: c_uint),
        |real| memory::allocate(Place::Host, target.cast(), bytes, || real(target, bytes, flags));
    cuMemFreeHost, c"cuMemFreeHost", 2_000..ANY, None, (block: *mut c_void),
        |real| memory::free(block as Pointer, || real(block));

    cuArrayCreate_v2, c"cuArrayCreate", 3_020..ANY, None,
        (target: *mut Opaque, plane: *const Plane),
        |real| arrays::create_plane((target, plane), || real(target, plane));
    cuArray3DCreate_v2, c"cuArray3DCreate", 3_020..ANY, None,
        (target: *mut Opaque, volume: *const Volume),
        |real| arrays::create_volume((target, volume, 1), || real(target, volume));
    cuArrayDestroy, c"cuArrayDestroy", 2_000..ANY, None, (array: Opaque),
        |real| memory::free(array as Pointer, || real(array));
    cuMipmappedArrayCreate, c"cuMipmappedArrayCreate", 5_000..ANY, None,
        (target: *mut Opaque, volume: *const Volume, levels: c_uint),
        |real| arrays::create_volume((target, volume, levels), || real(target, volume, levels));
    cuMipmappedArrayDestroy, c"cuMipmappedArrayDestroy", 5_000..ANY, None, (array: Opaque),
        |real| memory::free(array as Pointer, || real(array));

    cuMemCreate, c"cuMemCreate", 10_020..ANY, None,
        (target: *mut Handle, bytes: usize, properties: *const c_int, flags: u64),
        |real| physical::create(
            (target, bytes, properties), || real(target, bytes, properties, flags));
    cuMemRelease, c"cuMemRelease", 10_020..ANY, None, (handle: Handle),
        |real| physical::release(handle, || real(handle));
    cuMemRetainAllocationHandle, c"cuMemRetainAllocationHandle", 11_000..ANY, None,
        (target: *mut Handle, address: *mut c_void),
        |real| physical::retain(target, || real(target, address));
    cuMemMap, c"cuMemMap", 10_020..ANY, None,
        (address: Pointer, bytes: usize, offset: usize, handle: Handle, flags: u64),
        |real| physical::map(
            (address, bytes, handle), || real(address, bytes, offset, handle, flags));
    cuMemUnmap, c"cuMemUnmap", 10_020..ANY, None, (address: Pointer, bytes: usize),
        |real| physical::unmap(address, bytes, || real(address, bytes));

    cuCtxDestroy_v2, c"cuCtxDestroy", 4_000..ANY, None, (context: Opaque),
        |real| contexts::destroy(context, || real(context));
    // CUDA's runtime still asks for the first ones, whatever its own version.
    cuDevicePrimaryCtxReset, c"cuDevicePrimaryCtxReset", 7_000..11_000, None, (device: c_int),
        |real| contexts::reset(device, || real(device));
    cuDevicePrimaryCtxRelease, c"cuDevicePrimaryCtxRelease", 7_000..11_000, None, (device: c_int),
        |real| contexts::release(device, || real(device));
    cuDevicePrimaryCtxReset_v2, c"cuDevicePrimaryCtxReset", 11_000..ANY, None, (device: c_int),
        |real| contexts::reset(device, || real(device));
    cuDevicePrimaryCtxRelease_v2, c"cuDevicePrimaryCtxRelease", 11_000..ANY, None,
        (device: c_int),
        |real| contexts::release(device, || real(device));
}
