//! DLPack: memory lent to another library of the process, which gives it back when it is done. The
//! structures are those of DLPack 1.1, in their old form and in the one with a version.
//!
//! What is lent is never written here; a library that takes the old form cannot know that it must not.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::memory::Memory;

const OLD: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSION: Version = Version { major: 1, minor: 1 };
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
const HOST: LentDevice = LentDevice { kind: 1, number: 0 };

/// `DLDataType`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct LentType {
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) lanes: u16,
}

/// `DLDevice`.
#[derive(Clone, Copy)]
#[repr(C)]
struct LentDevice {
    kind: i32,
    number: i32,
}

/// `DLPackVersion`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLTensor`.
#[repr(C)]
struct RawTensor {
    data: *mut c_void,
    device: LentDevice,
    rank: i32,
    element: LentType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: RawTensor,
}

/// What is lent.
pub(super) struct Lent<'tensor> {
    pub(super) element: LentType,
    pub(super) shape: &'tensor [u64],
    pub(super) memory: Arc<Memory>,
    /// Whether nothing else has the memory.
    pub(super) is_copied: bool,
}

/// What has to live as long as the borrower wants it.
struct Kept<T> {
    managed: T,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _memory: Arc<Memory>,
}

/// A capsule that lends the memory.
pub(super) fn capsule<'py>(
    py: Python<'py>,
    lent: Lent<'_>,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if is_versioned {
        let flags = if lent.is_copied { IS_COPIED } else { READ_ONLY };
        let mut kept = keep(lent, |tensor| ManagedVersioned {
            version: VERSION,
            context: ptr::null_mut(),
            deleter: Some(give_back_versioned),
            flags,
            tensor,
        })?;
        let (shape, strides) = (kept.sizes.as_mut_ptr(), kept.strides.as_mut_ptr());
        (kept.managed.tensor.shape, kept.managed.tensor.strides) = (shape, strides);
        let kept = Box::into_raw(kept);
        // SAFETY: `kept` was just made and nothing else has it. Its `managed` comes first and has its own
        // address; the whole is given back to `Box` by the deleter.
        let managed = unsafe {
            (*kept).managed.context = kept.cast();
            &raw mut (*kept).managed
        };
        new_capsule(py, managed.cast(), VERSIONED, drop_versioned)
    } else {
        let mut kept = keep(lent, |tensor| Managed {
            tensor,
            context: ptr::null_mut(),
            deleter: Some(give_back),
        })?;
        let (shape, strides) = (kept.sizes.as_mut_ptr(), kept.strides.as_mut_ptr());
        (kept.managed.tensor.shape, kept.managed.tensor.strides) = (shape, strides);
        let kept = Box::into_raw(kept);
        // SAFETY: as above.
        let managed = unsafe {
            (*kept).managed.context = kept.cast();
            &raw mut (*kept).managed
        };
        new_capsule(py, managed.cast(), OLD, drop_old)
    }
}

fn keep<T>(lent: Lent<'_>, managed: impl FnOnce(RawTensor) -> T) -> PyResult<Box<Kept<T>>> {
    let too_large = |_| PyBufferError::new_err("the shape is larger than DLPack counts");
    let sizes: Result<Vec<i64>, _> = lent.shape.iter().map(|size| i64::try_from(*size)).collect();
    let sizes = sizes.map_err(too_large)?;
    let mut strides = vec![1_i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        // With a dimension of 0 the others may be of any size, and no stride is used.
        strides[at - 1] = strides[at].saturating_mul(sizes[at]);
    }
    let tensor = RawTensor {
        data: lent.memory.address().cast_mut().cast(),
        device: HOST,
        rank: i32::try_from(sizes.len()).map_err(too_large)?,
        element: lent.element,
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    Ok(Box::new(Kept { managed: managed(tensor), sizes, strides, _memory: lent.memory }))
}

fn new_capsule<'py>(
    py: Python<'py>,
    managed: *mut c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `managed` is not null, the name lives as long as the process, and the destructor knows
    // what is in a capsule of that name. The interpreter is attached. On failure the memory stays: there
    // is none left then anyway.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Gives back what no one took out of the capsule.
unsafe extern "C" fn drop_old(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule that it frees. Under its first name, no consumer has taken
    // what is in it, which is what `capsule` put there.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) == 1 {
            give_back(ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast());
        }
    }
}

/// The same with a version.
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as for `drop_old`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            give_back_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// The deleter: any thread may call it, attached to the interpreter or not.
unsafe extern "C" fn give_back(managed: *mut Managed) {
    // SAFETY: DLPack has the deleter called once, with what was lent, whose context is the box around it.
    // Nothing in the box belongs to Python.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Kept<Managed>>())) };
}

/// The same with a version.
unsafe extern "C" fn give_back_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as for `give_back`.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Kept<ManagedVersioned>>())) };
}
