//! The `telltale` command: a table of contents. Each subcommand is one module. The four that run for
//! long are programs of their own as well ([`standalone`]), which link nothing else.
#![forbid(unsafe_code)]

mod agent;
mod alerts;
mod arguments;
mod autopsy;
mod chips;
mod cluster;
mod config;
mod coordinator;
mod demo;
mod descriptors;
mod doctor;
mod emulate;
mod events;
mod exit;
mod gpt;
mod health;
mod history;
mod hosts;
mod interrupt;
mod man;
mod new_file;
mod output;
mod parent;
mod private_directory;
mod record;
mod replay;
mod report;
mod run;
mod select;
mod serve;
mod service_timeout;
mod settings;
mod smi;
pub mod standalone;
mod top;
mod train;
mod worker;

use std::process::ExitCode;

use arguments::Command;

/// `telltale COMMAND`: the program that has everything.
pub fn command() -> ExitCode {
    let command = arguments::parse();
    // Workers have the limits that their agent was given, and commands those of their caller.
    let keeps_limits = |command: &Command| {
        matches!(
            command,
            Command::Agent(_)
                | Command::Train(_)
                | Command::Hold(_)
                | Command::Guard(_)
                | Command::Run(_)
        )
    };
    if !command.as_ref().is_ok_and(keeps_limits) {
        descriptors::allow_all();
    }
    // A workload runs with whatever it was given.
    let takes_any = |command: &Command| {
        matches!(command, Command::Hold(_) | Command::Guard(_) | Command::Run(_))
    };
    if command.as_ref().is_ok_and(|command| !takes_any(command))
        && let Err(error) = descriptors::require_enough()
    {
        return exit::code(Err(error.into()));
    }
    let outcome = match command {
        Err(status) => return status,
        Ok(Command::Smi(arguments)) => match arguments.watch.filter(|_| top::shows(&arguments)) {
            Some(period) => top::watch(&arguments, period),
            None => smi::run(&arguments),
        },
        Ok(Command::Top(arguments)) => top::run(&arguments),
        Ok(Command::Serve(arguments)) => serve::run(&arguments),
        Ok(Command::Config(arguments)) => config::run(&arguments),
        Ok(Command::Alerts(arguments)) => alerts::run(&arguments),
        Ok(Command::Doctor(arguments)) => doctor::run(&arguments),
        Ok(Command::Autopsy(arguments)) => autopsy::run(&arguments),
        Ok(Command::Take(arguments)) => autopsy::run_take(arguments),
        Ok(Command::Cluster(arguments)) => cluster::run(&arguments),
        Ok(Command::Health(arguments)) => health::run(&arguments),
        Ok(Command::History(arguments)) => history::run(&arguments),
        Ok(Command::Record(arguments)) => record::run(&arguments),
        Ok(Command::Run(arguments)) => run::run(&arguments),
        Ok(Command::Report(arguments)) => report::run(&arguments),
        Ok(Command::Select(arguments)) => select::run(&arguments),
        Ok(Command::Coordinator(arguments)) => coordinator::run(&arguments),
        Ok(Command::Demo(arguments)) => demo::run(&arguments),
        Ok(Command::Gpt(arguments)) => gpt::run(&arguments),
        Ok(Command::Replay(arguments)) => replay::run(&arguments),
        Ok(Command::Emulate(arguments)) => emulate::run(&arguments),
        Ok(Command::Events(arguments)) => events::run(&arguments),
        Ok(Command::Completions(arguments)) => arguments::print_completions(&arguments),
        Ok(Command::Man(arguments)) => man::run(&arguments),
        Ok(Command::Agent(arguments)) => agent::run(*arguments),
        Ok(Command::Train(arguments)) => train::run(&arguments),
        Ok(Command::Hold(arguments)) => worker::run_hold(arguments),
        Ok(Command::Guard(arguments)) => worker::run_guard(arguments),
    };
    exit::code(outcome)
}
