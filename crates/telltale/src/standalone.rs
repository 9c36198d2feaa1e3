//! The commands that run for long, each as a program of its own: what such a program does not run is
//! not linked, and so not resident (docs/decisions/0090-programs-of-daemons.md).

use std::process::ExitCode;

use crate::arguments::{self, AgentCommand, Standalone};
use crate::exit::{self, Failure, Status};
use crate::{agent, autopsy, coordinator, descriptors, serve, top, worker};

/// `telltale serve`.
pub fn serve() -> ExitCode {
    run(serve::run)
}

/// `telltale top`.
pub fn top() -> ExitCode {
    run(top::run)
}

/// `telltale coordinator`.
pub fn coordinator() -> ExitCode {
    run(coordinator::run)
}

/// `telltale agent`, and what an agent starts for itself. Workers have the limits that their agent was
/// given.
pub fn agent() -> ExitCode {
    match arguments::parse_agent() {
        Ok(AgentCommand::Agent(arguments)) => {
            let enough = descriptors::require_enough().map_err(Failure::from);
            exit::code(enough.and_then(|()| agent::run(*arguments)))
        }
        Ok(AgentCommand::Hold(arguments)) => exit::code(worker::run_hold(arguments)),
        Ok(AgentCommand::Take(arguments)) => exit::code(autopsy::run_take(arguments)),
        Ok(AgentCommand::Guard(arguments)) => exit::code(worker::run_guard(arguments)),
        Err(status) => status,
    }
}

/// Parses the command line and runs the command, with as many files as it may open.
fn run<A: Standalone>(command: impl FnOnce(&A) -> Result<Status, Failure>) -> ExitCode {
    match arguments::parse_standalone::<A>() {
        Ok(arguments) => {
            descriptors::allow_all();
            let enough = descriptors::require_enough().map_err(Failure::from);
            exit::code(enough.and_then(|()| command(&arguments)))
        }
        Err(status) => status,
    }
}
