//! What a Tenstorrent chip is: where it sits, who it is, how it is shown, and what is known of it beforehand.

mod board;
mod composite;
mod facts;
mod galaxy;
mod pci;
mod unique;

pub use board::{Architecture, AsicId, BoardId, BoardType, ParseIdError};
pub use composite::{CompositeId, composite_id};
pub use facts::{ChipFacts, FactSource};
pub use galaxy::GalaxyPosition;
pub use pci::{ParsePciAddressError, PciAddress};
pub use unique::{possible_unique_ids, unique_id};

use serde::{Deserialize, Serialize};

/// Everything that distinguishes one chip from another. Fields a machine does not offer are absent; the
/// pair of PCI address and `asic_id` is the key where both are there, never an ordinal or a
/// board id alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ChipIdentity {
    /// N of the driver's `tenstorrent!N`. Can change at a reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_ordinal: Option<u32>,
    /// Where the chip's PCI function sits; none for a chip reached through another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// The id that the firmware reports (`tt_asic_id`). A chip without a PCI link has its gateway's
    /// in the driver's files; a process may give the chip's own, or UMD's id of the chip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asic_id: Option<AsicId>,
    /// The board's serial number (`tt_serial`). All 32 chips of a Galaxy may share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board_id: Option<BoardId>,
    /// The type decoded from the board id, or from the driver's `tt_card_type`.
    pub board_type: BoardType,
    /// The chip's place on its board: 0 for the chip with the PCI link, 1 for the other one of
    /// an n300, tray and chip on a Galaxy (see [`GalaxyPosition::location`]).
    pub location: u8,
    /// Tray and chip, on a Galaxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub galaxy: Option<GalaxyPosition>,
    /// The chip has no PCI link of its own and is reached through the board's first chip.
    pub remote: bool,
}

impl ChipIdentity {
    /// How the chip is shown: `T1:N0` on a Galaxy, otherwise the hexadecimal ASIC id, followed
    /// by `R` for a remote chip (whose `asic_id` here is its gateway's, as it has none in the
    /// driver's files). Without an ASIC id: board id and location, the PCI address, the ordinal.
    pub fn display_id(&self) -> String {
        let suffix = if self.remote { "R" } else { "" };
        if let Some(position) = self.galaxy {
            return position.to_string();
        }
        if let Some(asic) = self.asic_id.filter(|asic| asic.0 != 0) {
            return format!("{asic}{suffix}");
        }
        match (self.board_id, self.pci, self.driver_ordinal) {
            (Some(board), _, _) => format!("{board}:{}{suffix}", self.location),
            (None, Some(pci), _) => format!("{pci}{suffix}"),
            (None, None, Some(ordinal)) => format!("tenstorrent!{ordinal}{suffix}"),
            (None, None, None) => format!("unknown{suffix}"),
        }
    }

    /// The number in the name of tt-metal's first region layout for this chip, where the board
    /// id is known.
    pub fn composite_id(&self) -> Option<CompositeId> {
        Some(composite_id(self.board_id?, self.location))
    }
}

#[cfg(test)]
mod tests {
    use super::{AsicId, BoardId, BoardType, ChipIdentity, GalaxyPosition, PciAddress};

    #[test]
    fn a_chip_is_shown_by_the_best_name_it_has() {
        let asic = Some(AsicId(0x2_5173_2099));
        let galaxy = GalaxyPosition::from_bus(BoardType::GalaxyWormhole, 0xC1);
        let pci = Some("0000:03:00.0".parse::<PciAddress>().unwrap());
        let board_id = Some(BoardId(0x0100_0146_1190_302b));
        let none = ChipIdentity::default();
        let cases = [
            (ChipIdentity { asic_id: asic, ..none.clone() }, "251732099"),
            (ChipIdentity { asic_id: asic, remote: true, ..none.clone() }, "251732099R"),
            (ChipIdentity { asic_id: asic, galaxy, ..none.clone() }, "T1:N0"),
            (ChipIdentity { asic_id: Some(AsicId(0)), pci, ..none.clone() }, "0000:03:00.0"),
            (
                ChipIdentity { board_id, location: 1, remote: true, ..none.clone() },
                "010001461190302b:1R",
            ),
            (ChipIdentity { driver_ordinal: Some(3), ..none.clone() }, "tenstorrent!3"),
            (none, "unknown"),
        ];
        for (identity, shown) in cases {
            assert_eq!(identity.display_id(), shown);
        }
    }
}
