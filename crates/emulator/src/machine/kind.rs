//! The kinds of machine that can be emulated.

use std::fmt;
use std::str::FromStr;

use telltale_schema::chip::BoardType;

use super::MachineOptions;
use super::boards::{self, ChipDescription};

/// A machine, named after what is plugged into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MachineKind {
    /// One n150 card: one Wormhole chip.
    N150,
    /// One n300 card: two Wormhole chips, one of them without a PCI link.
    N300,
    /// Four n300 cards.
    T3000,
    /// 32 Wormhole chips in four trays.
    GalaxyWormhole,
    /// 32 Blackhole chips in four trays.
    GalaxyBlackhole,
    /// One p150 card: one Blackhole chip.
    P150,
    /// One p300 card: two Blackhole chips, both with a PCI link.
    P300,
}

/// A name that is no [`MachineKind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no machine kind {0:?}: choose n150, n300, t3000, galaxy-wormhole, galaxy-blackhole, p150 \
     or p300"
)]
pub struct ParseMachineKindError(pub String);

impl MachineKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::N150,
        Self::N300,
        Self::T3000,
        Self::GalaxyWormhole,
        Self::GalaxyBlackhole,
        Self::P150,
        Self::P300,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::N150 => "n150",
            Self::N300 => "n300",
            Self::T3000 => "t3000",
            Self::GalaxyWormhole => "galaxy-wormhole",
            Self::GalaxyBlackhole => "galaxy-blackhole",
            Self::P150 => "p150",
            Self::P300 => "p300",
        }
    }

    /// All chips of such a machine, in the order in which chips are counted over a whole machine:
    /// device by device, each followed by the chips that are reached through it.
    pub fn chips(self, options: &MachineOptions) -> Vec<ChipDescription> {
        let devices = boards::chips(self, options.seed, options.driver_version);
        devices.iter().flat_map(|device| device.descriptions()).collect()
    }

    /// The type of the machine's boards.
    pub const fn board_type(self) -> BoardType {
        match self {
            Self::N150 => BoardType::N150,
            Self::N300 | Self::T3000 => BoardType::N300,
            Self::GalaxyWormhole => BoardType::GalaxyWormhole,
            Self::GalaxyBlackhole => BoardType::GalaxyBlackhole,
            Self::P150 => BoardType::P150,
            Self::P300 => BoardType::P300,
        }
    }

    /// Chips that the driver shows.
    pub const fn driver_chips(self) -> u32 {
        match self {
            Self::N150 | Self::N300 | Self::P150 => 1,
            Self::P300 => 2,
            Self::T3000 => 4,
            Self::GalaxyWormhole | Self::GalaxyBlackhole => 32,
        }
    }
}

impl fmt::Display for MachineKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for MachineKind {
    type Err = ParseMachineKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| ParseMachineKindError(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::MachineKind;

    #[test]
    fn every_name_is_read_back_and_others_are_refused() {
        for kind in MachineKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("N150".parse::<MachineKind>().is_err());
    }
}
