//! What a runtime says of a device: what it is.

use telltale_ledger::{DeviceEntry, RegionMirror};
use telltale_schema::chip::{ChipFacts, ChipIdentity};

/// Devices that one runtime can open in its life; the same one again counts once.
pub const MAX_DEVICES: usize = telltale_wire::limits::MAX_DEVICES;

/// What a runtime knows of a device when it opens it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceDescription {
    /// Who the chip is. The more of it is known, the surer a reader can distinguish it from others; any of
    /// ASIC id, PCI address, board id with location and driver's number will do.
    pub identity: ChipIdentity,
    /// The runtime's own number for it. Where nothing else is known, the device is `unknown:N`.
    pub logical_id: u32,
    /// Its capacities, where the runtime knows them.
    pub facts: Option<ChipFacts>,
}

// === impl DeviceDescription ===

impl DeviceDescription {
    /// Whether both are one device to a ledger. Such descriptions must be one device here too: what
    /// closing one of two gives back would be the other one's.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other || self.entry(RegionMirror::None) == other.entry(RegionMirror::None)
    }

    pub(crate) fn entry(&self, mirror: RegionMirror) -> DeviceEntry {
        let facts = self.facts.as_ref();
        DeviceEntry {
            identity: self.identity.clone(),
            logical_id: self.logical_id,
            architecture: facts.map(|facts| facts.architecture),
            dram_capacity_bytes: facts.map(|facts| facts.dram_capacity_bytes),
            l1_capacity_bytes: facts.map(ChipFacts::l1_capacity_bytes),
            dram_channels: facts.map(|facts| facts.dram_channels),
            worker_cores: facts.map(|facts| facts.worker_cores),
            mirror,
            is_host: false,
        }
    }
}
