//! NCCL's structures, field for field, and the reading of them.
//!
//! From `src/include/plugin/profiler/profiler_v5.h` and `profiler_v6.h` of NVIDIA/nccl at 2.28 to 2.30;
//! v6 only adds kinds of events, none of which makes the union larger, so one type does for both.
//! `tests/c/nccl_profiler.h` says the same in C, and a test compares sizes and offsets.

use std::ffi::{c_char, c_int, c_void};

use crate::profiler::Begun;
use crate::settings::{COLLECTIVES, KERNELS, OPERATIONS, STEPS, TRANSFERS};
use crate::short_text::{SHORT_TEXT_BYTES, ShortText};

/// `ncclProfilerEventDescr_v5_t` and `ncclProfilerEventDescr_v6_t`.
#[repr(C)]
#[allow(missing_docs)] // NCCL's header says what each is.
#[allow(missing_debug_implementations)] // A union cannot say what is in it.
pub struct EventDescription {
    pub kind: u64,
    pub parent: *mut c_void,
    pub rank: c_int,
    pub of: Kinds,
}

/// The parts of the union that are used; the others are no larger.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
#[allow(missing_debug_implementations)]
pub union Kinds {
    pub collective: CollectiveFields,
    pub transfer: TransferFields,
    pub operation: OperationFields,
    pub step: c_int,
    pub kernel: KernelFields,
}

/// `coll`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
#[allow(missing_debug_implementations)]
pub struct CollectiveFields {
    pub sequence: u64,
    pub function: *const c_char,
    pub send_buffer: *const c_void,
    pub receive_buffer: *mut c_void,
    pub count: usize,
    pub root: c_int,
    pub datatype: *const c_char,
    pub channels: u8,
    pub warps: u8,
    pub algorithm: *const c_char,
    pub protocol: *const c_char,
    pub parent_group: *mut c_void,
}

/// `p2p`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
#[allow(missing_debug_implementations)]
pub struct TransferFields {
    pub function: *const c_char,
    pub buffer: *mut c_void,
    pub datatype: *const c_char,
    pub count: usize,
    pub peer: c_int,
    pub channels: u8,
    pub parent_group: *mut c_void,
}

/// `proxyOp`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
#[allow(missing_debug_implementations)]
pub struct OperationFields {
    pub process: c_int,
    pub channel: u8,
    pub peer: c_int,
    pub steps: c_int,
    pub chunk_bytes: c_int,
    pub is_send: c_int,
}

/// `kernelCh`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
#[allow(missing_debug_implementations)]
pub struct KernelFields {
    pub channel: u8,
    pub timer: u64,
}

/// `ncclProfilerEventStateArgs_v5_t`: one word, whatever it stands for, which for `proxyCtrl` alone is
/// shorter.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub union EventArguments {
    /// `proxyStep.transSize`, `kernelCh.pTimer`.
    state_value: u64,
    /// `netPlugin.data`.
    data: *mut c_void,
}

impl EventArguments {
    /// The size or the time; only meant for events of which it is one.
    pub(super) fn state_value(&self) -> u64 {
        // SAFETY: any eight bytes are a number, and NCCL fills the whole union.
        unsafe { self.state_value }
    }
}

impl EventDescription {
    /// The event as far as it is used; `None` for kinds that are not asked for.
    ///
    /// # Safety
    /// The fields of its kind are filled as NCCL fills them: text fields are null or C strings.
    pub(super) unsafe fn begun(&self) -> Option<Begun> {
        let parent = super::number(self.parent);
        let kind = i32::try_from(self.kind).ok()?;
        // SAFETY: the kind says which part of the union is filled, and none of the types has a value
        // that its bytes could not be. The caller vouches for the texts.
        unsafe {
            Some(match kind {
                COLLECTIVES => {
                    let fields = self.of.collective;
                    Begun::Task {
                        is_collective: true,
                        function: short(fields.function),
                        algorithm: short(fields.algorithm),
                        datatype: short(fields.datatype),
                        count: u64::try_from(fields.count).ok()?,
                        other: fields.root,
                        channels: fields.channels,
                    }
                }
                TRANSFERS => {
                    let fields = self.of.transfer;
                    Begun::Task {
                        is_collective: false,
                        function: short(fields.function),
                        algorithm: ShortText::default(),
                        datatype: short(fields.datatype),
                        count: u64::try_from(fields.count).ok()?,
                        other: fields.peer,
                        channels: fields.channels,
                    }
                }
                OPERATIONS => {
                    let OperationFields { process, peer, steps, chunk_bytes, is_send, .. } =
                        self.of.operation;
                    let is_send = is_send != 0;
                    Begun::Operation { process, parent, peer, is_send, steps, chunk_bytes }
                }
                STEPS => Begun::Step { parent, step: self.of.step },
                KERNELS => Begun::Kernel { parent, device_ns: self.of.kernel.timer },
                _ => return None,
            })
        }
    }
}

