//! What a ledger says of each device, and how it is laid out in an entry.
//!
//! No address in device memory is ever part of it.

use telltale_schema::chip::{
    Architecture, AsicId, BoardId, BoardType, ChipIdentity, GalaxyPosition, PciAddress,
};

use crate::layout::{DEVICE_BYTES, DEVICES_OFFSET, SHORTEST_DEVICE_BYTES, device as at, header};
use crate::mapping::Mapping;
use crate::sync::Ordering;

/// A device's place in its process's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceSlot(pub(crate) u16);

impl DeviceSlot {
    /// The index in [`crate::LedgerReading::devices`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What else a process keeps up to date for a device: a tt-metal region in `/dev/shm`. A reader
/// of both must not count the process twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RegionMirror {
    /// No region.
    #[default]
    None,
    /// The region's totals include the process, without a row of its own.
    Totals,
    /// The region's totals include the process and it has a row.
    TotalsAndRow,
}

/// One device as its process knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceEntry {
    /// Who the chip is.
    pub identity: ChipIdentity,
    /// The runtime's number for it.
    pub logical_id: u32,
    /// The chip generation, where the runtime said so.
    pub architecture: Option<Architecture>,
    /// DRAM of all enabled banks in bytes.
    pub dram_capacity_bytes: Option<u64>,
    /// L1 of all enabled worker cores in bytes.
    pub l1_capacity_bytes: Option<u64>,
    /// Enabled DRAM channels.
    pub dram_channels: Option<u32>,
    /// Enabled worker cores.
    pub worker_cores: Option<u32>,
    /// What else the process keeps for this device.
    pub mirror: RegionMirror,
    /// It is the machine itself and no chip: what the process has of the host's memory.
    pub is_host: bool,
}

const BOARD_TYPES: [(u8, BoardType); 7] = [
    (1, BoardType::N150),
    (2, BoardType::N300),
    (3, BoardType::GalaxyWormhole),
    (4, BoardType::P100),
    (5, BoardType::P150),
    (6, BoardType::P300),
    (7, BoardType::GalaxyBlackhole),
];

const ARCHITECTURES: [(u8, Architecture); 3] =
    [(1, Architecture::Grayskull), (2, Architecture::WormholeB0), (3, Architecture::Blackhole)];

fn code_of<T: PartialEq>(table: &[(u8, T)], wanted: Option<&T>) -> u8 {
    table.iter().find(|(_, value)| Some(value) == wanted).map_or(0, |(code, _)| *code)
}

fn of_code<T: Copy>(table: &[(u8, T)], wanted: u8) -> Option<T> {
    table.iter().find(|(code, _)| *code == wanted).map(|(_, value)| *value)
}

// === encoding ===

