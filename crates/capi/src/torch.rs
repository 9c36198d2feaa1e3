//! PyTorch's pluggable allocator: two functions of the signatures that it calls, which allocate CUDA memory and
//! record it.
//!
//! What fails here fails as PyTorch expects, by a null pointer. Recording never makes an allocation fail.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use telltale_schema::memory::MemoryKind;

use crate::cuda::{AllocationRefusal, CudaDevice, Pointer};
use crate::status::guarded;

/// Allocates `size` bytes on a device.
///
/// # Safety
/// None beyond those of every C function: the arguments are numbers, and the stream is not checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_torch_alloc(
    size: isize,
    device: c_int,
    _stream: *mut c_void,
) -> *mut c_void {
    let mut block = null_mut();
    // What panics after the block is there costs its record, and the block is given all the same.
    guarded(|| {
        let (Ok(bytes), Some(device)) = (usize::try_from(size), CudaDevice::get(device)) else {
            return Ok(());
        };
        if bytes == 0 {
            return Ok(());
        }
        let allocated = device.allocate(bytes);
        if let Ok(address) = allocated {
            block = address as *mut c_void;
        }
        if let Some(record) = device.record() {
            match allocated {
                Ok(address) => record.allocate(MemoryKind::Dram, address, bytes as u64),
                Err(AllocationRefusal::NoMemory) => record.allocation_failed(MemoryKind::Dram),
                Err(AllocationRefusal::Otherwise) => {}
            }
        }
        Ok(())
    });
    block
}

/// Frees what [`telltale_torch_alloc`] gave. Work that was given to the device before may still use the block: the driver
/// waits for it. A free that the driver refuses counts all the same: it does so where the context is lost, and all its
/// blocks with it.
///
/// # Safety
/// `block` is null or a block of this device that is given no further work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_torch_free(
    block: *mut c_void,
    _size: isize,
    device: c_int,
    _stream: *mut c_void,
) {
    guarded(|| {
        if block.is_null() {
            return Ok(());
        }
        let Some(device) = CudaDevice::get(device) else { return Ok(()) };
        let address = block as Pointer;
        // Before the driver has it, because afterwards another thread may be given the address.
        if let Some(record) = device.record() {
            record.free(MemoryKind::Dram, address);
        }
        device.free(address);
        Ok(())
    });
}
