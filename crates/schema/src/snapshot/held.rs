//! What a process has on one device, as far as reported. What is not reported is left out, never 0.

use serde::{Deserialize, Serialize};

use crate::memory::{MemoryKind, MemorySpace, MemoryUsage};

/// A device that a process holds or has recorded memory for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HeldDevice {
    /// The device's place in [`super::Snapshot::devices`].
    pub device: usize,
    /// How many descriptors of it the driver says the process has open.
    pub open_descriptors: u32,
    /// How much is known of its memory there.
    #[serde(default)]
    pub accounting: Accounting,
    /// Why what the process reports of its memory there is not trusted, where it is not: no source has
    /// more than the device has. Nothing is known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What it has there, by kind, for kinds with any.
    pub kinds: Vec<HeldKind>,
    /// The same by space, for spaces with any; see [`Self::add_up`].
    #[serde(default)]
    pub spaces: Vec<HeldSpace>,
    /// Buffers of all kinds; none when they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_buffers: Option<u64>,
    /// The share of the last second in which its work ran on the device, 0 to 1; none where the driver
    /// does not count it for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ratio: Option<f64>,
}

/// How much is known of a process's memory on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Accounting {
    /// All: the process itself accounts for the device, by ledger or endpoint.
    Recorded,
    /// Live bytes alone: it has a row in a foreign region.
    BytesOnly,
    /// The process accounts for its memory and names other devices only. It has this one open, as
    /// one opens the chip through which a remote one is reached, and nothing on it.
    OpenOnly,
    /// Nothing.
    #[default]
    Unknown,
}

/// What one process has of one kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HeldKind {
    /// The kind.
    pub kind: MemoryKind,
    /// Its values.
    #[serde(flatten)]
    pub usage: HeldUsage,
}

/// Values of one kind, in JSON those that are known. Which they are depends on the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum HeldUsage {
    /// What the process recorded.
    Recorded(MemoryUsage),
    /// All that a row of a foreign region has.
    BytesOnly {
        /// Bytes allocated and not freed.
        live_bytes: u64,
    },
}

/// What one process has in one memory space of a device: its kinds of that space, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HeldSpace {
    /// The space.
    pub space: MemorySpace,
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Buffers allocated and not freed; none when they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_buffers: Option<u64>,
}

/// What one process recorded for one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct KindUsage {
    /// The kind.
    pub kind: MemoryKind,
    /// Its values.
    #[serde(flatten)]
    pub usage: MemoryUsage,
}

impl Accounting {
    /// The name in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::BytesOnly => "bytes_only",
            Self::OpenOnly => "open_only",
            Self::Unknown => "unknown",
        }
    }

    /// The values of a kind that is not mentioned: zeros, as far as anything is known.
    pub fn of_nothing(self) -> Option<HeldUsage> {
        match self {
            Self::Recorded | Self::OpenOnly => Some(HeldUsage::Recorded(MemoryUsage::default())),
            Self::BytesOnly => Some(HeldUsage::BytesOnly { live_bytes: 0 }),
            Self::Unknown => None,
        }
    }
}

impl HeldUsage {
    /// Bytes allocated and not freed.
    pub const fn live_bytes(&self) -> u64 {
        match self {
            Self::Recorded(usage) => usage.live_bytes,
            Self::BytesOnly { live_bytes } => *live_bytes,
        }
    }

    /// Everything else, where the process recorded it.
    pub const fn recorded(&self) -> Option<&MemoryUsage> {
        match self {
            Self::Recorded(usage) => Some(usage),
            Self::BytesOnly { .. } => None,
        }
    }

    /// Both added up, with the values that both have. A sum that does not fit stays at the
    /// largest number: the values come from other processes, which may write what they like.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (Self::Recorded(one), Self::Recorded(two)) = (self, other) else {
            let live_bytes = self.live_bytes().saturating_add(other.live_bytes());
            return Self::BytesOnly { live_bytes };
        };
        Self::Recorded(MemoryUsage {
            live_bytes: one.live_bytes.saturating_add(two.live_bytes),
            live_buffers: one.live_buffers.saturating_add(two.live_buffers),
            peak_bytes: one.peak_bytes.saturating_add(two.peak_bytes),
            allocations: one.allocations.saturating_add(two.allocations),
            allocated_bytes: one.allocated_bytes.saturating_add(two.allocated_bytes),
            failed_allocations: one.failed_allocations.saturating_add(two.failed_allocations),
        })
    }
}

