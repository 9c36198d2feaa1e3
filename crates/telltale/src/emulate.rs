//! `telltale emulate`: an emulated machine until Ctrl-C, which obeys lines of standard input.

mod answers;
mod lines;
mod schedule;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use telltale_emulator::{Emulator, EmulatorOptions, InjectError, MAX_LEFTOVERS};
use telltale_schema::text::{printable, with_causes};

use crate::arguments::EmulateArguments;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use answers::Answers;
use lines::InputLines;
use schedule::Schedule;

/// How long it waits at a time where nothing is to come.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Runs the command.
pub(crate) fn run(arguments: &EmulateArguments) -> Result<Status, Failure> {
    let mut interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let (schedule, faults) = Schedule::new(&arguments.fault);
    let options = EmulatorOptions { faults, ..EmulatorOptions::default() };
    let emulator = Emulator::start(&arguments.root, arguments.machine, options)
        .map_err(|error| Failure::because(&error))?;
    check(&emulator, &schedule)?;
    let root = arguments.root.display();
    exit::tell(&format!(
        "An emulated {} machine runs in {root} until Ctrl-C; look at it with: telltale smi --root \
         {root}",
        arguments.machine,
    ));
    run_until(&interrupt, &emulator, schedule);
    interrupt.finish_undisturbed();
    let left = emulator.shutdown().map_err(|error| Failure::because(&error))?;
    if !left.is_empty() {
        exit::tell(&leftovers(&arguments.root, &left));
    }
    Ok(Status::Fine)
}

/// Whether the faults that are still to begin are of this machine. A chip that is not there now may be
/// by then, under the ordinal with which another fault lets it come back.
fn check(emulator: &Emulator, schedule: &Schedule) -> Result<(), Failure> {
    for fault in schedule.faults() {
        match emulator.check(fault) {
            Ok(()) | Err(InjectError::NoSuchChip(_)) => {}
            Err(error) => {
                let reason = with_causes(&error);
                return Err(Failure::Message(format!("cannot inject the fault {fault}: {reason}")));
            }
        }
    }
    Ok(())
}

/// Obeys lines of standard input and the schedule until Ctrl-C.
fn run_until(interrupt: &Interrupt, emulator: &Emulator, mut schedule: Schedule) {
    let start = Instant::now();
    let (mut input, mut answers) = (InputLines::new(), Answers::new());
    loop {
        let most = schedule.until_next(start.elapsed()).unwrap_or(LONGEST_WAIT);
        if input.wait(interrupt, most.min(LONGEST_WAIT)) {
            return;
        }
        for line in input.read() {
            let answer = match line {
                Ok(line) => emulator.command(&line),
                Err(error) => format!("refused: {error}"),
            };
            answers.write(&printable(&answer));
        }
        for (what, outcome) in schedule.run(emulator, start.elapsed()) {
            match outcome {
                Ok(()) => exit::tell(&what),
                Err(error) => exit::tell(&format!("cannot {what}: {}", with_causes(&error))),
            }
        }
    }
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