/// A name of NCCL's.
///
/// # Safety
/// `pointer` is null or a C string.
unsafe fn short(pointer: *const c_char) -> ShortText {
    // SAFETY: passed on.
    ShortText::new(unsafe { Bytes::new(pointer, SHORT_TEXT_BYTES) })
}

/// At most `most` bytes of a text, with `_` for what is neither letter, digit nor one of `_.:-`.
///
/// # Safety
/// `pointer` is null or a C string.
pub(super) unsafe fn text(pointer: *const c_char, most: usize) -> String {
    // SAFETY: passed on.
    let bytes = unsafe { Bytes::new(pointer, most) };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    bytes.map(|byte| if plain(byte) { char::from(byte) } else { '_' }).collect()
}

/// The bytes of a C string up to a limit, read one by one and not beyond its end.
struct Bytes {
    next: *const c_char,
    left: usize,
}

impl Bytes {
    /// # Safety
    /// `next` is null or a C string that outlives this.
    unsafe fn new(next: *const c_char, most: usize) -> Self {
        Self { next, left: if next.is_null() { 0 } else { most } }
    }
}

impl Iterator for Bytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            return None;
        }
        // SAFETY: not null, and no byte up to here was the end of the string. A `c_char` is signed on some processors.
        let byte = unsafe { self.next.cast::<u8>().read() };
        if byte == 0 {
            self.left = 0;
            return None;
        }
        self.left -= 1;
        // SAFETY: this byte was not the string's end, so there is another.
        self.next = unsafe { self.next.add(1) };
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    /// `tests/c/layout.c` has the same numbers.
    #[test]
    fn the_structures_are_laid_out_as_published() {
        assert_eq!((size_of::<EventDescription>(), align_of::<EventDescription>()), (112, 8));
        assert_eq!(offset_of!(EventDescription, of), 24);
        let collective = [
            offset_of!(CollectiveFields, sequence),
            offset_of!(CollectiveFields, function),
            offset_of!(CollectiveFields, count),
            offset_of!(CollectiveFields, root),
            offset_of!(CollectiveFields, datatype),
            offset_of!(CollectiveFields, channels),
            offset_of!(CollectiveFields, algorithm),
            offset_of!(CollectiveFields, parent_group),
        ];
        assert_eq!(collective, [0, 8, 32, 40, 48, 56, 64, 80]);
        let transfer = [
            offset_of!(TransferFields, function),
            offset_of!(TransferFields, datatype),
            offset_of!(TransferFields, count),
            offset_of!(TransferFields, peer),
            offset_of!(TransferFields, channels),
        ];
        assert_eq!(transfer, [0, 16, 24, 32, 36]);
        let operation = [
            offset_of!(OperationFields, process),
            offset_of!(OperationFields, channel),
            offset_of!(OperationFields, peer),
            offset_of!(OperationFields, steps),
            offset_of!(OperationFields, chunk_bytes),
            offset_of!(OperationFields, is_send),
        ];
        assert_eq!(operation, [0, 4, 8, 12, 16, 20]);
        assert_eq!(offset_of!(KernelFields, timer), 8);
        assert_eq!(size_of::<EventArguments>(), 8);
    }

    #[test]
    fn texts_end_where_they_end_or_at_the_limit() {
        for (given, most, expected) in
            [(c"tp group/0", 96, "tp_group_0"), (c"abcdef", 3, "abc"), (c"", 9, "")]
        {
            // SAFETY: a C string.
            assert_eq!(unsafe { text(given.as_ptr(), most) }, expected);
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { text(std::ptr::null(), 9) }, "");
    }
}
