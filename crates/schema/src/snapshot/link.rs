//! The PCIe link of a device: what it trained to, what it can do, and what goes over it.

use serde::{Deserialize, Serialize};

use crate::device::{DeviceClass, DeviceIdentity};
use crate::reading::{Absence, Reading};

/// The PCIe link between a device and the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PcieLink {
    // From sensors.toml: fields of link.
    /// The generation of PCIe that the link runs at: 1 is 2.5 GT/s a lane, 2 is 5, 3 is 8, 4 is 16,
    /// 5 is 32, 6 is 64.
    pub pcie_generation: Reading<u64>,
    /// The fastest generation that both the device and its slot can do.
    pub pcie_generation_max: Reading<u64>,
    /// The lanes that the PCIe link has.
    pub pcie_width: Reading<u64>,
    /// The most lanes that both the device and its slot can do.
    pub pcie_width_max: Reading<u64>,
    /// Bytes a second that the device received over PCIe, from the host to it, since the collection
    /// before. Absent in the first.
    pub pcie_received_bytes_per_second: Reading<u64>,
    /// Bytes a second that the device sent over PCIe, from it to the host, since the collection
    /// before. Absent in the first.
    pub pcie_sent_bytes_per_second: Reading<u64>,
    /// The NUMA node that the device is near, as the kernel numbers it.
    #[serde(default = "Reading::<u64>::unreported")]
    pub numa_node: Reading<u64>,
    /// Errors of its PCIe function that the link corrected by itself, as the kernel counts them
    /// since it found the device.
    #[serde(default = "Reading::<u64>::unreported")]
    pub pcie_correctable_errors_total: Reading<u64>,
    /// Uncorrected errors of its PCIe function that cost a transaction and not the link, since
    /// then.
    #[serde(default = "Reading::<u64>::unreported")]
    pub pcie_nonfatal_errors_total: Reading<u64>,
    /// Uncorrected errors of its PCIe function that made the link unreliable, since then.
    #[serde(default = "Reading::<u64>::unreported")]
    pub pcie_fatal_errors_total: Reading<u64>,
    // End of these.
}

/// How a link compares with what it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// It is as fast and as wide as device and slot can.
    Full,
    /// It is slower, and the device slows its link while it is idle.
    Idle,
    /// It is slower or narrower, which costs bandwidth.
    Reduced,
}

impl PcieLink {
    /// Nothing is known of it, for one reason.
    pub fn absent(reason: Absence, detail: &str) -> Self {
        Self {
            // From sensors.toml: absences of link.
            pcie_generation: Reading::absent(reason, detail),
            pcie_generation_max: Reading::absent(reason, detail),
            pcie_width: Reading::absent(reason, detail),
            pcie_width_max: Reading::absent(reason, detail),
            pcie_received_bytes_per_second: Reading::absent(reason, detail),
            pcie_sent_bytes_per_second: Reading::absent(reason, detail),
            numa_node: Reading::absent(reason, detail),
            pcie_correctable_errors_total: Reading::absent(reason, detail),
            pcie_nonfatal_errors_total: Reading::absent(reason, detail),
            pcie_fatal_errors_total: Reading::absent(reason, detail),
            // End of these.
        }
    }

    /// Generation and width as people write them, `4.0 x16`, and where it can do more, that too:
    /// `3.0 x8 of 4.0 x16`.
    pub fn words(&self) -> Reading<String> {
        let (generation, at) = match &self.pcie_generation {
            Reading::Value { value, at } => (*value, *at),
            Reading::Absent { absent, detail } => return Reading::absent(*absent, detail.clone()),
        };
        let width = match &self.pcie_width {
            Reading::Value { value, .. } => *value,
            Reading::Absent { absent, detail } => return Reading::absent(*absent, detail.clone()),
        };
        let most = (self.pcie_generation_max.value(), self.pcie_width_max.value());
        Reading::new(
            match most {
                (Some(fastest), Some(widest)) if (*fastest, *widest) != (generation, width) => {
                    format!("{generation}.0 x{width} of {fastest}.0 x{widest}")
                }
                _ => format!("{generation}.0 x{width}"),
            },
            at,
        )
    }

    /// Whether it is what it can be; none where that is not known. Graphics processors slow their
    /// links while they are idle, which is no fault of theirs; no device gives up lanes.
    pub fn state(&self, identity: &DeviceIdentity) -> Option<LinkState> {
        let below = |now: &Reading<u64>, most: &Reading<u64>| Some(now.value()? < most.value()?);
        let is_slower = below(&self.pcie_generation, &self.pcie_generation_max)?;
        let is_narrower = below(&self.pcie_width, &self.pcie_width_max)?;
        let slows = identity.other().is_some_and(|other| other.class == DeviceClass::Gpu);
        Some(match (is_narrower, is_slower) {
            (false, false) => LinkState::Full,
            (false, true) if slows => LinkState::Idle,
            _ => LinkState::Reduced,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{LinkState, PcieLink};
    use crate::chip::ChipIdentity;
    use crate::clock::Timestamp;
    use crate::device::{DeviceClass, DeviceIdentity, OtherIdentity};
    use crate::reading::{Absence, Reading};

    fn link([generation, width, fastest, widest]: [u64; 4]) -> PcieLink {
        let at = |value| Reading::new(value, Timestamp(1));
        PcieLink {
            pcie_generation: at(generation),
            pcie_width: at(width),
            pcie_generation_max: at(fastest),
            pcie_width_max: at(widest),
            ..PcieLink::absent(Absence::Unsupported, "")
        }
    }

    #[test]
    fn a_link_is_written_with_what_it_lacks() {
        let cases = [
            ([4, 16, 4, 16], "4.0 x16", [LinkState::Full; 2]),
            ([3, 8, 4, 16], "3.0 x8 of 4.0 x16", [LinkState::Reduced; 2]),
            ([1, 16, 4, 16], "1.0 x16 of 4.0 x16", [LinkState::Reduced, LinkState::Idle]),
            ([5, 4, 5, 8], "5.0 x4 of 5.0 x8", [LinkState::Reduced; 2]),
        ];
        let gpu = OtherIdentity::new("0000:03:00.0", "amd", DeviceClass::Gpu);
        let identities = [ChipIdentity::default().into(), DeviceIdentity::from(gpu)];
        for (values, words, states) in cases {
            let link = link(values);
            assert_eq!(link.words().value().map(String::as_str), Some(words));
            let found = identities.each_ref().map(|identity| link.state(identity));
            assert_eq!(found, states.map(Some), "{words}");
        }
    }

    #[test]
    fn what_is_not_known_of_a_link_has_its_reason() {
        let mut link = link([4, 16, 4, 16]);
        link.pcie_width_max = Reading::absent(Absence::Unknown, "");
        assert_eq!(link.words().value().map(String::as_str), Some("4.0 x16"));
        assert_eq!(link.state(&DeviceIdentity::default()), None);
        link.pcie_width = Reading::absent(Absence::TimedOut, "slow");
        assert_eq!(link.words().absence(), Some((Absence::TimedOut, "slow")));
    }
}
