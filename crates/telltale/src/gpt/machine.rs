//! The machine that a training runs on: one that is emulated, or one inside this process.

use std::path::{Path, PathBuf};

use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};

use crate::chips;
use crate::exit::Failure;
use crate::private_directory::PrivateDirectory;

/// How the directory of a machine inside this process is named, before its pid.
const DIRECTORY_PREFIX: &str = "telltale-gpt-";

/// A machine. Dropping one inside this process ends and removes it.
pub(super) struct TrainingMachine {
    root: PathBuf,
    own: Option<Own>,
}

/// A machine inside this process.
struct Own {
    directory: PrivateDirectory,
    emulator: Option<Emulator>,
}

impl TrainingMachine {
    /// The machine below `root`, or a new one.
    pub(super) fn open(root: Option<&Path>) -> Result<Self, Failure> {
        if let Some(root) = root {
            return Ok(Self { root: root.to_owned(), own: None });
        }
        let directory = PrivateDirectory::make(DIRECTORY_PREFIX)?;
        let root = directory.path().to_owned();
        let mut own = Own { directory, emulator: None };
        let emulator = Emulator::start(&root, MachineKind::N300, EmulatorOptions::default())
            .map_err(|error| Failure::because(&error))?;
        own.emulator = Some(emulator);
        Ok(Self { root, own: Some(own) })
    }

    /// Where it is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The device and the place in it of chip `number`.
    pub(super) fn chip(&self, number: usize) -> Result<(u32, usize), Failure> {
        let chips::ChipLocation { ordinal, chip, .. } = chips::find(&self.root, number)?;
        Ok((ordinal, chip))
    }

    /// Ends and removes a machine inside this process; says what could not be.
    pub(super) fn strike(mut self) -> Result<(), Failure> {
        let Some(own) = &mut self.own else { return Ok(()) };
        if let Some(emulator) = own.emulator.take() {
            // Whatever is left in the directory goes with it.
            let _ = emulator.shutdown().map_err(|error| Failure::because(&error))?;
        }
        own.directory.remove().map_err(|error| {
            let path = own.directory.path().display();
            Failure::Message(format!("removing the machine's directory {path} failed: {error}"))
        })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.emulator.take();
        let _ = self.directory.remove();
    }
}
