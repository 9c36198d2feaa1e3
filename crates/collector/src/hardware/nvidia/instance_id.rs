//! The number of the GPU instance that a MIG device is in: the one call that the wrapper lacks.
//!
//! Without it nothing tells which compute instances share their memory.

use nvml_wrapper::Device;
use nvml_wrapper::error::{nvml_sym, nvml_try};

use super::library::Said;

/// The GPU instance of a MIG device.
#[allow(unsafe_code)]
pub(super) fn gpu_instance_id(device: &Device<'_>) -> Said<u32> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
    let mut id = 0;
    // SAFETY: the handle is one that NVML gave, of a library that is started and stays loaded as
    // long as the borrowed device; `id` is a place for the one number that the call writes.
    nvml_try(unsafe { call(device.handle(), &raw mut id) })?;
    Ok(id)
}
