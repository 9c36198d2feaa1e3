//! Which chips a kind of machine has, who they are and where they sit.
//!
//! Board ids carry the product numbers by which the driver names cards; the way ASIC ids follow
//! from them is what public cluster descriptions of such machines show.

use telltale_schema::chip::{
    AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, GalaxyPosition, PciAddress,
};

use super::driver::{DriverVersion, GALAXY_ORDINALS};
use super::kind::MachineKind;
use super::random::mixed;

/// The serial numbers of the first boards with seed 0, so that documents and tests can name
/// chips: the first n300 is 251732099, the second 2517320d4.
const FIRST_SERIALS: [u64; 4] = [0x0173_2099, 0x0173_20d4, 0x0173_2113, 0x0173_2142];

/// Who a chip is and what it has: what a runtime learns by opening the device.
#[derive(Debug, Clone, PartialEq)]
pub struct ChipDescription {
    /// Who the chip is and where it sits.
    pub identity: ChipIdentity,
    /// Its capacities and cores.
    pub facts: ChipFacts,
}

/// A chip with a PCI link, as the driver finds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DriverChip {
    /// N of `tenstorrent!N`.
    pub(crate) ordinal: u32,
    /// X of `hwmonX`. Not the ordinal: other drivers have such directories too.
    pub(crate) hwmon: u32,
    pub(crate) pci: PciAddress,
    pub(crate) board_id: BoardId,
    pub(crate) asic_id: AsicId,
    /// The place on its board: 0, 1 on the second chip of a p300, tray and nibble on a Galaxy.
    pub(crate) location: u8,
}

impl DriverChip {
    /// The chip itself, then those that are reached through it.
    pub(crate) fn descriptions(&self) -> Vec<ChipDescription> {
        let board_type = self.board_id.board_type();
        let facts = ChipFacts::of_board(board_type).expect("every emulated board is in the table");
        let identity = ChipIdentity {
            driver_ordinal: Some(self.ordinal),
            pci: Some(self.pci),
            asic_id: Some(self.asic_id),
            board_id: Some(self.board_id),
            board_type,
            location: self.location,
            galaxy: GalaxyPosition::from_bus(board_type, self.pci.bus),
            remote: false,
        };
        let remotes = (1..=board_type.remote_chips()).map(|location| ChipIdentity {
            driver_ordinal: None,
            pci: None,
            location,
            remote: true,
            ..identity.clone()
        });
        std::iter::once(identity.clone())
            .chain(remotes)
            .map(|identity| ChipDescription { identity, facts })
            .collect()
    }
}

/// The chips of a machine, in the order of their ordinals.
pub(crate) fn chips(kind: MachineKind, seed: u64, driver: DriverVersion) -> Vec<DriverChip> {
    let buses: Vec<u8> = match kind {
        MachineKind::N150 | MachineKind::N300 | MachineKind::P150 => vec![0x03],
        MachineKind::P300 => vec![0x03, 0x04],
        MachineKind::T3000 => vec![0x01, 0x41, 0x81, 0xC1],
        MachineKind::GalaxyWormhole | MachineKind::GalaxyBlackhole => [0x00u8, 0x40, 0x80, 0xC0]
            .into_iter()
            .flat_map(|tray| (1..=8).map(move |nibble| tray | nibble))
            .collect(),
    };
    let mut chips: Vec<DriverChip> =
        (0u8..).zip(buses).map(|(index, bus)| chip(kind, seed, driver, index, bus)).collect();
    chips.sort_by_key(|chip| chip.ordinal);
    chips
}

/// The chip that the bus scan finds as number `index`.
fn chip(kind: MachineKind, seed: u64, driver: DriverVersion, index: u8, bus: u8) -> DriverChip {
    let board_type = kind.board_type();
    let place = GalaxyPosition::from_bus(board_type, bus);
    let board = if kind == MachineKind::T3000 { index } else { 0 };
    let board_id = board_id(board_type, serial_number(seed, board));
    let location = match place {
        Some(place) => place.location(),
        None if kind == MachineKind::P300 => index,
        None => 0,
    };
    let ordinal = match place {
        Some(place) if driver >= GALAXY_ORDINALS => {
            u32::from(place.tray - 1) * 8 + u32::from(place.nibble - 1)
        }
        _ => u32::from(index),
    };
    DriverChip {
        ordinal,
        hwmon: u32::from(index) + 1,
        pci: PciAddress { domain: 0, bus, device: 0, function: 0 },
        board_id,
        asic_id: asic_id(board_id, location, seed),
        location,
    }
}

