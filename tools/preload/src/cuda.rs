//! The memory functions of CUDA's driver, as the program sees them.
//!
//! CUDA's runtime (`cudaMalloc` and the rest of it, linked statically or not) asks the driver for
//! functions by name: here it is given ours, which call the driver's and note what these did. Names,
//! versions and types are those of the driver's published header, `cuda.h` of CUDA 13.
//! No result is changed, and no function is there that the driver does not have.

mod blocks;
mod contexts;
mod device;
mod driver;
mod lookup;
mod memory;
mod physical;
mod wrapped;

pub(crate) use blocks::Blocks;
pub(crate) use device::{DeviceAccounts, MAX_DEVICES};
