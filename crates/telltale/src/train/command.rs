//! What each worker runs, as torchrun makes it of a script, a module or a program.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use telltale_control_plane::supervisor::can_be_run;
use telltale_schema::text::with_causes;

use crate::arguments::TrainArguments;
use crate::exit::Failure;

/// The interpreter where `PYTHON_EXEC` names none.
const PYTHON: &str = "python3";

/// The command of each worker.
pub(super) fn of(arguments: &TrainArguments) -> Result<Vec<OsString>, Failure> {
    let script = arguments.script.first().map(OsString::as_os_str).unwrap_or_default();
    let with_python = !arguments.no_python || arguments.run_path;
    let is_script = arguments.run_path || Path::new(script).extension() == Some(OsStr::new("py"));
    let before: &[&str] = match (arguments.module, with_python && is_script) {
        (true, _) => &["-u", "-m"],
        (false, true) => &["-u"],
        (false, false) => return Ok(arguments.script.clone()),
    };
    if !arguments.module && !Path::new(script).is_file() {
        let script = script.to_string_lossy();
        return Err(Failure::Message(format!(
            "there is no script {script} in this directory; give its path, or its module behind -m"
        )));
    }
    let python = std::env::var_os("PYTHON_EXEC").filter(|python| !python.is_empty());
    let python = python.unwrap_or_else(|| PYTHON.into());
    let before = before.iter().map(OsString::from);
    Ok(std::iter::once(python).chain(before).chain(arguments.script.iter().cloned()).collect())
}

/// Refuses what cannot be run.
pub(super) fn check(command: &[OsString]) -> Result<(), Failure> {
    let Err(error) = can_be_run(command) else { return Ok(()) };
    let mut text = with_causes(&error);
    let program = command.first().map(Path::new).unwrap_or(Path::new(""));
    if program.components().count() == 1 && program.is_file() {
        let name = program.display();
        text.push_str(&format!(
            "; for the file {name} in this directory write ./{name}, or --run-path if it is a Python script"
        ));
    }
    Err(Failure::Message(text))
}
