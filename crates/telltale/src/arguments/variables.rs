//! Variables of the environment that stand for options, where an option conflicts with them.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error, Parser};

/// Parses a command line. An option conflicts with another one, but not with a variable: that was
/// set for all commands, and gives way. Two variables that conflict are an error: which of them is
/// meant, no option says.
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
        let Ok(given) = definition.clone().ignore_errors(true).try_get_matches_from(line.clone())
        else {
            return Err(error);
        };
        let variables = variables_that_give_way(&error, &definition, &given);
        if variables.is_empty() {
            return Err(error);
        }
        definition = without_variables(definition, &variables);
    }
}

/// The options of a conflict that come from variables, where what they conflict with is on the
/// command line.
fn variables_that_give_way(error: &Error, command: &Command, given: &ArgMatches) -> Vec<String> {
    let named = |kind, source| -> Vec<String> {
        let options = options_of(error, kind).into_iter();
        options.filter(|option| source_of(command, given, option) == Some(source)).collect()
    };
    let sides = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let is_given = |kind| !named(kind, ValueSource::CommandLine).is_empty();
    let [one, other] = sides;
    [(one, other), (other, one)]
        .into_iter()
        .filter(|(_, against)| is_given(*against))
        .flat_map(|(side, _)| named(side, ValueSource::EnvVariable))
        .collect()
}

/// The options on one side of a conflict, without their values: `--root`.
fn options_of(error: &Error, side: ContextKind) -> Vec<String> {
    let written = match error.get(side) {
        Some(ContextValue::String(option)) => vec![option.as_str()],
        Some(ContextValue::Strings(options)) => options.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    written.into_iter().filter_map(|one| one.split(' ').next()).map(str::to_owned).collect()
}

/// Where an option's value comes from, in the command that was called.
fn source_of(command: &Command, given: &ArgMatches, option: &str) -> Option<ValueSource> {
    let inner = given
        .subcommand()
        .and_then(|(name, given)| source_of(command.find_subcommand(name)?, given, option));
    let here = || {
        let one = command.get_arguments().find(|one| is_of(one, option))?;
        // Asking for one that was not built in, such as help's, would panic.
        given.try_contains_id(one.get_id().as_str()).ok()?;
        given.value_source(one.get_id().as_str())
    };
    inner.or_else(here)
}

fn without_variables(command: Command, options: &[String]) -> Command {
    let command = command.mut_args(|one| match options.iter().any(|option| is_of(&one, option)) {
        true => one.env(None),
        false => one,
    });
    command.mut_subcommands(|one| without_variables(one, options))
}

fn is_of(one: &Arg, option: &str) -> bool {
    one.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use clap::Parser;
    use clap::error::ErrorKind;

    use super::parse;

    /// Two options for which variables stand that are always set here, and one without.
    #[derive(Debug, Parser)]
    struct Line {
        #[arg(long, env = "CARGO_MANIFEST_DIR")]
        root: Option<PathBuf>,
        #[arg(long, env = "CARGO_PKG_NAME", conflicts_with = "root")]
        host: Option<String>,
        #[arg(long, conflicts_with_all = ["root", "host"])]
        file: Option<PathBuf>,
    }

    fn parsed(arguments: &[&str]) -> Result<[bool; 3], ErrorKind> {
        let line = ["x"].iter().chain(arguments).map(OsString::from).collect::<Vec<_>>();
        let parsed: Result<Line, _> = parse(line);
        parsed
            .map(|line| [line.root.is_some(), line.host.is_some(), line.file.is_some()])
            .map_err(|error| error.kind())
    }

    #[test]
    fn a_variable_gives_way_to_an_option_and_not_to_another_variable() {
        let conflict = Err(ErrorKind::ArgumentConflict);
        for (arguments, expected) in [
            (&[][..], conflict),
            (&["--root", "/"], Ok([true, false, false])),
            (&["--host", "a"], Ok([false, true, false])),
            (&["--file", "f"], Ok([false, false, true])),
            (&["--root", "/", "--host", "a"], conflict),
            (&["--root", "/", "--file", "f"], conflict),
            (&["--nothing"], Err(ErrorKind::UnknownArgument)),
        ] {
            assert_eq!(parsed(arguments), expected, "{arguments:?}");
        }
    }
}
