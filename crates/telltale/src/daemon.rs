//! The commands that run for long, each as a program of its own: what such a program does not run is
//! not linked, and so not resident (docs/decisions/0090-programs-of-daemons.md).

use std::process::ExitCode;

use crate::arguments::{self, AgentCommand};
use crate::{agent, coordinator, descriptors, exit, serve, worker};

/// `telltale serve`.
pub fn serve() -> ExitCode {
    match arguments::parse_daemon() {
        Ok(arguments) => {
            descriptors::allow_all();
            exit::code(serve::run(&arguments))
        }
        Err(status) => status,
    }
}

/// `telltale coordinator`.
pub fn coordinator() -> ExitCode {
    match arguments::parse_daemon() {
        Ok(arguments) => {
            descriptors::allow_all();
            exit::code(coordinator::run(&arguments))
        }
        Err(status) => status,
    }
}

/// `telltale agent`, and what an agent starts for itself. Workers have the limits that their agent was
/// given.
pub fn agent() -> ExitCode {
    match arguments::parse_agent() {
        Ok(AgentCommand::Agent(arguments)) => exit::code(agent::run(*arguments)),
        Ok(AgentCommand::Hold(arguments)) => exit::code(worker::run_hold(arguments)),
        Ok(AgentCommand::Guard(arguments)) => exit::code(worker::run_guard(arguments)),
        Err(status) => status,
    }
}
