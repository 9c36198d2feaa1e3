//! The arguments of the programs that are one command alone (`telltale-serve` and its like): those of
//! the command, without its name.

use std::env;
use std::process::ExitCode;

use clap::{Args, Command, Parser, Subcommand};
use telltale_autopsy::request::TAKE;
use telltale_control_plane::supervisor::{GUARD, HOLD};

use super::{
    AgentArguments, CoordinatorArguments, GuardArguments, HoldArguments, MAX_WIDTH, ServeArguments,
    TakeArguments, TopArguments, agent, coordinator, print_error, serve, top,
};

/// A command that is a program of its own.
pub(crate) trait Standalone: Args {
    /// The program's file.
    const PROGRAM: &'static str;
    /// What it does, in a line.
    const ABOUT: &'static str;
    /// What follows the options in its help.
    const HELP: &'static str;
}

impl Standalone for ServeArguments {
    const PROGRAM: &'static str = "telltale-serve";
    const ABOUT: &'static str = serve::SERVE_ABOUT;
    const HELP: &'static str = serve::SERVE_HELP;
}

impl Standalone for TopArguments {
    const PROGRAM: &'static str = "telltale-top";
    const ABOUT: &'static str = top::TOP_ABOUT;
    const HELP: &'static str = top::TOP_HELP;
}

impl Standalone for CoordinatorArguments {
    const PROGRAM: &'static str = "telltale-coordinator";
    const ABOUT: &'static str = coordinator::COORDINATOR_ABOUT;
    const HELP: &'static str = coordinator::COORDINATOR_HELP;
}

impl Standalone for AgentArguments {
    const PROGRAM: &'static str = "telltale-agent";
    const ABOUT: &'static str = agent::AGENT_ABOUT;
    const HELP: &'static str = agent::AGENT_HELP;
}

/// What the agent's program is started for.
pub(crate) enum AgentCommand {
    /// To be the agent.
    Agent(Box<AgentArguments>),
    /// By an agent, to become a worker's command.
    Hold(HoldArguments),
    /// By an agent, to outlive it.
    Guard(GuardArguments),
    /// By an agent, to take the stacks of its workers.
    Take(TakeArguments),
}

/// What an agent starts its own program for.
#[derive(Debug, Parser)]
#[command(name = "telltale-agent")]
struct Internal {
    #[command(subcommand)]
    command: InternalCommand,
}

#[derive(Debug, Subcommand)]
enum InternalCommand {
    #[command(name = HOLD)]
    Hold(HoldArguments),
    #[command(name = GUARD)]
    Guard(GuardArguments),
    #[command(name = TAKE)]
    Take(TakeArguments),
}

/// Parses the command line of a program that is one command, or says what is wrong and which status to
/// exit with.
pub(crate) fn parse_standalone<A: Standalone>() -> Result<A, ExitCode> {
    let matches = definition::<A>().try_get_matches();
    matches.and_then(|matches| A::from_arg_matches(&matches)).map_err(|error| print_error(&error))
}

/// The same for the agent's program, which the agent also starts for each of its workers.
pub(crate) fn parse_agent() -> Result<AgentCommand, ExitCode> {
    let is_internal = env::args_os()
        .nth(1)
        .is_some_and(|first| [HOLD, GUARD, TAKE].iter().any(|own| first == *own));
    if !is_internal {
        return parse_standalone().map(Box::new).map(AgentCommand::Agent);
    }
    match Internal::try_parse().map_err(|error| print_error(&error))?.command {
        InternalCommand::Hold(arguments) => Ok(AgentCommand::Hold(arguments)),
        InternalCommand::Guard(arguments) => Ok(AgentCommand::Guard(arguments)),
        InternalCommand::Take(arguments) => Ok(AgentCommand::Take(arguments)),
    }
}

fn definition<A: Standalone>() -> Command {
    let command =
        Command::new(A::PROGRAM).version(env!("CARGO_PKG_VERSION")).max_term_width(MAX_WIDTH);
    // The arguments bring the first line of their own description with them.
    A::augment_args(command).about(A::ABOUT).after_help(A::HELP)
}

#[cfg(test)]
mod tests {
    use super::{AgentArguments, CoordinatorArguments, ServeArguments, TopArguments, definition};

    #[test]
    fn the_definitions_are_consistent() {
        definition::<ServeArguments>().debug_assert();
        definition::<CoordinatorArguments>().debug_assert();
        definition::<AgentArguments>().debug_assert();
        definition::<TopArguments>().debug_assert();
    }
}
