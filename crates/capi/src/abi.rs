//! The structures of `telltale.h`, field for field. A test compares sizes and offsets with what the
//! C compiler says.

use std::ffi::{c_char, c_void};

use crate::status::Wrong;

/// `telltale_on_problem`.
pub(crate) type OnProblem = unsafe extern "C" fn(*mut c_void, *const c_char);

/// `telltale_options_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Options {
    pub struct_size: usize,
    pub runtime_name: *const c_char,
    pub directory: *const c_char,
    pub root: *const c_char,
    pub on_problem: Option<OnProblem>,
    pub on_problem_context: *mut c_void,
    pub disabled: u32,
    pub reserved: u32,
}

/// `telltale_device_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DeviceStruct {
    pub struct_size: usize,
    pub known: u32,
    pub logical_id: u32,
    pub asic_id: u64,
    pub board_id: u64,
    pub driver_ordinal: u32,
    pub pci_domain: u32,
    pub pci_bus: u8,
    pub pci_device: u8,
    pub pci_function: u8,
    pub location: u8,
    pub remote: u8,
    pub galaxy_tray: u8,
    pub galaxy_nibble: u8,
    pub reserved: u8,
    pub architecture: u32,
    pub dram_channels: u32,
    pub dram_capacity_bytes: u64,
    pub l1_per_core_bytes: u64,
    pub worker_cores: u32,
    pub grid_columns: u32,
    pub grid_rows: u32,
    pub reserved_end: u32,
}

/// `telltale_programs_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Programs {
    pub struct_size: usize,
    pub cached: u64,
    pub hits: u64,
    pub misses: u64,
    pub loaded: *const *const c_char,
    pub loaded_count: usize,
}

/// `telltale_label_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Label {
    pub name: *const c_char,
    pub value: *const c_char,
}

/// `telltale_metric_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Metric {
    pub struct_size: usize,
    pub name: *const c_char,
    pub help: *const c_char,
    pub unit: *const c_char,
    pub labels: *const Label,
    pub label_count: usize,
}

/// A structure that says how large its caller believes it to be.
pub(crate) trait Versioned {
    fn struct_size(&self) -> usize;
}

macro_rules! versioned {
    ($($name:ty),*) => {
        $(impl Versioned for $name {
            fn struct_size(&self) -> usize {
                self.struct_size
            }
        })*
    };
}

versioned!(Options, DeviceStruct, Programs, Metric);

/// The structure behind a pointer, if its caller knows all its fields. A longer one comes from a
/// newer header, whose additional fields mean nothing here.
///
/// # Safety
/// `pointer` is null or points to a structure of this kind, at least `struct_size` bytes long.
pub(crate) unsafe fn structure<'call, T: Versioned>(pointer: *const T) -> Result<&'call T, Wrong> {
    if pointer.is_null() {
        return Err(Wrong::Null);
    }
    // SAFETY: every such structure begins with its size, which a caller with whatever header has
    // set; only that word is read before the size is known to be enough.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < size_of::<T>() {
        return Err(Wrong::Invalid);
    }
    // SAFETY: not null and long enough, and the caller of this function vouches for the rest.
    let found = unsafe { &*pointer };
    debug_assert_eq!(found.struct_size(), size);
    Ok(found)
}
