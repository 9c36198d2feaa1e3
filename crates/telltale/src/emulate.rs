//! `telltale emulate`: an emulated machine until Ctrl-C.

use std::time::Duration;

use telltale_emulator::{Emulator, EmulatorOptions};

use crate::arguments::EmulateArguments;
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;

/// Runs the command.
pub(crate) fn run(arguments: &EmulateArguments) -> Result<Status, Failure> {
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let options = EmulatorOptions::default();
    let emulator = Emulator::start(&arguments.root, arguments.machine, options)
        .map_err(|error| Failure::because(&error))?;
    for fault in &arguments.fault {
        emulator.inject(fault.clone()).map_err(|error| Failure::because(&error))?;
    }
    eprintln!(
        "An emulated {} machine runs in {}; look at it with: telltale smi --root {}",
        arguments.machine,
        arguments.root.display(),
        arguments.root.display()
    );
    while !interrupt.sleep(Duration::from_secs(3600)) {}
    emulator.shutdown().map_err(|error| Failure::because(&error))?;
    Ok(Status::Fine)
}
