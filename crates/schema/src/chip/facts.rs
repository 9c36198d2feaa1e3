//! What is known of a chip before anything is measured: capacities, cores, grid.

use serde::{Deserialize, Serialize};

use super::{Architecture, BoardType};

/// Where a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FactSource {
    /// Our table of boards (from tt-umd's SoC descriptors): right for the harvesting the board
    /// is sold with, an assumption for one chip.
    BoardTable,
    /// The runtime that opened the device said so in its ledger.
    Ledger,
    /// The device's driver or the kernel says so.
    Driver,
}

impl FactSource {
    /// The words a person reads.
    pub const fn words(self) -> &'static str {
        match self {
            Self::BoardTable => "from the table of boards",
            Self::Ledger => "as the runtime reports",
            Self::Driver => "as the driver reports",
        }
    }
}

/// Static facts of one chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ChipFacts {
    /// The chip generation.
    pub architecture: Architecture,
    /// DRAM of all enabled banks.
    pub dram_capacity_bytes: u64,
    /// Enabled DRAM channels (banks).
    pub dram_channels: u32,
    /// L1 of one worker core.
    pub l1_per_core_bytes: u64,
    /// Enabled worker cores.
    pub worker_cores: u32,
    /// Columns and rows of the full grid of worker cores, harvested ones included.
    pub grid: (u32, u32),
    /// Where these numbers come from.
    pub source: FactSource,
}

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;

impl ChipFacts {
    /// L1 of all enabled worker cores. Less can be allocated: firmware and dispatch take a part.
    pub fn l1_capacity_bytes(&self) -> u64 {
        self.l1_per_core_bytes * u64::from(self.worker_cores)
    }

    /// The facts of a chip on a board of this type; none for an unknown one.
    pub fn of_board(board: BoardType) -> Option<Self> {
        let (worker_cores, dram_channels) = match board {
            BoardType::N150 => (72, 6),
            BoardType::N300 => (64, 6),
            BoardType::GalaxyWormhole => (80, 6),
            BoardType::P100 => (120, 7),
            BoardType::P150 | BoardType::P300 => (120, 8),
            BoardType::GalaxyBlackhole => (130, 8),
            BoardType::Unknown => return None,
        };
        let architecture = board.architecture()?;
        let (bank_bytes, l1_per_core_bytes, grid) = match architecture {
            Architecture::WormholeB0 => (2 * GIB, 1464 * KIB, (8, 10)),
            Architecture::Blackhole => (4 * GIB, 1536 * KIB, (14, 10)),
            Architecture::Grayskull => return None,
        };
        Some(Self {
            architecture,
            dram_capacity_bytes: bank_bytes * u64::from(dram_channels),
            dram_channels,
            l1_per_core_bytes,
            worker_cores,
            grid,
            source: FactSource::BoardTable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ChipFacts;
    use crate::chip::BoardType;

    #[test]
    fn capacities_are_those_of_one_chip() {
        const MIB: u64 = 1 << 20;
        let cases = [
            (BoardType::N150, 12 * 1024, 102.94),
            (BoardType::N300, 12 * 1024, 91.5),
            (BoardType::GalaxyWormhole, 12 * 1024, 114.38),
            (BoardType::P100, 28 * 1024, 180.0),
            (BoardType::P150, 32 * 1024, 180.0),
            (BoardType::P300, 32 * 1024, 180.0),
            (BoardType::GalaxyBlackhole, 32 * 1024, 195.0),
        ];
        for (board, dram_mib, l1_mib) in cases {
            let facts = ChipFacts::of_board(board).unwrap();
            assert_eq!(facts.dram_capacity_bytes / MIB, dram_mib, "{board:?}");
            let l1 = facts.l1_capacity_bytes() as f64 / MIB as f64;
            assert!((l1 - l1_mib).abs() < 0.01, "{board:?}: {l1}");
        }
        assert_eq!(ChipFacts::of_board(BoardType::Unknown), None);
    }
}
