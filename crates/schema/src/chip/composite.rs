//! The number by which tt-metal's first region layout names a chip's file.

use super::BoardId;

/// `(board id << 8) | location` in 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompositeId {
    /// The number in the file's name.
    pub value: u64,
    /// The shift pushed bits of the board id out, as it does for every n150, n300 and Wormhole
    /// Galaxy made so far: two boards that differ only in these bits share a file.
    pub overflowed: bool,
}

/// The composite id of the chip at `location` (0 or 1 on a card, see
/// [`super::GalaxyPosition::location`] on a Galaxy) of board `board`. The result wraps exactly as
/// the original's `uint64_t` does, so that the same chip gives the same file.
pub fn composite_id(board: BoardId, location: u8) -> CompositeId {
    CompositeId { value: (board.0 << 8) | u64::from(location), overflowed: board.0 >> 56 != 0 }
}

#[cfg(test)]
mod tests {
    use super::composite_id;
    use crate::chip::{BoardId, BoardType, GalaxyPosition};

    #[test]
    fn names_of_the_original_files_are_reproduced() {
        let cases = [
            (1834, 0, 469_504, false),
            (1834, 1, 469_505, false),
            (1919, 0, 491_264, false),
            (1919, 1, 491_265, false),
            (0xABCD, 0x48, 11_259_208, false),
            // Printed as 11259149 in the original, which is not what its formula gives.
            (0xABCD, 0x15, 11_259_157, false),
            (0x0100_0146_1190_302b, 0, 0x0001_4611_9030_2b00, true),
        ];
        for (board, location, value, overflowed) in cases {
            let id = composite_id(BoardId(board), location);
            assert_eq!((id.value, id.overflowed), (value, overflowed), "{board:#x}");
        }
    }

    #[test]
    fn a_galaxy_chip_puts_tray_and_place_into_the_low_byte() {
        let position = GalaxyPosition::from_bus(BoardType::GalaxyWormhole, 0x48).unwrap();
        assert_eq!(composite_id(BoardId(0xABCD), position.location()).value, 11_259_208);
    }
}
