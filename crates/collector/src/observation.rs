//! What was seen of processes and foreign regions, checked and copied, before it is reconciled.

use std::sync::Arc;

use telltale_ledger::RegionMirror;
use telltale_schema::chip::{ChipFacts, ChipIdentity};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{KindUsage, Process, ProcessSource, RecordingFaults};

/// One process whose identity was checked.
#[derive(Debug, Clone)]
pub struct ProcessObservation {
    /// Everything but its devices and where its memory is known from, which reconciliation adds.
    pub process: Process,
    /// What it says of its memory, by ledger or endpoint.
    pub memory: Option<MemoryClaim>,
    /// The devices that samples of its metrics are about, each labelled with
    /// [`Described::name`] until reconciliation finds the device.
    pub measured: Arc<[Described]>,
}

/// How a process describes a device that it has open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Described {
    /// What it says of the chip: any of its fields, or none.
    pub chip: ChipIdentity,
    /// The process's own number for it.
    pub logical_id: Option<u32>,
}

/// What a process says of its memory.
#[derive(Debug, Clone)]
pub struct MemoryClaim {
    /// Where it says so.
    pub source: ProcessSource,
    /// Device by device.
    pub devices: Vec<DeviceClaim>,
}

/// What a process says of one device.
#[derive(Debug, Clone, Default)]
pub struct DeviceClaim {
    /// Which device.
    pub device: Described,
    /// It is no chip but the machine's own memory.
    pub is_host: bool,
    /// Its facts, where the process knows them all.
    pub facts: Option<ChipFacts>,
    /// The chip's DRAM, as the process knows it.
    pub dram_capacity_bytes: Option<u64>,
    /// The L1 of all its cores, as the process knows it.
    pub l1_capacity_bytes: Option<u64>,
    /// How the process is in a region for this chip, too.
    pub mirror: RegionMirror,
    /// What it recorded, by kind.
    pub kinds: Vec<KindUsage>,
}

impl DeviceClaim {
    /// Adds what the process says elsewhere of the same device.
    pub(crate) fn add(&mut self, more: Self) {
        let Self { facts, dram_capacity_bytes, l1_capacity_bytes, mirror, kinds, .. } = more;
        self.facts = self.facts.or(facts);
        self.dram_capacity_bytes = agreed(self.dram_capacity_bytes, dram_capacity_bytes);
        self.l1_capacity_bytes = agreed(self.l1_capacity_bytes, l1_capacity_bytes);
        if self.mirror == RegionMirror::None {
            self.mirror = mirror;
        }
        self.kinds.extend(kinds);
    }
}

/// What two descriptions of one device say; nothing where they contradict each other.
fn agreed(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        _ => one.or(other),
    }
}

/// What a process says by the allocation server's protocol. It is believed where nothing better
/// speaks for the process.
#[derive(Debug, Clone)]
pub struct LegacyObservation {
    /// Its place among the observed processes.
    pub process: usize,
    /// Device by device.
    pub devices: Vec<DeviceClaim>,
    /// What went wrong in what it reported.
    pub faults: RecordingFaults,
}

/// A tt-metal region: one for each file, even when two are about one chip.
#[derive(Debug, Clone, Default)]
pub struct RegionObservation {
    /// The number in the file's name.
    pub name_id: u64,
    /// The user whose file it is.
    pub owner_uid: Option<u32>,
    /// The board part of that number, in version 1.
    pub board_serial: Option<u64>,
    /// How many processes are in it, by its own count.
    pub references: u32,
    /// Totals by kind; all kernels are under [`MemoryKind::KernelApplication`].
    pub totals: Vec<(MemoryKind, u64)>,
    /// Its process rows.
    pub rows: Vec<RowObservation>,
}

/// One process row of a region.
#[derive(Debug, Clone)]
pub struct RowObservation {
    /// The pid in it, of whatever PID namespace its writer lives in.
    pub pid: u32,
    /// The name in it.
    pub name: String,
    /// Bytes by kind, as in the totals.
    pub kinds: Vec<(MemoryKind, u64)>,
    /// Whose it is.
    pub owner: RowOwner,
}

/// Whose row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOwner {
    /// The process at this place of the observed ones.
    Observed(usize),
    /// Someone whom we cannot see.
    Hidden,
    /// No process any more.
    NoProcess,
}

// === impl ProcessObservation ===

impl ProcessObservation {
    /// A process that says nothing of any device.
    pub fn bare(process: Process) -> Self {
        Self { process, memory: None, measured: Arc::default() }
    }
}

// === impl Described ===

impl Described {
    /// Whether nothing is said that could distinguish the chip from others: at most the process's number.
    pub fn is_nameless(&self) -> bool {
        let ChipIdentity { driver_ordinal, pci, asic_id, board_id, galaxy, .. } = &self.chip;
        let asic_id = asic_id.filter(|asic| asic.0 != 0);
        (driver_ordinal, pci, asic_id, board_id, galaxy) == (&None, &None, None, &None, &None)
    }

    /// The name of a device that this description alone makes known.
    pub fn name(&self) -> String {
        match self.logical_id.filter(|_| self.is_nameless()) {
            Some(number) => format!("unknown:{number}"),
            None => self.chip.display_id(),
        }
    }
}

impl From<ChipIdentity> for Described {
    fn from(chip: ChipIdentity) -> Self {
        Self { chip, logical_id: None }
    }
}

#[cfg(test)]
mod tests {
    use super::agreed;

    #[test]
    fn what_two_descriptions_contradict_is_unknown() {
        let cases = [
            (Some(1), Some(1), Some(1)),
            (Some(1), None, Some(1)),
            (None, Some(2), Some(2)),
            (Some(1), Some(2), None),
            (None, None, None),
        ];
        for (one, other, expected) in cases {
            assert_eq!(agreed(one, other), expected, "{one:?} and {other:?}");
        }
    }
}
