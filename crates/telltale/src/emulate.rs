//! `telltale emulate`: an emulated machine until Ctrl-C.

use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_emulator::{Emulator, EmulatorOptions, MAX_LEFTOVERS};

use crate::arguments::EmulateArguments;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;

/// Runs the command.
pub(crate) fn run(arguments: &EmulateArguments) -> Result<Status, Failure> {
    let mut interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let options = EmulatorOptions { faults: arguments.fault.clone(), ..EmulatorOptions::default() };
    let emulator = Emulator::start(&arguments.root, arguments.machine, options)
        .map_err(|error| Failure::because(&error))?;
    let root = arguments.root.display();
    exit::tell(&format!(
        "An emulated {} machine runs in {root} until Ctrl-C; look at it with: telltale smi --root \
         {root}",
        arguments.machine,
    ));
    while !interrupt.sleep(Duration::from_secs(3600)) {}
    interrupt.finish_undisturbed();
    let left = emulator.shutdown().map_err(|error| Failure::because(&error))?;
    if !left.is_empty() {
        exit::tell(&leftovers(&arguments.root, &left));
    }
    Ok(Status::Fine)
}

/// Why the machine's directory is still there.
fn leftovers(root: &Path, left: &[PathBuf]) -> String {
    let named = left.iter().take(MAX_LEFTOVERS - 1);
    let mut names: Vec<String> = named.map(|path| path.display().to_string()).collect();
    if left.len() == MAX_LEFTOVERS {
        names.push("and others".to_owned());
    }
    format!(
        "The machine has ended. {} stays, because it has files that the machine did not make: {}; \
         remove them when they are not needed.",
        root.display(),
        names.join(", ")
    )
}