/// The entry as it is in the file, except for its tag.
pub(crate) fn encode(entry: &DeviceEntry) -> [u8; DEVICE_BYTES] {
    let mut bytes = [0; DEVICE_BYTES];
    let mut flags = 0;
    let identity = &entry.identity;
    let mut put = |offset: usize, flag: u64, value: Option<u64>, width: usize| {
        if let Some(value) = value {
            bytes[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
            flags |= flag;
        }
    };
    put(at::PCI, at::FLAG_PCI, identity.pci.map(PciAddress::to_bits), 8);
    put(at::ASIC_ID, at::FLAG_ASIC_ID, identity.asic_id.map(|id| id.0), 8);
    put(at::BOARD_ID, at::FLAG_BOARD_ID, identity.board_id.map(|id| id.0), 8);
    put(at::DRIVER_ORDINAL, at::FLAG_DRIVER_ORDINAL, identity.driver_ordinal.map(u64::from), 4);
    put(at::LOGICAL_ID, 0, Some(entry.logical_id.into()), 4);
    put(at::LOCATION, 0, Some(identity.location.into()), 1);
    let board_type = code_of(&BOARD_TYPES, Some(&identity.board_type));
    put(at::BOARD_TYPE, 0, Some(board_type.into()), 1);
    let architecture = code_of(&ARCHITECTURES, entry.architecture.as_ref());
    put(at::ARCHITECTURE, 0, Some(architecture.into()), 1);
    put(at::GALAXY_TRAY, at::FLAG_GALAXY, identity.galaxy.map(|at| at.tray.into()), 1);
    put(at::GALAXY_NIBBLE, at::FLAG_GALAXY, identity.galaxy.map(|at| at.nibble.into()), 1);
    put(at::DRAM_CAPACITY_BYTES, at::FLAG_DRAM_CAPACITY, entry.dram_capacity_bytes, 8);
    put(at::L1_CAPACITY_BYTES, at::FLAG_L1_CAPACITY, entry.l1_capacity_bytes, 8);
    put(at::DRAM_CHANNELS, at::FLAG_DRAM_CHANNELS, entry.dram_channels.map(u64::from), 4);
    put(at::WORKER_CORES, at::FLAG_WORKER_CORES, entry.worker_cores.map(u64::from), 4);
    if identity.remote {
        flags |= at::FLAG_REMOTE;
    }
    flags |= match entry.mirror {
        RegionMirror::None => 0,
        RegionMirror::Totals => at::FLAG_MIRRORED_TOTALS,
        RegionMirror::TotalsAndRow => at::FLAG_MIRRORED_TOTALS | at::FLAG_MIRRORED_ROW,
    };
    if entry.is_host {
        flags |= at::FLAG_HOST;
    }
    bytes[at::FLAGS..at::FLAGS + 8].copy_from_slice(&flags.to_le_bytes());
    bytes
}

/// Writes a new entry into the map, its tag last, and counts it. The caller holds the lock that
/// devices are added under, and the entry's page is reserved.
pub(crate) fn publish(mapping: &Mapping, slot: DeviceSlot, entry: &DeviceEntry) {
    let offset = DEVICES_OFFSET + slot.index() * DEVICE_BYTES;
    for (number, chunk) in encode(entry).chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(chunk.try_into().expect("a chunk of eight bytes"));
        mapping.word(offset + number * 8).store(word, Ordering::Relaxed);
    }
    // SYNC: device publication
    mapping.word(offset + at::TAG).store(at::READY, Ordering::Release);
    let count = u64::from(slot.0) + 1;
    // SYNC: device publication
    mapping.word(header::DEVICES_USED).store(count, Ordering::Release);
}

// === decoding ===

/// The device of an entry that may be shorter or longer than ours; none while it is not
/// published, or when it is too short to name a device.
pub(crate) fn decode(bytes: &[u8]) -> Option<DeviceEntry> {
    if bytes.len() < SHORTEST_DEVICE_BYTES || word(bytes, at::TAG) != at::READY {
        return None;
    }
    let flags = word(bytes, at::FLAGS);
    let present = |flag: u64, offset: usize, width: usize| {
        // A field beyond the end of an older, shorter entry is absent, whatever the flag says.
        (flags & flag != 0 && offset + width <= bytes.len()).then_some(offset)
    };
    let byte = |offset: usize| bytes.get(offset).copied().unwrap_or(0);
    let long = |flag, offset| present(flag, offset, 8).map(|offset| word(bytes, offset));
    let short = |flag, offset| present(flag, offset, 4).map(|offset| half_word(bytes, offset));
    let identity = ChipIdentity {
        driver_ordinal: short(at::FLAG_DRIVER_ORDINAL, at::DRIVER_ORDINAL),
        pci: long(at::FLAG_PCI, at::PCI).and_then(PciAddress::from_bits),
        asic_id: long(at::FLAG_ASIC_ID, at::ASIC_ID).map(AsicId),
        board_id: long(at::FLAG_BOARD_ID, at::BOARD_ID).map(BoardId),
        board_type: of_code(&BOARD_TYPES, byte(at::BOARD_TYPE)).unwrap_or_default(),
        location: byte(at::LOCATION),
        galaxy: present(at::FLAG_GALAXY, at::GALAXY_TRAY, 2)
            .map(|tray| GalaxyPosition { tray: byte(tray), nibble: byte(at::GALAXY_NIBBLE) }),
        remote: flags & at::FLAG_REMOTE != 0,
    };
    let mirror = match (flags & at::FLAG_MIRRORED_TOTALS, flags & at::FLAG_MIRRORED_ROW) {
        (0, _) => RegionMirror::None,
        (_, 0) => RegionMirror::Totals,
        _ => RegionMirror::TotalsAndRow,
    };
    Some(DeviceEntry {
        identity,
        logical_id: if bytes.len() >= at::LOGICAL_ID + 4 {
            half_word(bytes, at::LOGICAL_ID)
        } else {
            0
        },
        architecture: of_code(&ARCHITECTURES, byte(at::ARCHITECTURE)),
        dram_capacity_bytes: long(at::FLAG_DRAM_CAPACITY, at::DRAM_CAPACITY_BYTES),
        l1_capacity_bytes: long(at::FLAG_L1_CAPACITY, at::L1_CAPACITY_BYTES),
        dram_channels: short(at::FLAG_DRAM_CHANNELS, at::DRAM_CHANNELS),
        worker_cores: short(at::FLAG_WORKER_CORES, at::WORKER_CORES),
        mirror,
        is_host: flags & at::FLAG_HOST != 0,
    })
}

