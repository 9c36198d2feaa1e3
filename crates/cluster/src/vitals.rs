//! How a node is: processors, memory, processes, and the health of its accelerators and of the machine.
//!
//! It travels with a report and goes into no verdict. A failed health alone goes into decisions.

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
    /// Its health, where a node service reports it.
    pub health: NodeHealth,
}

/// The health of a node. Nothing is known where no node service reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeHealth {
    /// Its accelerators; [`MAX_DEVICES`] at most.
    pub devices: Vec<PartHealth>,
    /// The most severe of what is wrong with the machine around them.
    pub host: Option<PartHealth>,
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

/// The health of an accelerator, or of another part of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartHealth {
    /// What the node service calls it; at most 128 bytes.
    pub part: String,
    /// How it is.
    pub state: HealthState,
    /// The rule that found what is wrong (`health.toml`); empty for nothing, and for what no rule found. At most
    /// 128 bytes.
    pub rule: String,
    /// What is wrong with it, in at most 512 bytes; empty for nothing.
    pub reason: String,
}

/// How a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HealthState {
    /// Nothing of it can be read, or its node does not report it.
    #[default]
    Unknown,
    /// Nothing is known to be wrong.
    Ok,
    /// It works, and a person should look at it. An agent that reports no states has this for all that is wrong.
    Warning,
    /// It does not work.
    Failed,
}

/// Why the health of a node has failed: the first of its parts that does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFault {
    /// The part; see [`PartHealth::part`].
    pub part: String,
    /// See [`PartHealth::rule`].
    pub rule: String,
    /// See [`PartHealth::reason`].
    pub reason: String,
}

impl NodeHealth {
    /// Why it has failed, if it has.
    #[must_use]
    pub fn failed(&self) -> Option<NodeFault> {
        let mut parts = self.devices.iter().chain(&self.host);
        let failed = parts.find(|one| one.state == HealthState::Failed)?;
        let PartHealth { part, rule, reason, .. } = failed.clone();
        Some(NodeFault { part, rule, reason })
    }
}
