//! Tray and chip of a Galaxy, from the PCI bus number.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BoardType;

/// Where a chip sits in a Galaxy, printed `T1:N0` to `T4:N7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct GalaxyPosition {
    /// The tray, 1 to 4.
    pub tray: u8,
    /// The low nibble of the PCI bus number, which the driver and the firmware count from 1 to 8.
    /// The printed form counts from 0.
    pub nibble: u8,
}

impl GalaxyPosition {
    /// The position that a bus number stands for. The order of the trays differs between the
    /// generations (tt-umd, tt-kmd); none for other boards and for bus numbers of no tray.
    pub fn from_bus(board: BoardType, bus: u8) -> Option<Self> {
        let order: [u8; 4] = match board {
            BoardType::GalaxyWormhole => [0xC0, 0x80, 0x00, 0x40],
            BoardType::GalaxyBlackhole => [0x00, 0x40, 0xC0, 0x80],
            _ => return None,
        };
        let nibble = bus & 0x0F;
        let tray = (1..).zip(order).find(|(_, high)| *high == bus & 0xF0)?.0;
        (1..=8).contains(&nibble).then_some(Self { tray, nibble })
    }

    /// Tray and nibble in one byte, as the composite id wants them.
    pub fn location(self) -> u8 {
        (self.tray << 4) | self.nibble
    }
}

impl fmt::Display for GalaxyPosition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "T{}:N{}", self.tray, self.nibble.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::GalaxyPosition;
    use crate::chip::BoardType::{GalaxyBlackhole, GalaxyWormhole, N300};

    #[test]
    fn the_order_of_trays_follows_the_generation() {
        let cases = [
            (GalaxyWormhole, 0xC1, Some("T1:N0")),
            (GalaxyWormhole, 0x88, Some("T2:N7")),
            (GalaxyWormhole, 0x01, Some("T3:N0")),
            (GalaxyWormhole, 0x48, Some("T4:N7")),
            (GalaxyBlackhole, 0x01, Some("T1:N0")),
            (GalaxyBlackhole, 0x42, Some("T2:N1")),
            (GalaxyBlackhole, 0xC8, Some("T3:N7")),
            (GalaxyBlackhole, 0x81, Some("T4:N0")),
            (GalaxyWormhole, 0xC0, None),
            (GalaxyWormhole, 0xC9, None),
            (GalaxyWormhole, 0x21, None),
            (N300, 0xC1, None),
        ];
        for (board, bus, shown) in cases {
            let position = GalaxyPosition::from_bus(board, bus).map(|found| found.to_string());
            assert_eq!(position.as_deref(), shown, "{board:?} {bus:#x}");
        }
    }
}
