//! `telltale emulate`: an emulated machine until Ctrl-C.

use std::time::Duration;

use telltale_emulator::{Emulator, EmulatorOptions};

use crate::arguments::EmulateArguments;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;

/// Runs the command.
pub(crate) fn run(arguments: &EmulateArguments) -> Result<Status, Failure> {
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
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
    emulator.shutdown().map_err(|error| Failure::because(&error))?;
    Ok(Status::Fine)
}
