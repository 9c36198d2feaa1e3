//! Opening, closing and recording.

use telltale_runtime::{Quota, RingBuffer, Traffic};

use crate::abi::{DeviceStruct, structure};
use crate::debug_streams;
use crate::describe::{description, memory_kind, memory_space};
use crate::runtimes::RuntimeHandle;
use crate::status::{Status, Wrong, borrowed, give, guarded, take_back};

/// `telltale_device_h` points to it.
pub struct DeviceHandle(telltale_runtime::Device);

/// Opens a device.
///
/// # Safety
/// `runtime` is null or a live handle, `device` is null or points to the structure, `opened` is
/// null or points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_device_open(
    runtime: *const RuntimeHandle,
    device: *const DeviceStruct,
    opened: *mut *mut DeviceHandle,
) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for both unless they are null.
        let (runtime, device) = unsafe { (borrowed(runtime)?, structure(device)?) };
        debug_streams::look_for_library();
        let make = || Ok(DeviceHandle(runtime.0.open_device(description(device)?)));
        // SAFETY: the caller vouches for the place unless it is null.
        unsafe { give(opened, make) }
    })
}

/// Closes a device.
///
/// # Safety
/// `device` is null or a handle that is given back for the first time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_device_close(device: *mut DeviceHandle) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    guarded(|| unsafe { take_back(device) })
}

/// Runs `record` with the device behind a handle.
///
/// # Safety
/// `device` is null or a live handle.
#[inline]
unsafe fn with(
    device: *const DeviceHandle,
    record: impl FnOnce(&telltale_runtime::Device) -> Result<(), Wrong>,
) -> Status {
    // SAFETY: the caller of this function vouches for the handle unless it is null.
    guarded(|| record(&unsafe { borrowed(device) }?.0))
}

/// Records an allocation.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_allocate(
    device: *const DeviceHandle,
    kind: u32,
    address: u64,
    bytes: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.allocate(memory_kind(kind)?, address, bytes);
            Ok(())
        })
    }
}

/// Records a free.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_free(
    device: *const DeviceHandle,
    kind: u32,
    address: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.free(memory_kind(kind)?, address);
            Ok(())
        })
    }
}

/// Records an allocation that will be freed by size.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_allocate_sized(
    device: *const DeviceHandle,
    kind: u32,
    bytes: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.allocate_sized(memory_kind(kind)?, bytes);
            Ok(())
        })
    }
}

/// Records a free by size.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_free_sized(
    device: *const DeviceHandle,
    kind: u32,
    bytes: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.free_sized(memory_kind(kind)?, bytes);
            Ok(())
        })
    }
}

/// Records a refused allocation.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_allocation_failed(
    device: *const DeviceHandle,
    kind: u32,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.allocation_failed(memory_kind(kind)?);
            Ok(())
        })
    }
}

/// Counts operations.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_count_operations(
    device: *const DeviceHandle,
    operations: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.count_operations(operations);
            Ok(())
        })
    }
}

/// Counts bytes moved.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_count_traffic(
    device: *const DeviceHandle,
    host_to_device_bytes: u64,
    device_to_host_bytes: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.count_traffic(Traffic { host_to_device_bytes, device_to_host_bytes });
            Ok(())
        })
    }
}

/// Reports how full the ring buffer is.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_report_ring_buffer(
    device: *const DeviceHandle,
    total_bytes: u64,
    used_bytes: u64,
    programs: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.report_ring_buffer(RingBuffer { total_bytes, used_bytes, programs });
            Ok(())
        })
    }
}

/// Reports a limit.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_report_quota(
    device: *const DeviceHandle,
    space: u32,
    limit_bytes: u64,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.report_quota(Quota { space: memory_space(space)?, limit_bytes });
            Ok(())
        })
    }
}

/// Reports whether the device is being held back.
///
/// # Safety
/// `device` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_report_throttled(
    device: *const DeviceHandle,
    active: u32,
) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    unsafe {
        with(device, |device| {
            device.report_throttled(active != 0);
            Ok(())
        })
    }
}
