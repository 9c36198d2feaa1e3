//! Chips of an emulated machine by one number each, counted over all its devices.

use std::fs;
use std::path::Path;

use telltale_emulator::DeviceClient;

use crate::exit::Failure;

/// Devices of one machine that are scanned for a chip.
const MOST_DEVICES: usize = 1024;

/// Where a chip is.
pub(crate) struct ChipLocation {
    /// Its device, open.
    pub(crate) device: DeviceClient,
    /// The device's number at the driver.
    pub(crate) ordinal: u32,
    /// The chip's place in the device.
    pub(crate) chip: usize,
}

/// Finds chip `number` of the machine below `root`.
pub(crate) fn find(root: &Path, number: usize) -> Result<ChipLocation, Failure> {
    let mut before = 0;
    for ordinal in ordinals(root)? {
        let device = DeviceClient::open(root, ordinal).map_err(|error| Failure::because(&error))?;
        let count = device.chips().len();
        if number < before + count {
            return Ok(ChipLocation { device, ordinal, chip: number - before });
        }
        before += count;
    }
    Err(no_such(number, before))
}

/// That a machine of `count` chips has none of this number.
pub(crate) fn no_such(number: usize, count: usize) -> Failure {
    let there = match count {
        0 => String::from("no chip at all"),
        1 => String::from("chip 0 only"),
        several => format!("chips 0 to {}", several - 1),
    };
    Failure::Message(format!(
        "there is no chip {number}: the machine has {there}; choose with --device"
    ))
}

fn ordinals(root: &Path) -> Result<Vec<u32>, Failure> {
    let directory = root.join("dev/tenstorrent");
    let entries = fs::read_dir(&directory).map_err(|error| {
        Failure::Message(format!(
            "no emulated machine in {}: {error}; start one with `telltale emulate --machine n300 \
             --root {}`",
            root.display(),
            root.display()
        ))
    })?;
    let mut found: Vec<u32> = entries
        .flatten()
        .take(MOST_DEVICES)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable();
    Ok(found)
}
