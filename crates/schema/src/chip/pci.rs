//! Where a PCI function sits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A PCI address, printed `0000:03:00.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    /// The domain (segment).
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on the bus, 0 to 31.
    pub device: u8,
    /// The function of the device, 0 to 7.
    pub function: u8,
}

/// A text that is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a PCI address such as 0000:03:00.0: {0:?}")]
pub struct ParsePciAddressError(pub String);

impl PciAddress {
    /// The address as one number: domain, bus, device and function from high to low bits.
    pub fn to_bits(self) -> u64 {
        u64::from(self.domain) << 16
            | u64::from(self.bus) << 8
            | u64::from(self.device & 0x1F) << 3
            | u64::from(self.function & 7)
    }

    /// The address from the number [`Self::to_bits`] gives; none if the domain is too large.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let [.., bus, devfn] = bits.to_be_bytes();
        let domain = u32::try_from(bits >> 16).ok()?;
        Some(Self { domain, bus, device: devfn >> 3, function: devfn & 7 })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(to, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = ParsePciAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParsePciAddressError(text.chars().take(64).collect()))
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let number = |text: &str, digits: usize| {
        let clean = !text.is_empty()
            && text.len() <= digits
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        clean.then(|| u32::from_str_radix(text, 16).ok()).flatten()
    };
    let device = u8::try_from(number(device, 2)?).ok().filter(|device| *device < 32)?;
    let function = u8::try_from(number(function, 1)?).ok().filter(|function| *function < 8)?;
    let bus = u8::try_from(number(bus, 2)?).ok()?;
    Some(PciAddress { domain: number(domain, 8)?, bus, device, function })
}

impl TryFrom<String> for PciAddress {
    type Error = ParsePciAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::PciAddress;

    #[test]
    fn addresses_survive_text_and_bits() {
        for text in ["0000:03:00.0", "10000:ff:1f.7"] {
            let address: PciAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(PciAddress::from_bits(address.to_bits()), Some(address));
        }
        for bad in ["", "0000:03:00", "0000:03:20.0", "0000:03:00.8", "+000:03:00.0", "0:0:0:0.0"] {
            assert!(bad.parse::<PciAddress>().is_err(), "{bad}");
        }
        assert_eq!(PciAddress::from_bits(u64::MAX), None);
    }
}
