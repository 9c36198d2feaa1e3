//! What a caller says of a device, checked.

use telltale_runtime::{ChipFacts, DeviceDescription};
use telltale_schema::chip::{
    Architecture, AsicId, BoardId, BoardType, ChipIdentity, FactSource, GalaxyPosition, PciAddress,
};
use telltale_schema::memory::{MemoryKind, MemorySpace};

use crate::abi::DeviceStruct;
use crate::status::Wrong;

const KNOWN_DRIVER_ORDINAL: u32 = 1;
const KNOWN_PCI: u32 = 2;
const KNOWN_ASIC_ID: u32 = 4;
const KNOWN_BOARD_ID: u32 = 8;
const KNOWN_GALAXY: u32 = 16;
const KNOWN_FACTS: u32 = 32;
const KNOWN_ALL: u32 = 63;

/// The kind that a number of `telltale_memory_kind_e` stands for.
pub(crate) fn memory_kind(kind: u32) -> Result<MemoryKind, Wrong> {
    u16::try_from(kind).ok().and_then(MemoryKind::from_code).ok_or(Wrong::Invalid)
}

/// The space that a number of `telltale_memory_space_e` stands for.
pub(crate) fn memory_space(space: u32) -> Result<MemorySpace, Wrong> {
    match space {
        0 => Ok(MemorySpace::Dram),
        1 => Ok(MemorySpace::L1),
        2 => Ok(MemorySpace::Host),
        _ => Err(Wrong::Invalid),
    }
}

/// The device that a structure describes.
pub(crate) fn description(device: &DeviceStruct) -> Result<DeviceDescription, Wrong> {
    let known = |flag| device.known & flag != 0;
    if device.known & !KNOWN_ALL != 0 {
        return Err(Wrong::Invalid);
    }
    let pci = PciAddress {
        domain: device.pci_domain,
        bus: device.pci_bus,
        device: device.pci_device,
        function: device.pci_function,
    };
    let galaxy = GalaxyPosition { tray: device.galaxy_tray, nibble: device.galaxy_nibble };
    let impossible_pci = pci.device > 0x1F || pci.function > 7;
    let impossible_place = !(1..=4).contains(&galaxy.tray) || !(1..=8).contains(&galaxy.nibble);
    if known(KNOWN_PCI) && impossible_pci || known(KNOWN_GALAXY) && impossible_place {
        return Err(Wrong::Invalid);
    }
    let board_id = known(KNOWN_BOARD_ID).then_some(BoardId(device.board_id));
    let identity = ChipIdentity {
        driver_ordinal: known(KNOWN_DRIVER_ORDINAL).then_some(device.driver_ordinal),
        pci: known(KNOWN_PCI).then_some(pci),
        asic_id: known(KNOWN_ASIC_ID).then_some(AsicId(device.asic_id)),
        board_id,
        board_type: board_id.map_or(BoardType::Unknown, BoardId::board_type),
        location: device.location,
        galaxy: known(KNOWN_GALAXY).then_some(galaxy),
        remote: device.remote != 0,
    };
    let facts = match known(KNOWN_FACTS) {
        true => Some(facts(device)?),
        false => None,
    };
    Ok(DeviceDescription { identity, logical_id: device.logical_id, facts })
}

fn facts(device: &DeviceStruct) -> Result<ChipFacts, Wrong> {
    let architecture = match device.architecture {
        0 => Architecture::Grayskull,
        1 => Architecture::WormholeB0,
        2 => Architecture::Blackhole,
        _ => return Err(Wrong::Invalid),
    };
    let l1_bytes = device.l1_per_core_bytes.checked_mul(device.worker_cores.into());
    if device.dram_capacity_bytes == 0 || l1_bytes.is_none_or(|bytes| bytes == 0) {
        return Err(Wrong::Invalid);
    }
    Ok(ChipFacts {
        architecture,
        dram_capacity_bytes: device.dram_capacity_bytes,
        dram_channels: device.dram_channels,
        l1_per_core_bytes: device.l1_per_core_bytes,
        worker_cores: device.worker_cores,
        grid: (device.grid_columns, device.grid_rows),
        source: FactSource::Ledger,
    })
}
