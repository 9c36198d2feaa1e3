//! The allocation server's messages: where their fields are, what can be one, reading and writing.
//! Pure.
//!
//! The three forms are those of `AllocMessage` in tt-metal's `allocation_server_poc.cpp` (112
//! bytes), `allocation_client.cpp` after circular buffers and kernels came (128), and
//! `tt_smi_umd.cpp` (144). Nothing in a message says which form it has. All numbers are little
//! endian, as on the machines that have such devices.

use telltale_schema::memory::MemoryKind;

/// Where what only answers have begins. Every known client zeroes a request before it fills it
/// in, so all of a request from here on is zero; that is what distinguishes forms.
const ANSWERS_FROM: usize = 40;

/// One of the three forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageForm {
    /// The first one: buffers alone.
    Buffers,
    /// With sums of circular buffers and kernels.
    Programs,
    /// With the kernels' ring buffer, too.
    Ring,
}

/// A field: its name in C, its size, and where it is in each form that has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: &'static str,
    bytes: usize,
    at: [Option<usize>; 3],
}

/// What a client says or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) device: i32,
    pub(crate) size: u64,
    pub(crate) buffer_type: u8,
    /// The pid that the client gives itself, of whatever PID namespace.
    pub(crate) process: i32,
    pub(crate) buffer: u64,
}

/// The type of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Alloc,
    Free,
    Query,
    DumpRemaining,
    DeviceInfo,
    CbAlloc,
    CbFree,
    KernelLoad,
    KernelUnload,
    DumpKernels,
}

/// What is answered: a type, a device, and fields; those that a form lacks are left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LegacyAnswer {
    pub(crate) code: u8,
    pub(crate) device: i32,
    pub(crate) fields: Vec<(&'static Field, u64)>,
}

/// The type of the answer to [`Verb::Query`].
pub(crate) const RESPONSE: u8 = 4;
/// The type of the answer to [`Verb::DeviceInfo`].
pub(crate) const DEVICE_INFO_RESPONSE: u8 = 7;

static TYPE: Field = Field::in_all("type", 1, 0);
static DEVICE: Field = Field::in_all("device_id", 4, 4);
static SIZE: Field = Field::in_all("size", 8, 8);
static BUFFER_TYPE: Field = Field::in_all("buffer_type", 1, 16);
static PROCESS: Field = Field::in_all("process_id", 4, 20);
static BUFFER: Field = Field::in_all("buffer_id", 8, 24);
pub(crate) static DRAM: Field = Field::in_all("dram_allocated", 8, 40);
pub(crate) static L1: Field = Field::in_all("l1_allocated", 8, 48);
pub(crate) static L1_SMALL: Field = Field::in_all("l1_small_allocated", 8, 56);
pub(crate) static TRACE: Field = Field::in_all("trace_allocated", 8, 64);
pub(crate) static CB: Field = Field::of("cb_allocated", 8, [None, Some(72), Some(72)]);
pub(crate) static KERNEL: Field = Field::of("kernel_allocated", 8, [None, Some(80), Some(80)]);
pub(crate) static TOTAL_DRAM: Field = Field::moved("total_dram_size", 8, 72);
pub(crate) static TOTAL_L1: Field = Field::moved("total_l1_size", 8, 80);
pub(crate) static ARCHITECTURE: Field = Field::moved("arch_type", 4, 88);
pub(crate) static DRAM_CHANNELS: Field = Field::moved("num_dram_channels", 4, 92);
pub(crate) static DRAM_PER_CHANNEL: Field = Field::moved("dram_size_per_channel", 4, 96);
pub(crate) static L1_PER_CORE: Field = Field::moved("l1_size_per_core", 4, 100);
pub(crate) static IS_AVAILABLE: Field = Field::moved("is_available", 4, 104);
pub(crate) static DEVICES: Field = Field::moved("num_devices", 4, 108);
pub(crate) static RING_TOTAL: Field =
    Field::of("ring_buffer_total_size", 4, [None, None, Some(128)]);
pub(crate) static RING_USED: Field =
    Field::of("ring_buffer_used_bytes", 4, [None, None, Some(132)]);

/// Bytes that are zero in every message.
const PADDING: [std::ops::Range<usize>; 2] = [1..4, 17..20];

// === impl MessageForm ===

impl MessageForm {
    pub(crate) const ALL: [Self; 3] = [Self::Buffers, Self::Programs, Self::Ring];

    /// The size of a message.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Buffers => 112,
            Self::Programs => 128,
            Self::Ring => 144,
        }
    }
}

// === impl Field ===

impl Field {
    const fn of(name: &'static str, bytes: usize, at: [Option<usize>; 3]) -> Self {
        Self { name, bytes, at }
    }

    /// A field that is at the same place in all forms.
    const fn in_all(name: &'static str, bytes: usize, at: usize) -> Self {
        Self::of(name, bytes, [Some(at); 3])
    }

    /// A field that two sums were put before.
    const fn moved(name: &'static str, bytes: usize, at: usize) -> Self {
        Self::of(name, bytes, [Some(at), Some(at + 16), Some(at + 16)])
    }

    /// The bytes of this field in a form that has it.
    fn range(&self, form: MessageForm) -> Option<std::ops::Range<usize>> {
        self.at[form as usize].map(|at| at..at + self.bytes)
    }

