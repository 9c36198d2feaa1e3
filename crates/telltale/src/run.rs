//! `telltale run`: becomes a command whose memory is recorded by a preloaded library.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_schema::text::with_causes;

use crate::arguments::RunArguments;
use crate::exit::{self, Failure, Status};

const LIBRARY: &str = "libtelltale_preload.so";
/// Where the library is, seen from the directory of this program: as cargo leaves it, then as it is
/// installed.
const PLACES: [&str; 3] = [".", "../lib/telltale", "../lib"];
/// What separates names in `LD_PRELOAD`; the loader knows no quoting.
const SEPARATORS: &[u8] = b" :";

/// Becomes the command. Comes back only when that failed.
pub(crate) fn run(arguments: &RunArguments) -> Result<Status, Failure> {
    let [program, rest @ ..] = arguments.command.as_slice() else {
        return Err(Failure::Usage(String::from("no command is given")));
    };
    let library = library(arguments.library.as_deref())?;
    let directory = directory(arguments.runtime_dir.as_deref());
    if let (Err(error), false) = (&directory, arguments.quiet) {
        exit::tell(&format!("telltale: nothing is recorded: {error}"));
    }
    let mut command = Command::new(program);
    command.args(rest);
    if let Ok(directory) = directory {
        command
            .env("LD_PRELOAD", preloaded(&library, env::var_os("LD_PRELOAD")))
            .env("TELLTALE_RUN_THRESHOLD", arguments.threshold.to_string());
        if let Some(directory) = directory {
            command.env("TT_METRICS_SOCKET_DIR", directory);
        }
        if !arguments.quiet {
            // The command has this process's number, and is the only one that may complain.
            command.env("TELLTALE_RUN_PID", std::process::id().to_string());
        }
    }
    let error = command.exec();
    let program = Path::new(program).display();
    let (status, words) = match error.kind() {
        ErrorKind::NotFound => (127, "check its name and PATH"),
        _ => (126, "check that it is a program that may be executed"),
    };
    Err(Failure::Command { status, text: format!("cannot run {program}: {error}; {words}") })
}

/// The directory that ledgers are to go to where one was named, checked as the library will check
/// whichever it is.
fn directory(named: Option<&Path>) -> Result<Option<PathBuf>, String> {
    RuntimeDirectory::for_writing(named, &DirectoryEnvironment::of_this_process())
        .map_err(|error| with_causes(&error))?;
    // The command may go to another working directory before it records.
    let whole = |path: &Path| path.canonicalize().map_err(|error| with_causes(&error));
    named.map(whole).transpose()
}

/// The library, by its whole path.
fn library(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let found = match named {
        Some(path) => path.canonicalize().and_then(is_library).map_err(|error| {
            let path = path.display();
            Failure::Message(format!("cannot use the library {path}: {error}; name a {LIBRARY}"))
        })?,
        None => installed()?,
    };
    if found.as_os_str().as_bytes().iter().any(|byte| SEPARATORS.contains(byte)) {
        return Err(Failure::Message(format!(
            "the path {} has a space or a colon, at which the loader would split it; put the \
             library somewhere else and name it with --library",
            found.display()
        )));
    }
    Ok(found)
}

/// A path of a library that can be loaded, as far as its first bytes show. The loader only complains, and goes on.
fn is_library(path: PathBuf) -> io::Result<PathBuf> {
    let mut magic = Vec::new();
    telltale_sources::open(&path)?.take(4).read_to_end(&mut magic)?;
    match magic == b"\x7fELF" {
        true => Ok(path),
        false => Err(io::Error::other("it is no ELF file")),
    }
}

fn installed() -> Result<PathBuf, Failure> {
    let own = env::current_exe().and_then(|path| path.canonicalize());
    let directory = own.ok().and_then(|path| path.parent().map(Path::to_path_buf));
    let candidates = || {
        let below = |directory: PathBuf| PLACES.map(|place| directory.join(place).join(LIBRARY));
        directory.clone().map(below).into_iter().flatten()
    };
    candidates().find_map(|path| path.canonicalize().ok().filter(|path| path.is_file())).ok_or_else(
        || {
            Failure::Message(format!(
                "{LIBRARY} is neither beside this program nor in ../lib/telltale or ../lib from it; \
                 build it (cargo build --release -p telltale-preload), or name it with --library"
            ))
        },
    )
}

/// The list of preloaded libraries with ours first; what was there stays.
fn preloaded(library: &Path, before: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    let others = before.unwrap_or_default();
    let is_there = |name: &[u8]| OsStr::from_bytes(name) == library.as_os_str();
    let kept = others.as_bytes().split(|byte| SEPARATORS.contains(byte));
    for name in kept.filter(|name| !name.is_empty() && !is_there(name)) {
        all.push(":");
        all.push(OsStr::from_bytes(name));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::preloaded;

    #[test]
    fn what_was_preloaded_before_stays_and_nothing_is_twice() {
        let cases = [
            (None, "/l/ours.so"),
            (Some(""), "/l/ours.so"),
            (Some("/a.so /b.so"), "/l/ours.so:/a.so:/b.so"),
            (Some("/l/ours.so:/a.so"), "/l/ours.so:/a.so"),
        ];
        for (before, expected) in cases {
            assert_eq!(preloaded(Path::new("/l/ours.so"), before.map(Into::into)), expected);
        }
    }
}
