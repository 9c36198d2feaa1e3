//! Which device: a Tenstorrent chip by its own ids, any other one by what its driver says.
//!
//! The two are kept apart because a Tenstorrent chip is found again in ledgers, in foreign regions
//! and on its board by ids that no other device has. What all devices have is asked by method.

use serde::{Deserialize, Serialize};

use crate::chip::{ChipIdentity, PciAddress};

/// Everything that distinguishes one device from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum DeviceIdentity {
    /// A Tenstorrent chip.
    Chip(ChipIdentity),
    /// A device of another vendor, or the machine itself.
    Other(Box<OtherIdentity>),
}

/// What kind of device one of another vendor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// A graphics processor, which may compute.
    Gpu,
    /// A processor that only computes.
    Accelerator,
    /// A part of another device that has memory and cores of its own (NVIDIA's MIG).
    Partition,
    /// The machine's own processors and memory.
    Host,
}

/// A device that is no Tenstorrent chip. What its driver does not tell is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct OtherIdentity {
    /// How it is shown and distinguished from others of this machine: its PCI address where it has one.
    pub name: String,
    /// Whose it is: `amd`, `intel`, `nvidia`, `aws`, `host`, or the PCI vendor id as `0x1eac`.
    pub vendor: String,
    /// What kind of device it is.
    pub class: DeviceClass,
    /// What the vendor calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The kernel driver that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The driver's number for it. Can change when the machine is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_ordinal: Option<u32>,
    /// Where its PCI function sits; of a partition, that of its device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// The vendor's lasting id of this one device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The serial number of the board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The name of the device that this is a partition of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

// === impl DeviceIdentity ===

impl DeviceIdentity {
    /// How the device is shown, see [`ChipIdentity::display_id`] and [`OtherIdentity::name`].
    pub fn display_id(&self) -> String {
        match self {
            Self::Chip(chip) => chip.display_id(),
            Self::Other(other) => other.name.clone(),
        }
    }

    /// The chip, where it is Tenstorrent's.
    pub fn chip(&self) -> Option<&ChipIdentity> {
        match self {
            Self::Chip(chip) => Some(chip),
            Self::Other(_) => None,
        }
    }

    /// The device of another vendor, where it is one.
    pub fn other(&self) -> Option<&OtherIdentity> {
        match self {
            Self::Chip(_) => None,
            Self::Other(other) => Some(other),
        }
    }

    /// Whose it is.
    pub fn vendor(&self) -> &str {
        self.other().map_or("tenstorrent", |other| &other.vendor)
    }

    /// What it is, for a person: the type of a Tenstorrent board, another vendor's model, else the
    /// driver's name.
    pub fn product(&self) -> &str {
        match self {
            Self::Chip(chip) => chip.board_type.name(),
            Self::Other(other) => {
                other.model.as_deref().or(other.driver.as_deref()).unwrap_or("unknown")
            }
        }
    }

    /// Where its PCI function sits.
    pub fn pci(&self) -> Option<PciAddress> {
        match self {
            Self::Chip(chip) => chip.pci,
            Self::Other(other) => other.pci,
        }
    }

    /// Whether it is a chip that is reached through another one, of which the driver shows nothing.
    pub fn is_remote(&self) -> bool {
        self.chip().is_some_and(|chip| chip.remote)
    }

    /// Whether it is the machine itself and no accelerator.
    pub fn is_host(&self) -> bool {
        self.other().is_some_and(|other| other.class == DeviceClass::Host)
    }
}

impl Default for DeviceIdentity {
    /// A device of which nothing is known.
    fn default() -> Self {
        Self::Chip(ChipIdentity::default())
    }
}

impl From<ChipIdentity> for DeviceIdentity {
    fn from(chip: ChipIdentity) -> Self {
        Self::Chip(chip)
    }
}

impl From<OtherIdentity> for DeviceIdentity {
    fn from(other: OtherIdentity) -> Self {
        Self::Other(Box::new(other))
    }
}

// === impl OtherIdentity ===

impl OtherIdentity {
    /// A device of which nothing more is known.
    pub fn new(name: impl Into<String>, vendor: impl Into<String>, class: DeviceClass) -> Self {
        Self {
            name: name.into(),
            vendor: vendor.into(),
            class,
            model: None,
            driver: None,
            driver_ordinal: None,
            pci: None,
            uuid: None,
            serial: None,
            parent: None,
        }
    }
}

// === impl DeviceClass ===

impl DeviceClass {
    /// All classes, in the order of their numbers in messages.
    pub const ALL: [Self; 4] = [Self::Gpu, Self::Accelerator, Self::Partition, Self::Host];

    /// The name in JSON and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
            Self::Partition => "partition",
            Self::Host => "host",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceClass, DeviceIdentity, OtherIdentity};
    use crate::chip::{AsicId, BoardType, ChipIdentity};

    fn chip() -> ChipIdentity {
        ChipIdentity {
            asic_id: Some(AsicId(0x2_5173_2099)),
            board_type: BoardType::N300,
            ..ChipIdentity::default()
        }
    }

    fn gpu() -> OtherIdentity {
        OtherIdentity {
            model: Some("Radeon".into()),
            pci: Some("0000:03:00.0".parse().unwrap()),
            ..OtherIdentity::new("0000:03:00.0", "amd", DeviceClass::Gpu)
        }
    }

    #[test]
    fn a_chip_is_in_json_as_it_was_before_there_were_other_devices() {
        let identity = DeviceIdentity::from(chip());
        let text = serde_json::to_string(&identity).unwrap();
        assert_eq!(text, serde_json::to_string(&chip()).unwrap());
        assert_eq!(serde_json::from_str::<DeviceIdentity>(&text).unwrap(), identity);
    }

    #[test]
    fn another_device_survives_json_and_is_no_chip() {
        let identity = DeviceIdentity::from(gpu());
        let text = serde_json::to_string(&identity).unwrap();
        let expected = r#"{"name":"0000:03:00.0","vendor":"amd","class":"gpu","model":"Radeon","pci":"0000:03:00.0"}"#;
        assert_eq!(text, expected);
        let found: DeviceIdentity = serde_json::from_str(&text).unwrap();
        assert_eq!(found, identity);
        assert!(found.chip().is_none());
        for class in DeviceClass::ALL {
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{}\"", class.name()));
        }
    }

    #[test]
    fn what_all_devices_have_is_asked_alike() {
        let (chip, other) = (DeviceIdentity::from(chip()), DeviceIdentity::from(gpu()));
        assert_eq!((chip.vendor(), chip.product()), ("tenstorrent", "n300"));
        assert_eq!((other.vendor(), other.product()), ("amd", "Radeon"));
        assert_eq!(chip.display_id(), "251732099");
        assert_eq!(other.display_id(), "0000:03:00.0");
        assert_eq!((chip.pci().is_some(), other.pci().is_some()), (false, true));
        let unknown = OtherIdentity { driver: Some("xe".into()), model: None, ..gpu() };
        assert_eq!(DeviceIdentity::from(unknown).product(), "xe");
        let host = OtherIdentity::new("host", "host", DeviceClass::Host);
        assert!(DeviceIdentity::from(host).is_host() && !other.is_host());
    }
}
