//! The calls of NVML that the wrapper lacks, or lacks a part of. Structures and meanings are those of
//! NVIDIA's `nvml.h`, as `nvml-wrapper-sys` has it.

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::struct_wrappers::device::FieldValueSample;
pub(super) use nvml_wrapper_sys::bindings::nvmlProcessUtilizationSample_t as ProcessSample;
use nvml_wrapper_sys::bindings::{nvmlFieldValue_t, nvmlValue_t};

use super::library::{Said, unsupported_if_refused};

/// A value of a GPU by its number in `nvml.h` (`NVML_FI_DEV_...`), and what of the GPU it is of: a
/// link, or [`ALL_LINKS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopedField {
    pub(super) id: u32,
    pub(super) scope: u32,
}

/// `NVML_VALUE_TYPE_DOUBLE` and `NVML_VALUE_TYPE_SIGNED_LONG_LONG`: no counter is one.
pub(super) const DOUBLE: u32 = 0;
pub(super) const SIGNED: u32 = 4;

/// Processes of one GPU whose use is taken.
const MAX_PROCESSES: usize = 4096;

/// The scope of a field of links that asks for the sum of all.
pub(super) const ALL_LINKS: u32 = u32::MAX;

/// What `nvmlDeviceGetRemappedRows` reports. A row of memory with errors is replaced by a spare one
/// when the GPU is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RemappedRows {
    /// Because of corrected errors.
    pub(super) corrected: u32,
    /// Because of uncorrected errors.
    pub(super) uncorrected: u32,
    /// Not 0 while a row waits for a reset.
    pub(super) pending: u32,
    /// Not 0 if a row could not be replaced.
    pub(super) failed: u32,
}

/// The GPU instance of a MIG device. Without it nothing shows which compute instances share their
/// memory.
#[allow(unsafe_code)]
pub(super) fn gpu_instance_id(device: &Device<'_>) -> Said<u32> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
    let mut id = 0;
    // SAFETY: the handle is one that NVML gave, of a library that is started and stays loaded as
    // long as the borrowed device; `id` is a place for the one number that the call writes.
    nvml_try(unsafe { call(device.handle(), &raw mut id) })?;
    Ok(id)
}

/// The rows of its memory that were replaced, on Ampere and later.
#[allow(unsafe_code)]
pub(super) fn remapped_rows(device: &Device<'_>) -> Said<RemappedRows> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetRemappedRows.as_ref())?;
    let mut rows = RemappedRows::default();
    // SAFETY: the handle is as above; each pointer is to a place for the one `unsigned int` that the
    // call writes there.
    nvml_try(unsafe {
        call(
            device.handle(),
            &raw mut rows.corrected,
            &raw mut rows.uncorrected,
            &raw mut rows.pending,
            &raw mut rows.failed,
        )
    })?;
    Ok(rows)
}

/// What `nvmlDeviceGetProcessUtilization` reports: samples of processes that are newer than a time of
/// the host's clock in microseconds, at most [`MAX_PROCESSES`]. The wrapper takes any number.
#[allow(unsafe_code)]
pub(super) fn process_samples(device: &Device<'_>, since_us: u64) -> Said<Vec<ProcessSample>> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetProcessUtilization.as_ref())?;
    let empty =
        ProcessSample { pid: 0, timeStamp: 0, smUtil: 0, memUtil: 0, encUtil: 0, decUtil: 0 };
    let mut samples = vec![empty; MAX_PROCESSES];
    let mut count = u32::try_from(MAX_PROCESSES).map_err(|_| NvmlError::InvalidArg)?;
    // SAFETY: the handle is as above; the call writes at most `count` structures, which the list has,
    // and their number to `count`.
    nvml_try(unsafe { call(device.handle(), samples.as_mut_ptr(), &raw mut count, since_us) })?;
    samples.truncate(usize::try_from(count).unwrap_or(MAX_PROCESSES));
    Ok(samples)
}

/// The values of fields, each with a scope, which the wrapper leaves at 0: the first link alone. A
/// driver that does not know a field refuses that one alone.
#[allow(unsafe_code)]
pub(super) fn field_values(device: &Device<'_>, fields: &[ScopedField]) -> Said<Vec<Said<u64>>> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    let asked = fields.iter().map(|field| nvmlFieldValue_t {
        fieldId: field.id,
        scopeId: field.scope,
        timestamp: 0,
        latencyUsec: 0,
        valueType: 0,
        nvmlReturn: 0,
        value: nvmlValue_t { ullVal: 0 },
    });
    let mut values: Vec<nvmlFieldValue_t> = asked.collect();
    let count = i32::try_from(values.len()).map_err(|_| NvmlError::InvalidArg)?;
    // SAFETY: the handle is as above; the call reads and writes `count` structures, which the list
    // has.
    nvml_try(unsafe { call(device.handle(), count, values.as_mut_ptr()) })
        .map_err(unsupported_if_refused)?;
    let value = |value| {
        let sample = FieldValueSample::try_from(value).and_then(|sample| sample.value);
        sample.map_err(unsupported_if_refused).and_then(whole)
    };
    Ok(values.into_iter().map(value).collect())
}

/// A count, which has no sign and no fraction.
fn whole(value: SampleValue) -> Said<u64> {
    match value {
        SampleValue::U32(value) => Ok(u64::from(value)),
        SampleValue::U64(value) => Ok(value),
        SampleValue::I64(_) => Err(NvmlError::UnexpectedVariant(SIGNED)),
        SampleValue::F64(_) => Err(NvmlError::UnexpectedVariant(DOUBLE)),
    }
}
