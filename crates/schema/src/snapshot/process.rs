//! A process in a snapshot.

use serde::{Deserialize, Serialize};

use crate::memory::{MemoryKind, MemorySpace, MemoryUsage};
use crate::process::ProcessIdentity;
use crate::reading::Reading;

/// One process that holds a device or has recorded memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Who it is, where we could find out.
    pub identity: Option<ProcessIdentity>,
    /// Its pid in our PID namespace; none when it is not visible from here.
    pub pid: Option<u32>,
    /// Its pid in its own innermost namespace, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_pid: Option<u32>,
    /// Its short name.
    pub name: String,
    /// Its command line, arguments separated by spaces, unprintable bytes escaped.
    pub command: Reading<String>,
    /// Its real user id.
    pub uid: Reading<u32>,
    /// That user's name.
    pub user: Reading<String>,
    /// The container it runs in, if it does.
    pub container: Option<Container>,
    /// Whether it lives.
    pub state: ProcessState,
    /// Where its memory figures come from; the first of these that knew it.
    pub known_by: Option<ProcessSource>,
    /// Seconds since its runtime started recording.
    pub uptime_seconds: Reading<f64>,
    /// The devices it holds and what it has recorded there.
    pub devices: Vec<HeldDevice>,
    /// What went wrong in recording, as its runtime counted it.
    pub faults: RecordingFaults,
    /// Whatever else its endpoint reports.
    pub metrics: Vec<MetricSample>,
}

/// Where a process's memory figures come from, in the order of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessSource {
    /// Its own ledger.
    Ledger,
    /// Its endpoint, without a ledger at hand.
    Endpoint,
    /// A row in a foreign tt-metal region.
    Region,
}

impl ProcessSource {
    /// The words a person reads.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ledger => "its ledger",
            Self::Endpoint => "its endpoint",
            Self::Region => "a row in a tt-metal region",
        }
    }
}

impl ProcessState {
    /// The name in JSON, labels and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Hidden => "hidden",
        }
    }
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It lives.
    Alive,
    /// It ended; its last known figures are shown and are in no total.
    Dead,
    /// It cannot be seen from our PID namespace.
    Hidden,
}

/// A container, as told by the process's cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The container's id.
    pub id: String,
    /// The engine: `docker`, `containerd`, `cri-o`, `podman`.
    pub engine: String,
    /// The Kubernetes pod's uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
}

/// A device that a process holds or has recorded memory for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HeldDevice {
    /// The device's place in [`super::Snapshot::devices`].
    pub device: usize,
    /// How many descriptors of it the driver says the process has open.
    pub open_descriptors: u32,
    /// What the process recorded, by kind, for kinds with any.
    pub kinds: Vec<KindUsage>,
    /// The same by space, for spaces with any; see [`Self::add_up`].
    #[serde(default)]
    pub spaces: Vec<HeldSpace>,
    /// Buffers of all kinds.
    #[serde(default)]
    pub live_buffers: u64,
}

/// What one process has in one memory space of a device: its kinds of that space, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSpace {
    /// The space.
    pub space: MemorySpace,
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Buffers allocated and not freed.
    pub live_buffers: u64,
}

impl HeldDevice {
    /// Fills in the sums from the kinds. A sum that does not fit stays at the largest number: the
    /// figures come from other processes, which may write what they like.
    pub fn add_up(&mut self) {
        self.live_buffers = 0;
        self.spaces.clear();
        for space in MemorySpace::ALL {
            let mut sum = HeldSpace { space, live_bytes: 0, live_buffers: 0 };
            let mut of_space = self.kinds.iter().filter(|one| one.kind.space() == space).peekable();
            if of_space.peek().is_none() {
                continue;
            }
            for KindUsage { usage, .. } in of_space {
                sum.live_bytes = sum.live_bytes.saturating_add(usage.live_bytes);
                sum.live_buffers = sum.live_buffers.saturating_add(usage.live_buffers);
            }
            self.live_buffers = self.live_buffers.saturating_add(sum.live_buffers);
            self.spaces.push(sum);
        }
    }

    /// Bytes that the process has in `space`; none there counts as 0.
    pub fn live_bytes(&self, space: MemorySpace) -> u64 {
        let found = self.spaces.iter().find(|held| held.space == space);
        found.map_or(0, |held| held.live_bytes)
    }
}

/// What one process recorded for one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindUsage {
    /// The kind.
    pub kind: MemoryKind,
    /// Its figures.
    #[serde(flatten)]
    pub usage: MemoryUsage,
}

/// What went wrong in one process's recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordingFaults {
    /// Frees of an address that was freed before and not allocated again.
    pub double_frees: u64,
    /// Frees of an address that was never recorded.
    pub unknown_frees: u64,
    /// Allocations at an address that was still live; the old one was counted as freed.
    pub reused_live_addresses: u64,
    /// Events that could not be recorded for want of room.
    pub unrecorded_events: u64,
}

/// One value of a metric that a process describes itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// The metric's name.
    pub name: String,
    /// What it means.
    pub help: String,
    /// Its unit, as the process names it; empty for none.
    pub unit: String,
    /// Labels and their values.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: MetricValue,
}

/// A value of a self-described metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricValue {
    /// A count that only grows.
    Counter(u64),
    /// A value that goes up and down.
    Gauge(f64),
    /// Counts of observations not above each bound, the last bound being infinite.
    Histogram {
        /// Upper bounds, ascending; the infinite one is left out.
        bounds: Vec<f64>,
        /// Observations in each bucket, one more than bounds; not cumulative.
        counts: Vec<u64>,
        /// The sum of all observations.
        sum: f64,
    },
}

impl MetricValue {
    /// Observations in all buckets of a histogram, at most the largest number; 0 for other values.
    pub fn observations(&self) -> u64 {
        match self {
            Self::Counter(_) | Self::Gauge(_) => 0,
            Self::Histogram { counts, .. } => counts.iter().copied().fold(0, u64::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HeldDevice, KindUsage};
    use crate::memory::{MemoryKind, MemorySpace, MemoryUsage};

    fn held(kinds: &[(MemoryKind, u64, u64)]) -> HeldDevice {
        let usage = |(kind, live_bytes, live_buffers)| KindUsage {
            kind,
            usage: MemoryUsage { live_bytes, live_buffers, ..MemoryUsage::default() },
        };
        let kinds = kinds.iter().copied().map(usage).collect();
        let mut held = HeldDevice { kinds, ..HeldDevice::default() };
        held.add_up();
        // Once more changes nothing.
        held.add_up();
        held
    }

    #[test]
    fn kinds_add_up_by_space_and_hostile_ones_stop_at_the_largest_number() {
        let plain =
            held(&[(MemoryKind::Dram, 10, 1), (MemoryKind::Trace, 5, 2), (MemoryKind::Cb, 7, 4)]);
        let sums = |held: &HeldDevice| MemorySpace::ALL.map(|space| held.live_bytes(space));
        assert_eq!((sums(&plain), plain.live_buffers, plain.spaces.len()), ([15, 7, 0], 7, 2));
        let (most, half) = (u64::MAX, u64::MAX / 2 + 1);
        let hostile = held(&[
            (MemoryKind::Dram, most, half),
            (MemoryKind::Trace, 1, 0),
            (MemoryKind::L1, 2, most),
        ]);
        assert_eq!((sums(&hostile), hostile.live_buffers), ([most, 2, 0], most));
        assert_eq!(held(&[]), HeldDevice::default());
    }
}
