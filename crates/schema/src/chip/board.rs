//! Board and ASIC ids, the types decoded from them, and the architectures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The 64-bit id that the chip's firmware reports, printed in hexadecimal without leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AsicId(pub u64);

/// The 64-bit serial number of a board, printed as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardId(pub u64);

/// A text that is no hexadecimal id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a hexadecimal id of up to 16 digits: {0:?}")]
pub struct ParseIdError(pub String);

/// A chip generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Grayskull; the driver dropped it in 2.2.
    Grayskull,
    /// Wormhole B0.
    WormholeB0,
    /// Blackhole.
    Blackhole,
}

/// A board type, decoded from the product part of the board id.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BoardType {
    /// Wormhole, one chip.
    N150,
    /// Wormhole, two chips, one of them with the PCI link.
    N300,
    /// Wormhole Galaxy, 32 chips in four trays.
    GalaxyWormhole,
    /// Blackhole, one chip, seven DRAM banks.
    P100,
    /// Blackhole, one chip.
    P150,
    /// Blackhole, two chips.
    P300,
    /// Blackhole Galaxy, 32 chips in four trays.
    GalaxyBlackhole,
    /// A product number that is not in our table.
    #[default]
    Unknown,
}

impl BoardId {
    /// The product number (UPI), bits 36 to 55, by which boards are distinguished.
    pub fn product(self) -> u32 {
        u32::try_from((self.0 >> 36) & 0xF_FFFF).expect("20 bits")
    }

    /// The board revision, bits 32 to 35.
    pub fn revision(self) -> u8 {
        u8::try_from((self.0 >> 32) & 0xF).expect("4 bits")
    }

    /// The type that the product number stands for (table: tt-umd and tt-kmd).
    pub fn board_type(self) -> BoardType {
        match self.product() {
            0x14 => BoardType::N300,
            0x18 => BoardType::N150,
            0x35 => BoardType::GalaxyWormhole,
            0x36 | 0x43 => BoardType::P100,
            0x40..=0x42 => BoardType::P150,
            0x44..=0x46 => BoardType::P300,
            0x47 => BoardType::GalaxyBlackhole,
            _ => BoardType::Unknown,
        }
    }
}

impl BoardType {
    /// The type that the driver's `tt_card_type` names.
    pub fn from_card_type(text: &str) -> Self {
        match text.trim() {
            "n150" => Self::N150,
            "n300" => Self::N300,
            "galaxy-wormhole" => Self::GalaxyWormhole,
            "p100" | "p100a" => Self::P100,
            "p150" | "p150a" | "p150b" | "p150c" => Self::P150,
            "p300" | "p300a" | "p300b" | "p300c" => Self::P300,
            "galaxy-blackhole" => Self::GalaxyBlackhole,
            _ => Self::Unknown,
        }
    }

    /// The name a person reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::N150 => "n150",
            Self::N300 => "n300",
            Self::GalaxyWormhole => "galaxy-wormhole",
            Self::P100 => "p100",
            Self::P150 => "p150",
            Self::P300 => "p300",
            Self::GalaxyBlackhole => "galaxy-blackhole",
            Self::Unknown => "unknown",
        }
    }

    /// The architecture of the board's chips.
    pub const fn architecture(self) -> Option<Architecture> {
        match self {
            Self::N150 | Self::N300 | Self::GalaxyWormhole => Some(Architecture::WormholeB0),
            Self::P100 | Self::P150 | Self::P300 | Self::GalaxyBlackhole => {
                Some(Architecture::Blackhole)
            }
            Self::Unknown => None,
        }
    }

    /// Chips on the board that have no PCI link of their own.
    pub const fn remote_chips(self) -> u8 {
        match self {
            Self::N300 => 1,
            _ => 0,
        }
    }

    /// Whether the board is a Galaxy, whose chips are named by tray and place.
    pub const fn is_galaxy(self) -> bool {
        matches!(self, Self::GalaxyWormhole | Self::GalaxyBlackhole)
    }
}

impl Architecture {
    /// The name in tables, as the makers' tools print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grayskull => "Grayskull",
            Self::WormholeB0 => "Wormhole_B0",
            Self::Blackhole => "Blackhole",
        }
    }

    /// The name in JSON and CSV.
    pub const fn code_name(self) -> &'static str {
        match self {
            Self::Grayskull => "grayskull",
            Self::WormholeB0 => "wormhole_b0",
            Self::Blackhole => "blackhole",
        }
    }
}

macro_rules! hexadecimal {
    ($type:ident, $format:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(to, $format, self.0)
            }
        }

        impl FromStr for $type {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let digits = text.trim();
                let clean = digits.len() <= 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                clean
                    .then(|| u64::from_str_radix(digits, 16).ok())
                    .flatten()
                    .map(Self)
                    .ok_or_else(|| ParseIdError(text.chars().take(64).collect()))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

hexadecimal!(AsicId, "{:x}");
hexadecimal!(BoardId, "{:016x}");

#[cfg(test)]
mod tests {
    use super::{Architecture, AsicId, BoardId, BoardType};

    #[test]
    fn an_architecture_has_one_name_for_programs() {
        for one in [Architecture::Grayskull, Architecture::WormholeB0, Architecture::Blackhole] {
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.code_name()));
        }
    }

    #[test]
    fn real_board_ids_decode_to_their_types() {
        let cases = [
            (0x0100_0146_1190_302b, BoardType::N300, "n300"),
            (0x0100_0186_1180_b479, BoardType::N150, "n150"),
            (0x0100_0351_0000_0000, BoardType::GalaxyWormhole, "galaxy-wormhole"),
            (0x0000_0401_0000_0000, BoardType::P150, "p150a"),
            (0x0000_0412_3191_110e, BoardType::P150, "p150b"),
            (0x0000_0451_3190_f004, BoardType::P300, "p300a"),
            (0x0000_0473_3000_0000, BoardType::GalaxyBlackhole, "galaxy-blackhole"),
            (1834, BoardType::Unknown, "unknown"),
        ];
        for (id, board_type, card_type) in cases {
            assert_eq!(BoardId(id).board_type(), board_type, "{id:#x}");
            assert_eq!(BoardType::from_card_type(&format!("{card_type}\n")), board_type);
        }
        assert_eq!(BoardId(0x0100_0146_1190_302b).revision(), 6);
    }

    #[test]
    fn ids_survive_text_and_refuse_garbage() {
        assert_eq!("0000000251732099\n".parse(), Ok(AsicId(0x2_5173_2099)));
        assert_eq!(AsicId(0x2_5173_2099).to_string(), "251732099");
        assert_eq!(BoardId(0x0100_0146_1190_302b).to_string(), "010001461190302b");
        for bad in ["", "xyz", "-1", "+1", "00000000251732099"] {
            assert!(bad.parse::<AsicId>().is_err(), "{bad}");
        }
    }
}