impl HeldDevice {
    /// Fills in the sums from the kinds and [`Self::accounting`], at most the largest number each.
    pub fn add_up(&mut self) {
        let nothing = self.accounting.of_nothing();
        let buffers = |usage: HeldUsage| usage.recorded().map(|usage| usage.live_buffers);
        self.spaces.clear();
        for space in MemorySpace::ALL {
            let of_space = self.kinds.iter().filter(|one| one.kind.space() == space);
            let sum = of_space.map(|one| one.usage).reduce(HeldUsage::plus);
            self.spaces.extend(sum.map(|sum| HeldSpace {
                space,
                live_bytes: sum.live_bytes(),
                live_buffers: buffers(sum),
            }));
        }
        let sum = self.kinds.iter().map(|one| one.usage).chain(nothing).reduce(HeldUsage::plus);
        self.live_buffers = sum.and_then(buffers);
    }

    /// Bytes that the process has in all spaces, at most the largest number; `None` when not reported.
    pub fn total_bytes(&self) -> Option<u64> {
        MemorySpace::ALL
            .into_iter()
            .filter_map(|space| self.live_bytes(space))
            .reduce(u64::saturating_add)
    }

    /// Bytes that the process has in `space`; `None` when not reported.
    pub fn live_bytes(&self, space: MemorySpace) -> Option<u64> {
        let nothing = self.accounting.of_nothing().map(|usage| usage.live_bytes());
        let found = self.spaces.iter().find(|held| held.space == space);
        found.map(|held| held.live_bytes).or(nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::{Accounting, HeldDevice, HeldKind, HeldUsage};
    use crate::memory::{MemoryKind, MemorySpace, MemoryUsage};

    const HALF: u64 = u64::MAX / 2 + 1;

    fn recorded(kind: MemoryKind, live_bytes: u64, live_buffers: u64) -> HeldKind {
        let usage = MemoryUsage { live_bytes, live_buffers, ..MemoryUsage::default() };
        HeldKind { kind, usage: HeldUsage::Recorded(usage) }
    }

    fn held(accounting: Accounting, kinds: &[HeldKind]) -> HeldDevice {
        let mut held = HeldDevice { accounting, kinds: kinds.to_vec(), ..HeldDevice::default() };
        held.add_up();
        // Once more changes nothing.
        held.add_up();
        held
    }

    fn sums(held: &HeldDevice) -> ([Option<u64>; 3], Option<u64>) {
        (MemorySpace::ALL.map(|space| held.live_bytes(space)), held.live_buffers)
    }

    #[test]
    fn kinds_add_up_by_space_and_hostile_ones_stop_at_the_largest_number() {
        let kinds = [
            recorded(MemoryKind::Dram, 10, 1),
            recorded(MemoryKind::Trace, 5, 2),
            recorded(MemoryKind::Cb, 7, 4),
        ];
        let plain = held(Accounting::Recorded, &kinds);
        assert_eq!(sums(&plain), ([Some(15), Some(7), Some(0)], Some(7)));
        assert_eq!(plain.spaces.len(), 2);
        let kinds = [
            recorded(MemoryKind::Dram, u64::MAX, HALF),
            recorded(MemoryKind::Trace, 1, 0),
            recorded(MemoryKind::L1, 2, u64::MAX),
        ];
        let hostile = held(Accounting::Recorded, &kinds);
        assert_eq!(sums(&hostile), ([Some(u64::MAX), Some(2), Some(0)], Some(u64::MAX)));
    }

    #[test]
    fn what_nobody_says_is_not_0() {
        let bytes =
            HeldKind { kind: MemoryKind::Dram, usage: HeldUsage::BytesOnly { live_bytes: 9 } };
        let known = [Some(9), Some(0), Some(0)];
        assert_eq!(sums(&held(Accounting::BytesOnly, &[bytes])), (known, None));
        assert_eq!(sums(&held(Accounting::BytesOnly, &[])), ([Some(0); 3], None));
        assert_eq!(sums(&held(Accounting::Recorded, &[])), ([Some(0); 3], Some(0)));
        assert_eq!(sums(&held(Accounting::Unknown, &[])), ([None; 3], None));
        let mixed = held(Accounting::Recorded, &[bytes, recorded(MemoryKind::L1, 1, 1)]);
        assert_eq!(sums(&mixed), ([Some(9), Some(1), Some(0)], None));
    }

    #[test]
    fn json_has_the_values_that_are_known() {
        for (kind, text) in [
            (
                HeldKind { kind: MemoryKind::L1, usage: HeldUsage::BytesOnly { live_bytes: 9 } },
                r#"{"kind":"l1","live_bytes":9}"#,
            ),
            (
                recorded(MemoryKind::L1, 9, 1),
                r#"{"kind":"l1","live_bytes":9,"live_buffers":1,"peak_bytes":0,"allocations":0,"allocated_bytes":0,"failed_allocations":0}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), text);
            assert_eq!(serde_json::from_str::<HeldKind>(text).unwrap(), kind);
        }
        for accounting in
            [Accounting::Recorded, Accounting::BytesOnly, Accounting::OpenOnly, Accounting::Unknown]
        {
            let name = format!("\"{}\"", accounting.name());
            assert_eq!(serde_json::to_string(&accounting).unwrap(), name);
        }
    }
}