    /// The field as `N` bytes of a message whose first [`ANSWERS_FROM`] bytes are there.
    fn read<const N: usize>(&self, message: &[u8]) -> [u8; N] {
        let range = self.range(MessageForm::Buffers).and_then(|range| message.get(range));
        let bytes = range.and_then(|bytes| bytes.try_into().ok());
        bytes.expect("requests have these fields, of these sizes, in all forms")
    }
}

// === impl Verb ===

impl Verb {
    pub(crate) const ALL: [Self; 10] = [
        Self::Alloc,
        Self::Free,
        Self::Query,
        Self::DumpRemaining,
        Self::DeviceInfo,
        Self::CbAlloc,
        Self::CbFree,
        Self::KernelLoad,
        Self::KernelUnload,
        Self::DumpKernels,
    ];

    /// The number in the type field.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Alloc => 1,
            Self::Free => 2,
            Self::Query => 3,
            Self::DumpRemaining => 5,
            Self::DeviceInfo => 6,
            Self::CbAlloc => 8,
            Self::CbFree => 9,
            Self::KernelLoad => 10,
            Self::KernelUnload => 11,
            Self::DumpKernels => 12,
        }
    }

    /// The name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Query => "query",
            Self::DumpRemaining => "dump_remaining",
            Self::DeviceInfo => "device_info_query",
            Self::CbAlloc => "cb_alloc",
            Self::CbFree => "cb_free",
            Self::KernelLoad => "kernel_load",
            Self::KernelUnload => "kernel_unload",
            Self::DumpKernels => "dump_kernels",
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.code() == code)
    }
}

// === impl Request ===

impl Request {
    /// Whether `bytes`, a message of a form or its beginning, can be a request's.
    pub(crate) fn is_possible(bytes: &[u8]) -> bool {
        let zero = |range: std::ops::Range<usize>| {
            let end = range.end.min(bytes.len());
            bytes.get(range.start..end).is_none_or(|part| part.iter().all(|byte| *byte == 0))
        };
        bytes.first().is_none_or(|code| Verb::of_code(*code).is_some())
            && PADDING.into_iter().all(zero)
            && zero(ANSWERS_FROM..MessageForm::Ring.bytes())
    }

    /// A whole message that [`Self::is_possible`]; none for another.
    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        if message.len() < MessageForm::Buffers.bytes() || !Self::is_possible(message) {
            return None;
        }
        let [code] = TYPE.read(message);
        let [buffer_type] = BUFFER_TYPE.read(message);
        Some(Self {
            verb: Verb::of_code(code)?,
            device: i32::from_le_bytes(DEVICE.read(message)),
            size: u64::from_le_bytes(SIZE.read(message)),
            buffer_type,
            process: i32::from_le_bytes(PROCESS.read(message)),
            buffer: u64::from_le_bytes(BUFFER.read(message)),
        })
    }

    /// The kind of memory that an allocation, a circular buffer or a kernel is; none for a number
    /// that has no meaning, and for other requests.
    ///
    /// A buffer's numbers are those of tt-metal's `BufferType`, which clients send and the
    /// server's handlers count by. The comment beside the field in the server numbers L1_SMALL 2
    /// and TRACE 3; no client does.
    pub(crate) fn kind(&self) -> Option<MemoryKind> {
        let kinds: &[MemoryKind] = match self.verb {
            Verb::Alloc => &BUFFERS,
            Verb::CbAlloc => &[MemoryKind::Cb],
            Verb::KernelLoad => &KERNELS,
            _ => &[],
        };
        // A circular buffer has no type of its own; the field holds whatever the client left.
        let place = if self.verb == Verb::CbAlloc { 0 } else { usize::from(self.buffer_type) };
        kinds.get(place).copied()
    }

    /// The possible kinds of what is freed: the request does not say which.
    pub(crate) fn freed_kinds(&self) -> &'static [MemoryKind] {
        match self.verb {
            Verb::Free => &BUFFERS,
            Verb::CbFree => &[MemoryKind::Cb],
            Verb::KernelUnload => &KERNELS,
            _ => &[],
        }
    }
}

/// Buffers, by number.
const BUFFERS: [MemoryKind; 5] = [
    MemoryKind::Dram,
    MemoryKind::L1,
    MemoryKind::SystemMemory,
    MemoryKind::L1Small,
    MemoryKind::Trace,
];

/// Kernels, by number.
const KERNELS: [MemoryKind; 3] =
    [MemoryKind::KernelApplication, MemoryKind::KernelFabric, MemoryKind::KernelDispatch];

// === impl LegacyAnswer ===

impl LegacyAnswer {
    /// The message in the asker's form. A number that is too large for its field is the largest
    /// that has room there.
    pub(crate) fn encode(&self, form: MessageForm) -> Vec<u8> {
        let mut message = vec![0; form.bytes()];
        let device = u64::from(u32::from_le_bytes(self.device.to_le_bytes()));
        let head = [(&TYPE, u64::from(self.code)), (&DEVICE, device)];
        for (field, value) in head.iter().chain(&self.fields) {
            let Some(range) = field.range(form) else { continue };
            let most = u64::MAX >> (64 - 8 * field.bytes);
            let bytes = (*value).min(most).to_le_bytes();
            message[range].copy_from_slice(&bytes[..field.bytes]);
        }
        message
    }
}

#[cfg(test)]
mod tests;
