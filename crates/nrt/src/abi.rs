//! The published structures, field for field, and how an event becomes one. A test compares sizes
//! and offsets with what the C compiler says.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;

use telltale_debug_stream::{EventKind, EventView, MAX_DIMENSIONS};

/// `ndebug_stream_event_header_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct EventHeader {
    /// Bytes of the payload, its fixed part included.
    pub data_size: u64,
    /// 1 for a tensor; 0 beside an error.
    pub event_type: u32,
    /// Zeros.
    pub reserved: [c_char; 52],
}

/// `ndebug_stream_payload_debug_tensor_read_t` without the tensor behind it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TensorPayload {
    /// The prefix, with a zero behind it.
    pub prefix: [u8; 512],
    /// The core.
    pub logical_nc_id: u32,
    /// Where to print.
    pub pipe: u32,
    /// The name of the data type, with a zero behind it.
    pub tensor_dtype: [u8; 16],
    /// The dimensions; those that do not exist are 0.
    pub tensor_shape: [u64; MAX_DIMENSIONS],
    /// Bytes of the tensor.
    pub tensor_data_size: u64,
    /// Zeros.
    pub reserved0: [u8; 416],
}

/// `telltale_debug_counts_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DebugCounts {
    pub produced: u64,
    pub delivered: u64,
    pub waiting: u64,
    pub unread: u64,
    pub dropped_events: u64,
    pub dropped_bytes: u64,
    pub dropped_memory: u64,
}

/// `telltale_debug_core_s`.
#[allow(missing_docs)] // The header says what each field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct CoreCounts {
    pub logical_nc_idx: u32,
    pub connected: u32,
    pub counts: DebugCounts,
    pub filtered: u64,
    pub unsaved: u64,
    pub waiting_bytes: u64,
}

/// What an event became.
pub(crate) enum Made {
    /// A structure that is the caller's to free.
    Payload(EventHeader, NonNull<c_void>),
    /// Nothing, for want of memory.
    NoMemory,
    /// Nothing, because the published interface has no such type.
    Unpublished,
}

impl EventHeader {
    /// What stands beside an error.
    pub(crate) const NONE: Self = Self { data_size: 0, event_type: 0, reserved: [0; 52] };
}

/// Copies an event into memory that the C function `free` takes.
#[inline]
pub(crate) fn make(event: &EventView<'_>) -> Made {
    if event.kind != EventKind::Tensor {
        return Made::Unpublished;
    }
    let fixed = size_of::<TensorPayload>();
    let Some(bytes) = fixed.checked_add(event.data.len()) else { return Made::NoMemory };
    // SAFETY: any number of bytes may be asked for.
    let memory = unsafe { libc::malloc(bytes) };
    let Some(start) = NonNull::new(memory.cast::<TensorPayload>()) else { return Made::NoMemory };
    // SAFETY: `malloc` gave at least the fixed part, aligned for any type, and nobody else knows
    // it. All fields are numbers, for which zeros are values, so a reference may follow.
    let payload = unsafe {
        start.write_bytes(0, 1);
        &mut *start.as_ptr()
    };
    // The last byte of each text stays zero.
    copy(&mut payload.prefix[..511], event.prefix);
    copy(&mut payload.tensor_dtype[..15], event.dtype);
    payload.logical_nc_id = event.core;
    payload.pipe = event.pipe;
    payload.tensor_shape = event.shape;
    payload.tensor_data_size = wide(event.data.len());
    // SAFETY: the memory is as many bytes longer than the fixed part, and not part of the queue.
    unsafe {
        let tensor = start.add(1).cast::<u8>();
        tensor.copy_from_nonoverlapping(NonNull::from(event.data).cast(), event.data.len());
    }
    let header =
        EventHeader { data_size: wide(bytes), event_type: event.kind.code(), ..EventHeader::NONE };
    Made::Payload(header, start.cast())
}

fn copy(to: &mut [u8], from: &[u8]) {
    let length = from.len().min(to.len());
    to[..length].copy_from_slice(&from[..length]);
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("no machine has more bytes than 64 bits count")
}