/// The u64 at `offset`, which the caller has checked.
pub(crate) fn word(bytes: &[u8], offset: usize) -> u64 {
    let field = bytes[offset..offset + 8].try_into().expect("the slice has eight bytes");
    u64::from_le_bytes(field)
}

/// The u32 at `offset`, which the caller has checked.
pub(crate) fn half_word(bytes: &[u8], offset: usize) -> u32 {
    let field = bytes[offset..offset + 4].try_into().expect("the slice has four bytes");
    u32::from_le_bytes(field)
}

#[cfg(test)]
mod tests {
    use super::{DeviceEntry, RegionMirror, at, decode, encode};
    use crate::layout::{DEVICE_BYTES, SHORTEST_DEVICE_BYTES};
    use telltale_schema::chip::{
        Architecture, AsicId, BoardId, BoardType, ChipIdentity, GalaxyPosition, PciAddress,
    };

    fn published(entry: &DeviceEntry) -> [u8; DEVICE_BYTES] {
        let mut bytes = encode(entry);
        bytes[..8].copy_from_slice(&at::READY.to_le_bytes());
        bytes
    }

    fn full() -> DeviceEntry {
        DeviceEntry {
            identity: ChipIdentity {
                driver_ordinal: Some(7),
                pci: PciAddress::from_bits(0xC100),
                asic_id: Some(AsicId(u64::MAX)),
                board_id: Some(BoardId(0x0100_0351_0000_0001)),
                board_type: BoardType::GalaxyWormhole,
                location: 0x11,
                galaxy: Some(GalaxyPosition { tray: 1, nibble: 1 }),
                remote: true,
            },
            logical_id: 31,
            architecture: Some(Architecture::WormholeB0),
            dram_capacity_bytes: Some(12 << 30),
            l1_capacity_bytes: Some(1),
            dram_channels: Some(6),
            worker_cores: Some(80),
            mirror: RegionMirror::TotalsAndRow,
            is_host: false,
        }
    }

    #[test]
    fn entries_survive_their_encoding() {
        let bare = DeviceEntry { logical_id: 3, ..DeviceEntry::default() };
        let totals = DeviceEntry { mirror: RegionMirror::Totals, ..full() };
        let host = DeviceEntry { is_host: true, ..DeviceEntry::default() };
        for entry in [full(), bare, totals, host] {
            assert_eq!(decode(&published(&entry)), Some(entry));
        }
        assert_eq!(decode(&encode(&full())), None, "not published");
    }

    #[test]
    fn shorter_and_longer_entries_are_read_as_far_as_they_go() {
        let bytes = published(&full());
        let mut longer = bytes.to_vec();
        longer.resize(256, 0xFF);
        assert_eq!(decode(&longer), Some(full()));
        for length in SHORTEST_DEVICE_BYTES..DEVICE_BYTES {
            let read = decode(&bytes[..length]).unwrap();
            assert_eq!(read.identity.pci, full().identity.pci);
            assert_eq!(read.dram_capacity_bytes.is_some(), length >= at::DRAM_CAPACITY_BYTES + 8);
        }
        assert_eq!(decode(&bytes[..SHORTEST_DEVICE_BYTES - 1]), None);
    }
}