/// 28 bits, different for every board of a machine.
fn serial_number(seed: u64, board: u8) -> u64 {
    match FIRST_SERIALS.get(usize::from(board)) {
        Some(serial) if seed == 0 => *serial,
        // The low bits keep the boards of one machine apart whatever the seed gives.
        _ => (mixed(seed, 0) & 0x0FFF_FF00) | (u64::from(board) << 4) | (seed & 0xF),
    }
}

fn board_id(board_type: BoardType, serial: u64) -> BoardId {
    let prefix: u64 = match board_type {
        BoardType::N150 => 0x0100_0186_1000_0000,
        BoardType::N300 => 0x0100_0145_1000_0000,
        BoardType::GalaxyWormhole => 0x0100_0351_1000_0000,
        BoardType::P150 => 0x0000_0402_3000_0000,
        BoardType::P300 => 0x0000_0451_3000_0000,
        _ => 0x0000_0473_3000_0000,
    };
    BoardId(prefix | serial)
}

fn asic_id(board: BoardId, location: u8, seed: u64) -> AsicId {
    let place = u64::from(location);
    AsicId(match board.board_type() {
        BoardType::N150 | BoardType::N300 => {
            2 << 32 | ((board.0 >> 4) & 0xF000_0000) | (board.0 & 0x0FFF_FFFF)
        }
        BoardType::P150 => board.0 - 0x41,
        BoardType::P300 => board.0 << 5 | place,
        // Never all zeros, which means "not programmed".
        _ => mixed(board.0 ^ seed, place) | 1 << 60,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{DriverVersion, MachineKind, chips};

    const NEW: DriverVersion = DriverVersion::new(2, 10, 0);

    #[test]
    fn the_first_n300_is_the_one_that_documents_name() {
        let chips = chips(MachineKind::T3000, 0, NEW);
        let shown: Vec<String> = chips
            .iter()
            .take(2)
            .flat_map(super::DriverChip::descriptions)
            .map(|chip| chip.identity.display_id())
            .collect();
        assert_eq!(shown, ["251732099", "251732099R", "2517320d4", "2517320d4R"]);
    }

    #[test]
    fn identities_differ_and_decode_to_their_board_for_any_seed() {
        for seed in [0, 1, 7, u64::MAX] {
            for kind in MachineKind::ALL {
                let chips = chips(kind, seed, NEW);
                let ids: BTreeSet<_> = chips.iter().map(|chip| chip.asic_id).collect();
                let places: BTreeSet<_> =
                    chips.iter().map(|chip| (chip.board_id, chip.location)).collect();
                assert_eq!(chips.len(), usize::try_from(kind.driver_chips()).unwrap());
                assert_eq!(ids.len(), chips.len(), "{kind} {seed}");
                assert_eq!(places.len(), chips.len(), "{kind} {seed}");
                assert!(chips.iter().all(|chip| chip.board_id.board_type() == kind.board_type()));
            }
        }
    }

    #[test]
    fn galaxy_ordinals_follow_the_trays_since_2_8_and_the_bus_scan_before() {
        let cases = [
            (MachineKind::GalaxyWormhole, NEW, 0xC1),
            (MachineKind::GalaxyBlackhole, NEW, 0x01),
            (MachineKind::GalaxyWormhole, DriverVersion::new(2, 7, 0), 0x01),
        ];
        for (kind, driver, bus) in cases {
            let first = chips(kind, 0, driver).remove(0);
            assert_eq!((first.ordinal, first.pci.bus), (0, bus), "{kind} {driver}");
        }
    }
}
