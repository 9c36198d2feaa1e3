//! Devices as people name them: by index, id, or PCI address.

use std::fmt;
use std::str::FromStr;

use telltale_schema::snapshot::{Device, Snapshot};

use crate::selection::restricted;

/// Names in one list at most.
const MAX_NAMES: usize = 256;

/// A list of devices, separated by commas: places in the list of devices from 0 on (`0`), ids (`251732099`, `T1:N0`),
/// or PCI addresses (`0000:03:00.0`, `03:00.0`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceList(Vec<String>);

/// Why a list names no devices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceListError {
    /// A name is empty.
    #[error("a name of a device is missing; `telltale smi -L` lists them")]
    Empty,
    /// A list without end.
    #[error("these are more than {MAX_NAMES} devices")]
    TooMany,
}

/// A name that no device has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no device {name}; `telltale smi -L` lists {}", match devices { 1 => "the one there is".to_owned(), _ => format!("the {devices} there are") })]
pub struct NoSuchDevice {
    name: String,
    devices: usize,
}

// === impl DeviceList ===

impl DeviceList {
    /// Whether there is a device for each name in one of these snapshots.
    ///
    /// # Errors
    /// With the first name that no device has.
    pub fn check<'s>(
        &self,
        snapshots: impl Iterator<Item = &'s Snapshot> + Clone,
    ) -> Result<(), NoSuchDevice> {
        let is_absent = |name: &&String| {
            snapshots.clone().all(|snapshot| place_of(name, &snapshot.devices).is_none())
        };
        match self.0.iter().find(is_absent) {
            Some(name) => {
                let devices = snapshots.clone().map(|snapshot| snapshot.devices.len()).sum();
                Err(NoSuchDevice { name: name.clone(), devices })
            }
            None => Ok(()),
        }
    }

    /// The snapshot with these devices, as far as they are there, and what processes have on them.
    #[must_use]
    pub fn select(&self, snapshot: &Snapshot) -> Snapshot {
        let mut wanted = vec![false; snapshot.devices.len()];
        for place in self.0.iter().filter_map(|name| place_of(name, &snapshot.devices)) {
            wanted[place] = true;
        }
        let is_wanted = |place: usize| wanted.get(place).is_some_and(|wanted| *wanted);
        let mut processes = snapshot.processes.clone();
        for process in &mut processes {
            process.devices.retain(|held| is_wanted(held.device));
        }
        processes.retain(|process| !process.devices.is_empty());
        restricted(snapshot, &wanted, processes)
    }
}

impl FromStr for DeviceList {
    type Err = DeviceListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        match names.len() {
            _ if names.iter().any(String::is_empty) => Err(DeviceListError::Empty),
            count if count > MAX_NAMES => Err(DeviceListError::TooMany),
            _ => Ok(Self(names)),
        }
    }
}

impl fmt::Display for DeviceList {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0.join(", "))
    }
}

/// The device that is meant: of the names that it may be, an id comes first.
fn place_of(name: &str, devices: &[Device]) -> Option<usize> {
    let by_id = || devices.iter().position(|device| device.id.eq_ignore_ascii_case(name));
    let by_place = || name.parse().ok().filter(|place| *place < devices.len());
    let by_address = || devices.iter().position(|device| has_address(device, name));
    by_id().or_else(by_place).or_else(by_address)
}

/// Whether a device has this PCI address; a remote chip has its gateway's, by which that is meant.
fn has_address(device: &Device, name: &str) -> bool {
    let Some(pci) = device.identity.pci().filter(|_| !device.identity.is_remote()) else {
        return false;
    };
    let pci = pci.to_string();
    let short = pci.strip_prefix("0000:").unwrap_or(&pci);
    pci.eq_ignore_ascii_case(name) || short.eq_ignore_ascii_case(name)
}
