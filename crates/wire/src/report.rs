//! What an endpoint reports about its process.

mod decode;
mod encode;
mod limited;

pub(crate) use limited::LIMITS;

use telltale_schema::chip::{ChipFacts, ChipIdentity};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemorySpace;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{KindUsage, MetricSample, RecordingFaults};

/// An answer that was made. Parts that were not asked for are absent or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Who answers, as it says itself: a claim until the kernel confirms the pid.
    pub identity: ProcessIdentity,
    /// The process's short name.
    pub name: String,
    /// The runtime's name and version.
    pub runtime: String,
    /// When recording began.
    pub started_at: Option<Timestamp>,
    /// Nanoseconds since recording began, on a clock that is never set back.
    pub uptime_ns: Option<u64>,
    /// The devices asked for.
    pub devices: Vec<DeviceReport>,
    /// What went wrong in recording.
    pub faults: RecordingFaults,
    /// Compiled programs, where the runtime reported them.
    pub programs: Option<Programs>,
    /// Compiled kernels, where the runtime reported them.
    pub kernel_cache: Option<KernelCache>,
    /// Metrics that describe themselves.
    pub metrics: Vec<MetricSample>,
    /// Metrics that the answer had no room for.
    pub metrics_omitted: u64,
    /// The ledger's descriptor came with the first byte of the answer.
    pub ledger_follows: bool,
}

/// One device and what the process did with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceReport {
    /// The chip.
    pub chip: ChipIdentity,
    /// The runtime's own number for it.
    pub logical_id: Option<u32>,
    /// Its capacities, as the runtime knows them.
    pub facts: Option<ChipFacts>,
    /// Memory by kind, for kinds with any.
    pub kinds: Vec<KindUsage>,
    /// Kinds whose codes this version does not know.
    pub unknown_kinds: u64,
    /// The ring buffer in L1 that holds kernels.
    pub ring_buffer: Option<RingBuffer>,
    /// Operations executed since the device was opened.
    pub operations: Option<u64>,
    /// Bytes moved by the runtime.
    pub traffic: Option<Traffic>,
    /// Limits on memory.
    pub quotas: Vec<Quota>,
    /// Throttling as the runtime sees it.
    pub throttling: Option<Throttling>,
    /// The process also keeps the totals of a tt-metal region for this chip.
    pub mirrored: bool,
    /// The process also keeps a row of its own there.
    pub mirrored_row: bool,
}

/// Compiled programs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Programs {
    /// Programs in the cache.
    pub cached: u64,
    /// Names of those loaded on a device.
    pub loaded: Vec<String>,
    /// Loaded programs whose names were left out.
    pub loaded_omitted: u64,
    /// Look-ups that found their program.
    pub hits: Option<u64>,
    /// Look-ups that did not.
    pub misses: Option<u64>,
}

/// Compiled kernels kept for reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelCache {
    /// Their bytes.
    pub bytes: u64,
    /// Kernels pushed out so far.
    pub evictions: Option<u64>,
}

/// The ring buffer in L1 that holds kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingBuffer {
    /// Its size.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Programs in it.
    pub programs: u64,
}

/// Bytes moved between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// From the host to the device.
    pub host_to_device_bytes: u64,
    /// From the device to the host.
    pub device_to_host_bytes: u64,
}

/// A limit on memory that the process was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// What is limited.
    pub space: MemorySpace,
    /// Bytes that may be live at once.
    pub limit_bytes: u64,
}

/// Throttling of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttling {
    /// The device is being held back now.
    pub active: bool,
    /// Times it began.
    pub events: u64,
}
