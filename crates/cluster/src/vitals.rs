//! How a node is, for people to see: processors, memory, processes, accelerators.
//!
//! It travels with a report and goes into no verdict and no decision.

use crate::rank::Rank;

/// Accelerators that one node may report.
pub const MAX_DEVICES: usize = telltale_wire::limits::cluster::MAX_DEVICES;

/// How a node is. What is `None` is not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vitals {
    /// How busy its processors were since the last report, 0 to 1.
    pub processors_busy_ratio: Option<f64>,
    /// Memory that is in use.
    pub memory_used_bytes: Option<u64>,
    /// Memory that it has.
    pub memory_total_bytes: Option<u64>,
    /// Its workers' processes; [`crate::rank::MAX_WORKERS`] at most.
    pub processes: Vec<WorkerProcess>,
    /// Its accelerators, where a node service reports them; [`MAX_DEVICES`] at most.
    pub devices: Vec<DeviceHealth>,
}

/// One worker's process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkerProcess {
    /// Whose.
    pub rank: Rank,
    /// Its number on its node.
    pub process_id: Option<u32>,
    /// Processor time since the last report, in processors.
    pub processors: Option<f64>,
    /// Memory that is resident.
    pub resident_bytes: Option<u64>,
}

/// One accelerator of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceHealth {
    /// What the node service calls it; at most 128 bytes.
    pub device: String,
    /// What is wrong with it, in at most 512 bytes; `None` for nothing.
    pub fault: Option<String>,
}
