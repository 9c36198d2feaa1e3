//! Variables of the environment that stand for options, where an option conflicts with them.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error, Parser};

/// Parses a command line. An option conflicts with another one, but not with a variable: that was
/// set for all commands, and gives way.
///
/// # Errors
/// What clap says: help is among it.
pub(super) fn parse<P: Parser>(
    line: impl IntoIterator<Item = OsString> + Clone,
) -> Result<P, Error> {
    let mut definition = P::command();
    loop {
        let parsed = definition.clone().try_get_matches_from(line.clone());
        let error = match parsed.and_then(|matches| P::from_arg_matches(&matches)) {
            Ok(parsed) => return Ok(parsed),
            Err(error) if error.kind() == ErrorKind::ArgumentConflict => error,
            Err(error) => return Err(error),
        };
        let options = options_of(&error);
        if !reads_variables(&definition, &options) {
            return Err(error);
        }
        definition = without_variables(definition, &options);
    }
}

/// The options that a conflict is between, as they are written: `--root <DIR>`.
fn options_of(error: &Error) -> Vec<String> {
    let named = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| error.get(kind));
    named
        .into_iter()
        .flatten()
        .flat_map(|value| match value {
            ContextValue::String(option) => vec![option.clone()],
            ContextValue::Strings(options) => options.clone(),
            _ => Vec::new(),
        })
        .collect()
}

/// Whether a variable stands for one of these options.
fn reads_variables(command: &Command, options: &[String]) -> bool {
    let has_one = command.get_arguments().any(|one| one.get_env().is_some() && is_of(one, options));
    has_one || command.get_subcommands().any(|one| reads_variables(one, options))
}

fn without_variables(command: Command, options: &[String]) -> Command {
    let command = command.mut_args(|one| match is_of(&one, options) {
        true => one.env(None),
        false => one,
    });
    command.mut_subcommands(|one| without_variables(one, options))
}

fn is_of(one: &Arg, options: &[String]) -> bool {
    let name = one.get_long().map(|long| format!("--{long}"));
    options.iter().any(|option| option.split(' ').next() == name.as_deref())
}
