//! The chip that a trace is replayed on: one of an emulated machine, or one inside this process.

use std::path::Path;

use telltale_emulator::{
    AllocateError, Chip, ChipDescription, DeviceClient, DeviceError, MachineKind, MachineOptions,
};
use telltale_runtime::DeviceDescription;
use telltale_schema::memory::MemoryKind;

use crate::chips;
use crate::exit::Failure;

/// What the chip inside this process knows its owner by.
const OWNER: u64 = 1;

/// An emulated chip that gives addresses.
pub(super) enum ReplayedChip {
    /// A chip of the machine below `--root`.
    Machine { device: DeviceClient, chip: usize, number: usize },
    /// A chip inside this process.
    Inside { chip: Box<Chip>, number: usize },
}

impl ReplayedChip {
    /// Opens chip `number`, counted over all devices of the machine.
    pub(super) fn open(root: Option<&Path>, number: usize) -> Result<Self, Failure> {
        let Some(root) = root else {
            let chips = MachineKind::N300.chips(&MachineOptions::default());
            let description = chip_numbered(chips, number)?;
            return Ok(Self::Inside { chip: Box::new(Chip::new(description)), number });
        };
        let chips::ChipLocation { device, chip, .. } = chips::find(root, number)?;
        Ok(Self::Machine { device, chip, number })
    }

    /// What the runtime learns about the chip.
    pub(super) fn description(&self) -> DeviceDescription {
        let found = self.found();
        DeviceDescription {
            identity: found.identity.clone(),
            logical_id: u32::try_from(self.number()).unwrap_or(u32::MAX),
            facts: Some(found.facts),
        }
    }

    /// How the chip is shown.
    pub(super) fn name(&self) -> String {
        self.found().identity.display_id()
    }

    fn number(&self) -> usize {
        match self {
            Self::Machine { number, .. } | Self::Inside { number, .. } => *number,
        }
    }

    fn found(&self) -> &ChipDescription {
        match self {
            Self::Machine { device, chip, .. } => &device.chips()[*chip],
            Self::Inside { chip, .. } => chip.description(),
        }
    }

    /// Takes memory; none when the chip has too little of it.
    pub(super) fn allocate(
        &mut self,
        kind: MemoryKind,
        bytes: u64,
    ) -> Result<Option<u64>, Failure> {
        let refused = |error: AllocateError| match error {
            AllocateError::OutOfMemory { .. } => Ok(None),
            other => Err(Failure::because(&other)),
        };
        match self {
            Self::Machine { device, chip, .. } => match device.allocate(*chip, kind, bytes) {
                Ok(address) => Ok(Some(address)),
                Err(DeviceError::Allocate(error)) => refused(error),
                Err(error) => Err(Failure::because(&error)),
            },
            Self::Inside { chip, .. } => match chip.allocate(OWNER, kind, bytes) {
                Ok(address) => Ok(Some(address)),
                Err(error) => refused(error),
            },
        }
    }

    /// Gives memory back.
    pub(super) fn free(&mut self, kind: MemoryKind, address: u64) -> Result<(), Failure> {
        match self {
            Self::Machine { device, chip, .. } => {
                device.free(*chip, kind, address).map_err(|error| Failure::because(&error))
            }
            Self::Inside { chip, .. } => match chip.free(OWNER, kind, address) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failure::because(&error)),
            },
        }
    }
}

fn chip_numbered(chips: Vec<ChipDescription>, number: usize) -> Result<ChipDescription, Failure> {
    let count = chips.len();
    chips.into_iter().nth(number).ok_or_else(|| chips::no_such(number, count))
}
