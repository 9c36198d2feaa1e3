//! A compiled kernel in this process: the only place where code from a file becomes code that runs.

use std::fmt;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::context::Core;
use super::elf::CodeSize;

/// The function that every kernel's library has.
const ENTRY: &str = "kernel_main";

/// A kernel that can be run on any core of any accelerator of this process, by several threads at
/// a time: it has no state of its own unless its author gave it some.
pub(crate) struct LoadedKernel {
    entry: unsafe extern "C" fn(*const Core),
    /// Keeps the code in memory.
    _library: Library,
    code_bytes: u64,
    /// Where in this process its code begins and ends.
    code: (usize, usize),
}

/// Why a compiled kernel could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("the system's loader refuses it, or its source has no KERNEL_MAIN")]
pub struct LoadKernelError(#[from] libloading::Error);

impl LoadedKernel {
    /// Loads the library at `path`, which was made by the compiler from a kernel's source.
    pub(crate) fn open(path: &Path, size: CodeSize) -> Result<Self, LoadKernelError> {
        // SAFETY: loading runs the library's initialisers, and the kernel's author can put
        // anything there: a kernel is code that the process runs because its user asked for it.
        // What is checked is that the file is the one the compiler made, see disk_cache.rs.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)? };
        // SAFETY: `KERNEL_MAIN` in kernel_api.h declares the function with this very type, so a
        // definition of another type does not compile.
        let entry: unsafe extern "C" fn(*const Core) = unsafe { *library.get(ENTRY.as_bytes())? };
        let base = base_of(entry as usize);
        let code = (base + size.place.0, base + size.place.1);
        Ok(Self { entry, _library: library, code_bytes: size.bytes, code })
    }

    /// Where in this process its code begins and ends.
    #[inline]
    pub(super) fn code(&self) -> (usize, usize) {
        self.code
    }

    /// How large its code is.
    pub(crate) fn code_bytes(&self) -> u64 {
        self.code_bytes
    }

    pub(super) fn entry(&self) -> unsafe extern "C" fn(*const Core) {
        self.entry
    }
}

/// Where the library with the code at this address begins.
fn base_of(code: usize) -> usize {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    let address = ptr::without_provenance(code);
    // SAFETY: the pointer is valid for a write; an address of no library is answered with zero.
    let is_known = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is a valid answer as well.
    let found = unsafe { found.assume_init() };
    if is_known { found.dli_fbase.addr() } else { code }
}

impl fmt::Debug for LoadedKernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoadedKernel").field("code_bytes", &self.code_bytes).finish()
    }
}
