//! The memory functions of CUDA's driver, as the program sees them.
//!
//! CUDA's runtime (`cudaMalloc` and the rest of it, linked statically or not) asks the driver for
//! functions by name: here it is given ours, which call the driver's and note what these did. Names,
//! versions and types are those of the driver's published header, `cuda.h` of CUDA 13.
//! No result is changed, and no function is there that the driver does not have.

use std::ffi::c_int;

mod arrays;
mod blocks;
mod contexts;
mod device;
#[cfg(target_arch = "x86_64")]
mod dlsym;
mod driver;
mod extent;
mod lookup;
mod memory;
mod physical;
mod wrapped;

pub(crate) use blocks::Blocks;
pub(crate) use device::{DeviceAccounts, MAX_DEVICES};

/// Whether this library records what the process has of the driver. libtelltale asks, which then leaves the blocks that
/// it allocates for PyTorch to this library: it sees them, and all others too.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn telltale_run_records_cuda() -> c_int {
    // Elsewhere `dlsym` is not ours, by which the other one finds the driver.
    c_int::from(cfg!(target_arch = "x86_64") && crate::recording::current().is_some())
}
