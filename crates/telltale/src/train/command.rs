//! What each worker runs, as torchrun makes it of a script, a module or a program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use telltale_control_plane::supervisor::{CommandError, can_be_run};
use telltale_schema::text::with_causes;

use crate::arguments::TrainArguments;
use crate::exit::Failure;

/// The interpreter, where none is named.
const PYTHON: &str = "python3";
/// The file by which a directory of programs is known for that of a virtual environment (PEP 405).
const ENVIRONMENT: &str = "../pyvenv.cfg";

/// The command of each worker, which can be run.
pub(super) fn of(arguments: &TrainArguments) -> Result<Vec<OsString>, Failure> {
    let script = arguments.script.first().map(OsString::as_os_str).unwrap_or_default();
    if script.is_empty() {
        let text = "SCRIPT is empty; give a script, a module behind -m, or a program";
        return Err(Failure::Usage(text.to_owned()));
    }
    let Some(options) = python_options(arguments, script) else {
        let refused = |error| Failure::Message(without_python(&error, Path::new(script)));
        can_be_run(&arguments.script).map_err(refused)?;
        return Ok(arguments.script.clone());
    };
    if !arguments.module && !Path::new(script).exists() {
        let script = script.to_string_lossy();
        let here = if script.contains('/') { "" } else { " in this directory" };
        return Err(Failure::Message(format!(
            "there is no script {script}{here}; give its path, or its module behind -m"
        )));
    }
    let python = [python()];
    can_be_run(&python).map_err(|error| Failure::Message(no_python(&error)))?;
    let options = options.iter().map(OsString::from);
    Ok(python.into_iter().chain(options).chain(arguments.script.iter().cloned()).collect())
}

/// The options of Python for a script; none for a program.
fn python_options(arguments: &TrainArguments, script: &OsStr) -> Option<&'static [&'static str]> {
    let with_python = !arguments.no_python || arguments.run_path;
    let is_script = arguments.run_path || Path::new(script).extension() == Some(OsStr::new("py"));
    match (arguments.module, with_python && is_script) {
        (true, _) => Some(&["-u", "-m"]),
        (false, true) => Some(&["-u"]),
        (false, false) => None,
    }
}

/// The interpreter: what `PYTHON_EXEC` names; that of the virtual environment whose `telltale` was started; the first
/// in `PATH`.
fn python() -> OsString {
    let named = std::env::var_os("PYTHON_EXEC").filter(|python| !python.is_empty());
    let beside = || Some(directory_of_this_program()?.join(PYTHON));
    let is_environments =
        |python: &PathBuf| python.is_file() && python.with_file_name(ENVIRONMENT).is_file();
    let named = named.or_else(|| beside().filter(is_environments).map(PathBuf::into_os_string));
    named.unwrap_or_else(|| PYTHON.into())
}

/// Where this program lies under the name by which it was started: a link may lead there from an environment, or
/// out of one.
fn directory_of_this_program() -> Option<PathBuf> {
    let called = PathBuf::from(std::env::args_os().next()?);
    if called.components().count() > 1 {
        return Some(std::path::absolute(called).ok()?.parent()?.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|directory| directory.join(&called).is_file())
}

/// Why there is no interpreter.
fn no_python(error: &CommandError) -> String {
    let what = match error {
        CommandError::NotInPath { program, path } => {
            format!("{} is in none of the directories of PATH ({path})", program.display())
        }
        CommandError::Missing { program } => format!("there is no {}", program.display()),
        CommandError::NotExecutable { program } => {
            format!("{} may not be executed by this user", program.display())
        }
    };
    format!("{what}; install Python 3, or name one in the variable PYTHON_EXEC")
}

/// Why a program cannot be run, and how it may if it is a script.
fn without_python(error: &CommandError, program: &Path) -> String {
    let name = program.display();
    let is_bare = program.components().count() == 1;
    match error {
        CommandError::NotExecutable { .. } if program.is_dir() => {
            format!(
                "{name} is a directory; give the script in it, or write --run-path before it if it has a __main__.py"
            )
        }
        CommandError::NotExecutable { .. } if program.is_file() => {
            format!(
                "{name} may not be executed by this user; write --run-path before it if it is a Python script, or `chmod +x {name}`"
            )
        }
        _ if is_bare && program.is_file() => {
            format!(
                "{name} is in none of the directories of PATH; for the file in this directory write ./{name}, or --run-path before it if it is a Python script"
            )
        }
        _ => with_causes(error),
    }
}
