//! DLPack: memory lent to another library of the process, which gives it back when it is done. The
//! structures are those of DLPack 1.1, in their old form and in the one with a version.
//!
//! What is shared must not be written. Only the form with a version says that, so the old form lends a copy.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::memory::Memory;

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

/// One of the two forms.
trait Form {
    /// What a capsule with it is called until it is taken out.
    const NAME: &'static CStr;

    /// Where the structure keeps the box around it.
    fn context(&mut self) -> &mut *mut c_void;
}

/// What is lent.
pub(super) struct Lent<'tensor> {
    pub(super) element: LentType,
    pub(super) shape: &'tensor [u64],
    pub(super) memory: LentMemory,
}

/// Memory that is lent.
pub(super) enum LentMemory {
    /// Others have it too: the borrower must not write.
    Shared(Arc<Memory>),
    /// The borrower's alone.
    Copied(Memory),
}

/// What has to live as long as the borrower wants it: the structure, and what its pointers lead to.
struct Kept<T> {
    managed: T,
    _sizes: Vec<i64>,
    _strides: Vec<i64>,
    _memory: LentMemory,
}

// === impl Form ===

impl Form for Managed {
    const NAME: &'static CStr = c"dltensor";

    fn context(&mut self) -> &mut *mut c_void {
        &mut self.context
    }
}

impl Form for ManagedVersioned {
    const NAME: &'static CStr = c"dltensor_versioned";

    fn context(&mut self) -> &mut *mut c_void {
        &mut self.context
    }
}

// === impl LentMemory ===

impl LentMemory {
    /// The memory for a borrower that cannot know that it must not write.
    fn writable(self) -> Self {
        match self {
            Self::Shared(memory) => Self::Copied(Memory::clone(&memory)),
            Self::Copied(memory) => Self::Copied(memory),
        }
    }

    /// Where it is, however the value itself moves.
    fn address(&mut self) -> *mut c_void {
        match self {
            // To be read only; the structure has no other pointer for that.
            Self::Shared(memory) => memory.address().cast_mut().cast(),
            Self::Copied(memory) => memory.address_mut().cast(),
        }
    }
}

/// A capsule that lends the memory; without a version, a copy of it.
pub(super) fn capsule<'py>(
    py: Python<'py>,
    lent: Lent<'_>,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if is_versioned {
        let is_copied = matches!(lent.memory, LentMemory::Copied(_));
        let flags = if is_copied { IS_COPIED } else { READ_ONLY };
        let managed = |tensor| ManagedVersioned {
            version: VERSION,
            context: ptr::null_mut(),
            deleter: Some(give_back),
            flags,
            tensor,
        };
        new_capsule(py, keep(lent, managed)?)
    } else {
        let lent = Lent { memory: lent.memory.writable(), ..lent };
        let managed =
            |tensor| Managed { tensor, context: ptr::null_mut(), deleter: Some(give_back) };
        new_capsule(py, keep(lent, managed)?)
    }
}

/// The structure and what it needs, without pointers to the box itself.
fn keep<T>(mut lent: Lent<'_>, managed: impl FnOnce(RawTensor) -> T) -> PyResult<Box<Kept<T>>> {
    let too_large = |_| PyBufferError::new_err("the shape is larger than DLPack counts");
    let sizes: Result<Vec<i64>, _> = lent.shape.iter().map(|size| i64::try_from(*size)).collect();
    let mut sizes = sizes.map_err(too_large)?;
    let mut strides = vec![1_i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        // With a dimension of 0 the others may be of any size, and no stride is used.
        strides[at - 1] = strides[at].saturating_mul(sizes[at]);
    }
    let tensor = RawTensor {
        data: lent.memory.address(),
        device: HOST,
        rank: i32::try_from(sizes.len()).map_err(too_large)?,
        element: lent.element,
        shape: sizes.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = managed(tensor);
    Ok(Box::new(Kept { managed, _sizes: sizes, _strides: strides, _memory: lent.memory }))
}

fn new_capsule<T: Form>(py: Python<'_>, kept: Box<Kept<T>>) -> PyResult<Bound<'_, PyAny>> {
    let kept = Box::into_raw(kept);
    // SAFETY: `kept` is of `Box::into_raw` just now, so it is valid and nothing else has it. The
    // pointer that the capsule gets is not null. It stays valid until the deleter or the destructor
    // gives the box back. Only one of them does: a borrower that takes the structure out of the
    // capsule gives that another name, and calls the deleter. The name here is static. `py` shows
    // that this thread is attached to the interpreter.
    let capsule = unsafe {
        *(*kept).managed.context() = kept.cast();
        let managed = &raw mut (*kept).managed;
        ffi::PyCapsule_New(managed.cast(), T::NAME.as_ptr(), Some(drop_capsule::<T>))
    };
    if capsule.is_null() {
        // SAFETY: `kept` is of `Box::into_raw`, and there is no capsule that has it.
        drop(unsafe { Box::from_raw(kept) });
        return Err(PyErr::fetch(py));
    }
    // SAFETY: `PyCapsule_New` returned it: a new reference, which is ours, and not null. `py` as above.
    Ok(unsafe { Bound::from_owned_ptr(py, capsule) })
}

/// The destructor: gives back what was not taken out of the capsule.
unsafe extern "C" fn drop_capsule<T: Form>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, attached, with the capsule that it frees, which `new_capsule`
    // of the same `T` made. A borrower that takes the structure out gives the capsule another name.
    // Under its first one, the pointer is still the capsule's to give back, and is the one that
    // `new_capsule` put there. A capsule of this name is valid, so neither call sets an exception.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) == 1 {
            give_back(ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()).cast::<T>());
        }
    }
}

/// The deleter: any thread may call it, attached to the interpreter or not.
unsafe extern "C" fn give_back<T: Form>(managed: *mut T) {
    // SAFETY: DLPack has the deleter called once, with the structure that was lent. Only
    // `new_capsule` of the same `T` fills that: its context is the box around it, of
    // `Box::into_raw`. The borrower no longer uses any of it. Nothing in the box belongs to Python
    // or to a thread, so it may be dropped on this one.
    unsafe {
        let kept = (*(*managed).context()).cast::<Kept<T>>();
        drop(Box::from_raw(kept));
    }
}

// What the last comment says of threads.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<LentMemory>();
};
