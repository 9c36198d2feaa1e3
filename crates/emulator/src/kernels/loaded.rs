//! A compiled kernel in this process: the only place where code from a file becomes code that runs.

use std::fmt;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::context::Core;

/// The function that every kernel's library has.
const ENTRY: &str = "kernel_main";

/// A kernel that can be run on any core of any accelerator of this process, by several threads at
/// a time: it has no state of its own unless its author gave it some.
pub(crate) struct LoadedKernel {
    entry: unsafe extern "C" fn(*const Core),
    /// Keeps the code in memory.
    _library: Library,
    code_bytes: u64,
}

/// Why a compiled kernel could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("the system's loader refuses it, or its source has no KERNEL_MAIN")]
pub struct LoadKernelError(#[from] libloading::Error);

impl LoadedKernel {
    /// Loads the library at `path`, which was made by the compiler from a kernel's source.
    pub(crate) fn open(path: &Path, code_bytes: u64) -> Result<Self, LoadKernelError> {
        // SAFETY: loading runs the library's initialisers, and the kernel's author can put
        // anything there: a kernel is code that the process runs because its user asked for it.
        // What is checked is that the file is the one the compiler made, see disk_cache.rs.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)? };
        // SAFETY: `KERNEL_MAIN` in kernel_api.h declares the function with this very type, so a
        // definition of another type does not compile.
        let entry = unsafe { *library.get(ENTRY.as_bytes())? };
        Ok(Self { entry, _library: library, code_bytes })
    }

    /// How large its code is.
    pub(crate) fn code_bytes(&self) -> u64 {
        self.code_bytes
    }

    pub(super) fn entry(&self) -> unsafe extern "C" fn(*const Core) {
        self.entry
    }
}

impl fmt::Debug for LoadedKernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoadedKernel").field("code_bytes", &self.code_bytes).finish()
    }
}
