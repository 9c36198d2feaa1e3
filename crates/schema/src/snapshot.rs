//! A snapshot: everything known about one machine at one moment, immutable once published.
//!
//! Per device and kind the parts add up: processes + unattributed + ghost = total. `node` makes
//! snapshots; code that shows one computes nothing from it but its presentation.

mod container;
mod device;
mod errors;
mod fitness;
mod held;
mod holders;
mod left_out;
mod link;
mod nvlink;
mod power;
mod process;
mod programs;
mod usage;

pub use container::{AllocatedDevices, Container, Pod};
pub use device::{
    Device, Holder, KindMemory, Load, MemoryCounts, PcieTraffic, SpaceUsage, Telemetry,
    TrafficDirection,
};
pub use errors::DeviceErrors;
pub use fitness::{MAX_DEVICES, MAX_PART_FAULTS, MAX_PROCESSES, UnfitSnapshot};
pub use held::{Accounting, HeldDevice, HeldKind, HeldSpace, HeldUsage, KindUsage};
pub use holders::Holders;
pub use left_out::LeftOut;
pub use link::{LinkState, PcieLink};
pub use nvlink::NvLinks;
pub use power::Power;
pub use process::{
    MetricSample, MetricValue, Process, ProcessSource, ProcessState, RecordingFaults,
};
pub use programs::ProgramUse;
pub use usage::{HostUsage, ProcessUsage};

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::fault::{Fault, known_faults};
use crate::reading::Absence;

/// The version of the JSON shape below. It grows when a field changes its meaning or goes away;
/// new fields come without. What older versions wrote lacks a new field, so it is a
/// [`crate::reading::Reading`], an `Option`, or has a default; a test of `wire` leaves out each.
pub const SCHEMA_VERSION: u32 = 1;

/// One machine at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// When collecting began.
    pub taken_at: Timestamp,
    /// How long collecting took.
    pub collected_in_ns: u64,
    /// Devices in a stable order: by PCI address (those of a Galaxy by tray and place), a remote
    /// chip after its gateway, then other vendors', then those that only ledgers or regions name.
    pub devices: Vec<Device>,
    /// Processes that hold a device or recorded memory, by pid and start time.
    pub processes: Vec<Process>,
    /// Processes of other users whose ledgers and endpoints we may not open, as far as their files'
    /// names show: they are not counted. No source fails on that account.
    #[serde(default)]
    pub closed_processes: u64,
    /// Processes that were left out because this snapshot's client may not see them:
    /// they are in the devices' values all the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub withheld_processes: u64,
    /// What a filter left out; none where nothing was filtered. Values of devices are not only of
    /// the rows that are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// What all processes take of the host; none where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<HostUsage>>,
    /// What is wrong with parts of the machine and with sources; empty when nothing is known to be.
    #[serde(default, deserialize_with = "known_faults", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// Each source that was asked, and how it went.
    pub sources: Vec<SourceStatus>,
}

impl Snapshot {
    /// One without a device, a process or a source.
    pub const fn empty(taken_at: Timestamp) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            taken_at,
            collected_in_ns: 0,
            devices: Vec::new(),
            processes: Vec::new(),
            closed_processes: 0,
            withheld_processes: 0,
            left_out: None,
            host: None,
            faults: Vec::new(),
            sources: Vec::new(),
        }
    }
}

/// How one source did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SourceStatus {
    /// The source: `tenstorrent`, `drm`, `neuron`, `nvidia` and `host` where they have something,
    /// `ledgers`, `endpoints`, `regions`, `processes`, on a node of Kubernetes `pods` and `kubelet`,
    /// and `parts` (fans, network interfaces and the like) where these could not be read.
    pub name: String,
    /// How long it took.
    pub duration_ns: u64,
    /// What went wrong, one entry each; empty when all went well. "Not there" is not an error.
    pub errors: Vec<SourceError>,
    /// Errors beyond the number that is kept.
    pub errors_dropped: u64,
    /// What it noticed and is no failure of its own, such as what other users left in a directory
    /// that all may write to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SourceNote>,
}

/// Something that a source noticed, one or more of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SourceNote {
    /// Whose or where: a user, a path.
    pub subject: String,
    /// How many there are.
    pub count: u64,
    /// What, and the first of them, for a person.
    pub detail: String,
}

/// One thing that a source could not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SourceError {
    /// What was being read: a path, a socket, a device.
    pub subject: String,
    /// Why it could not be.
    pub reason: Absence,
    /// The cause and the remedy, for a person.
    pub detail: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Snapshot {
    /// Whether some source failed in part.
    pub fn has_errors(&self) -> bool {
        self.sources.iter().any(|source| !source.errors.is_empty())
    }
}
