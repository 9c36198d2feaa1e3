//! What a process group is called between agents and coordinator.
//!
//! Members are not kept here; the mapper of ranks does that.

use std::fmt;

/// One process group of the job (PyTorch's process group, NCCL's communicator), by a number that
/// all of its members derive alike. [`GroupId::of_name`] derives it from the group's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u64);

impl GroupId {
    /// The group of all ranks, which clients that name no group mean.
    pub const WORLD: Self = Self(0);

    /// The group with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The group with this name: the 64-bit FNV-1a of its bytes (RFC 9923).
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self(fnv_1a(name.bytes()))
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The 64-bit FNV-1a of some bytes (RFC 9923): the same on every machine, and for mistakes, not for
/// malice.
pub(crate) fn fnv_1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl fmt::Display for GroupId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::WORLD {
            return formatter.write_str("world");
        }
        write!(formatter, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_published_hash() {
        // RFC 9923's test vector for FNV-1a of 64 bits.
        assert_eq!(GroupId::of_name("a").number(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(GroupId::WORLD.to_string(), "world");
        assert_eq!(GroupId::of_name("a").to_string(), "af63dc4c8601ec8c");
    }
}
