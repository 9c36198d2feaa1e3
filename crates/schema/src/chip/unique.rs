//! The number by which tt-metal's later region layouts name a chip's file: UMD's id of the chip.

use super::{Architecture, AsicId, BoardId, BoardType, ChipIdentity};

/// UMD's id of this chip (`chip_unique_id`, tt-umd `topology_discovery`), as far as the machine's
/// files tell; absent where what it is made of is not known.
///
/// - n300: bits of the board id, and above them 2 for the chip with the PCI link and 3 for the
///   other one. n150: the board id.
/// - p300: `(board id << 5) | (location & 0x1F)`. p100, p150: the ASIC id.
/// - Galaxy and unknown boards: UMD asks the Ethernet cores, which no file shows. The ASIC id
///   stands in, on the assumption that it is the same number.
///
/// UMD decides by trained Ethernet links and not by board: a p150 or n150 with a linked neighbour
/// has another id, see [`possible_unique_ids`].
pub fn unique_id(chip: &ChipIdentity) -> Option<u64> {
    match board_type(chip) {
        BoardType::N300 => board(chip).map(|board| wormhole(board, chip.remote)),
        BoardType::N150 => board(chip).map(|board| board.0),
        BoardType::P300 => board(chip).map(|board| blackhole(board, chip.location)),
        BoardType::P100
        | BoardType::P150
        | BoardType::GalaxyWormhole
        | BoardType::GalaxyBlackhole
        | BoardType::Unknown => asic(chip),
    }
}

/// Every id that some release of UMD gives this chip with or without links to others.
///
/// On Blackhole releases before the shift by 5 shifted by 1. A Galaxy's board id is shared by its
/// chips, so that only the ASIC id counts there.
pub fn possible_unique_ids(chip: &ChipIdentity) -> impl Iterator<Item = u64> + use<> {
    let card = board(chip).filter(|_| !board_type(chip).is_galaxy());
    let of = |wanted| card.filter(|_| board_type(chip).architecture() == Some(wanted));
    let linked_wormhole = of(Architecture::WormholeB0).map(|board| wormhole(board, chip.remote));
    let linked_blackhole = of(Architecture::Blackhole).map(|board| blackhole(board, chip.location));
    let earlier_blackhole =
        of(Architecture::Blackhole).map(|board| board.0 << 1 | u64::from(chip.location & 1));
    let unlinked = card.filter(|_| !chip.remote).map(|board| board.0);
    [asic(chip), linked_wormhole, linked_blackhole, earlier_blackhole, unlinked]
        .into_iter()
        .flatten()
}

fn board_type(chip: &ChipIdentity) -> BoardType {
    match chip.board_type {
        BoardType::Unknown => chip.board_id.map_or(BoardType::Unknown, BoardId::board_type),
        known => known,
    }
}

fn board(chip: &ChipIdentity) -> Option<BoardId> {
    chip.board_id.filter(|board| board.0 != 0)
}

/// The chip's own ASIC id: a remote chip's identity has its gateway's, and firmware without the id
/// reports 0.
fn asic(chip: &ChipIdentity) -> Option<u64> {
    let AsicId(id) = chip.asic_id.filter(|_| !chip.remote)?;
    Some(id).filter(|id| *id != 0)
}

fn wormhole(board: BoardId, remote: bool) -> u64 {
    let low = ((board.0 >> 4) & 0xF000_0000) | (board.0 & 0x0FFF_FFFF);
    let high: u64 = if remote { 3 } else { 2 };
    (high << 32) | low
}

fn blackhole(board: BoardId, location: u8) -> u64 {
    (board.0 << 5) | u64::from(location & 0x1F)
}

#[cfg(test)]
mod tests {
    use super::{possible_unique_ids, unique_id};
    use crate::chip::{AsicId, BoardId, ChipIdentity};

    fn chip(board: u64, asic: u64, location: u8, remote: bool) -> ChipIdentity {
        let (board_id, asic_id) = (Some(BoardId(board)), Some(AsicId(asic)));
        ChipIdentity { board_id, asic_id, location, remote, ..ChipIdentity::default() }
    }

    #[test]
    fn known_machines_have_their_ids() {
        let cases = [
            (chip(0x0100_0146_1190_302b, 7, 0, false), Some(0x2_6190_302b)),
            (chip(0x0100_0146_1190_302b, 7, 1, true), Some(0x3_6190_302b)),
            (chip(0x0100_0186_1180_b479, 7, 0, false), Some(0x0100_0186_1180_b479)),
            (chip(0x0000_0451_3190_f004, 7, 1, false), Some(0x8a26_321e_0081)),
            (chip(0x0000_0412_3191_110e, 0x412_3191_10cd, 0, false), Some(0x412_3191_10cd)),
            (chip(0x0000_0473_3000_0000, 0xf4d9_4a6f, 0x11, false), Some(0xf4d9_4a6f)),
            (chip(1834, 0, 0, false), None),
            (ChipIdentity::default(), None),
        ];
        for (identity, expected) in cases {
            assert_eq!(unique_id(&identity), expected, "{identity:?}");
            assert!(expected.is_none_or(|id| possible_unique_ids(&identity).any(|one| one == id)));
        }
    }

    #[test]
    fn links_and_earlier_releases_give_other_ids() {
        // A p150 with a trained link.
        let linked = chip(0x403_3191_41bb, 7, 0, false);
        assert!(possible_unique_ids(&linked).any(|id| id == 141_176_416_515_936));
        // A p300 in a cluster description of an earlier release.
        for (location, expected) in [(0, 0x8a2_6321_e008_u64), (1, 0x8a2_6321_e009)] {
            let early = chip(0x0000_0451_3190_f004, 7, location, false);
            assert!(possible_unique_ids(&early).any(|id| id == expected));
        }
    }
}
