//! Whether a command can be executed at all: found before anything is started, and distinguished from what
//! may pass when executing it fails.
//!
//! It looks where execvp(3) does, and runs nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use thiserror::Error;

/// Where programs are searched for without `PATH` (execvp(3)).
const USUAL_PATH: &str = "/bin:/usr/bin";

/// What a command that cannot be executed fails with until mended (execve(2)). What is
/// not here, memory or a text file that is written at the moment, may be otherwise the next time.
const LASTING: [Errno; 11] = [
    Errno::NOENT,
    Errno::ACCESS,
    Errno::PERM,
    Errno::NOTDIR,
    Errno::ISDIR,
    Errno::LOOP,
    Errno::NAMETOOLONG,
    Errno::NOEXEC,
    Errno::INVAL,
    Errno::LIBBAD,
    Errno::TOOBIG,
];

/// Why a command can never be executed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// Nothing has its name.
    #[error(
        "{program:?} is in none of the directories of PATH ({path}); give a program that is there, or its path, behind `--`"
    )]
    NotInPath {
        /// The program.
        program: OsString,
        /// Where it was searched for.
        path: String,
    },
    /// There is no such file.
    #[error("there is no program {program}; give one that is there behind `--`")]
    Missing {
        /// Its path.
        program: PathBuf,
    },
    /// It is there, and is no program.
    #[error(
        "{program} may not be executed by this user; give a program behind `--`, or say which interpreter runs it"
    )]
    NotExecutable {
        /// Its path.
        program: PathBuf,
    },
}

/// Whether a command's program is there and may be executed.
///
/// # Errors
/// When it is not, or may not be.
pub fn can_be_run(command: &[OsString]) -> Result<(), CommandError> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    // Without a command the agent's arguments are refused.
    command.first().map_or(Ok(()), |program| find(program, &path))
}

fn find(program: &OsStr, path: &OsStr) -> Result<(), CommandError> {
    if program.as_bytes().contains(&b'/') {
        let program = Path::new(program);
        return match is_program(program) {
            Some(true) => Ok(()),
            Some(false) => Err(CommandError::NotExecutable { program: program.into() }),
            None => Err(CommandError::Missing { program: program.into() }),
        };
    }
    let mut unfit = None;
    for directory in std::env::split_paths(path) {
        let beside = directory.join(program);
        match is_program(&beside) {
            Some(true) => return Ok(()),
            Some(false) => unfit = unfit.or(Some(beside)),
            None => {}
        }
    }
    Err(match unfit {
        Some(program) => CommandError::NotExecutable { program },
        None => CommandError::NotInPath {
            program: program.into(),
            path: path.to_string_lossy().into_owned(),
        },
    })
}

/// Whether a file may be executed; nothing where there is none.
fn is_program(path: &Path) -> Option<bool> {
    let found = path.metadata().ok()?;
    Some(found.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Whether a program that could not be executed cannot be the next time either.
pub(super) fn is_lasting(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|error| LASTING.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use telltale_harness::Scratch;

    #[test]
    fn a_program_is_searched_for_where_it_would_be_executed() {
        let scratch = Scratch::new();
        let [first, second] = ["first", "second"].map(|name| scratch.join(name));
        for (directory, name, mode) in
            [(&first, "text", 0o644), (&second, "text", 0o755), (&first, "only-text", 0o644)]
        {
            std::fs::create_dir_all(directory).unwrap();
            std::fs::write(directory.join(name), "").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.join(name), mode).unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        let check = |program: &OsStr| find(program, &path).map_err(|error| error.to_string());
        assert_eq!(check("text".as_ref()), Ok(()), "the second directory has it");
        assert_eq!(check(second.join("text").as_ref()), Ok(()));
        let not_in_path = check("pyton3".as_ref()).unwrap_err();
        assert!(not_in_path.contains("\"pyton3\" is in none") && not_in_path.contains("second"));
        for unfit in ["only-text".as_ref(), first.join("text").as_os_str(), first.as_os_str()] {
            let reported = check(unfit).unwrap_err();
            assert!(reported.contains("may not be executed"), "{reported}");
        }
        let missing = check(first.join("none").as_ref()).unwrap_err();
        assert!(missing.starts_with("there is no program") && missing.contains("first/none"));
    }

    #[test]
    fn what_may_pass_is_distinguished_from_what_lasts() {
        let is = |error: Errno| is_lasting(&error.into());
        assert!(is(Errno::NOENT) && is(Errno::ACCESS) && is(Errno::NOEXEC));
        assert!(!is(Errno::NOMEM) && !is(Errno::TXTBSY) && !is(Errno::AGAIN));
    }
}
