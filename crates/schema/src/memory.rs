//! Kinds of device memory, the spaces they live in, and what is counted for each.

use serde::{Deserialize, Serialize};

/// What an allocation is for. The discriminants are the codes in ledgers and on the wire: they
/// are never reused, new kinds are added at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[repr(u16)]
pub enum MemoryKind {
    /// Buffers in the device's DRAM banks.
    Dram = 0,
    /// Buffers in the L1 of worker cores.
    L1 = 1,
    /// Buffers in the region of L1 reserved for small ones.
    L1Small = 2,
    /// Recorded command traces, in DRAM.
    Trace = 3,
    /// Circular buffers in L1 that the program allocated itself.
    Cb = 4,
    /// Application kernels' code in L1.
    KernelApplication = 5,
    /// Code of kernels that move data between chips, in L1.
    KernelFabric = 6,
    /// Code of kernels that dispatch commands, in L1.
    KernelDispatch = 7,
    /// Host memory that a device reads or writes.
    SystemMemory = 8,
}

/// The physical memory a kind lives in. Addresses are unique within one device and space only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemorySpace {
    /// The chip's DRAM.
    Dram,
    /// The L1 of its cores, added up.
    L1,
    /// The host's memory.
    Host,
}

impl MemoryKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Dram,
        Self::L1,
        Self::L1Small,
        Self::Trace,
        Self::Cb,
        Self::KernelApplication,
        Self::KernelFabric,
        Self::KernelDispatch,
        Self::SystemMemory,
    ];

    /// The number that stands for this kind in ledgers and messages.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The kind with this code; none for a code that a newer version may know.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in JSON, labels and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::L1 => "l1",
            Self::L1Small => "l1_small",
            Self::Trace => "trace",
            Self::Cb => "cb",
            Self::KernelApplication => "kernel_application",
            Self::KernelFabric => "kernel_fabric",
            Self::KernelDispatch => "kernel_dispatch",
            Self::SystemMemory => "system_memory",
        }
    }

    /// Where memory of this kind lives.
    pub const fn space(self) -> MemorySpace {
        match self {
            Self::Dram | Self::Trace => MemorySpace::Dram,
            Self::SystemMemory => MemorySpace::Host,
            _ => MemorySpace::L1,
        }
    }
}

impl MemorySpace {
    /// All spaces.
    pub const ALL: [Self; 3] = [Self::Dram, Self::L1, Self::Host];

    /// The name in JSON, labels and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::L1 => "l1",
            Self::Host => "host",
        }
    }
}

/// What one process has recorded for one device and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryUsage {
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Buffers allocated and not freed.
    pub live_buffers: u64,
    /// The highest `live_bytes` since the process started recording. Exact while one thread
    /// records; with several, within 64 KiB for each of them (see docs/ledger.md).
    pub peak_bytes: u64,
    /// Allocations recorded, freed ones included.
    pub allocations: u64,
    /// Bytes of these allocations.
    pub allocated_bytes: u64,
    /// Allocations that the runtime's allocator refused.
    pub failed_allocations: u64,
}

#[cfg(test)]
mod tests {
    use super::{MemoryKind, MemorySpace};

    #[test]
    fn codes_names_and_json_agree() {
        for (code, kind) in (0u16..).zip(MemoryKind::ALL) {
            assert_eq!(kind.code(), code);
            assert_eq!(MemoryKind::from_code(code), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.name()));
        }
        assert_eq!(MemoryKind::from_code(9), None);
        for space in MemorySpace::ALL {
            assert_eq!(serde_json::to_string(&space).unwrap(), format!("\"{}\"", space.name()));
        }
    }
}
