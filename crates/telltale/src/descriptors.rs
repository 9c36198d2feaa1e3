//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// With fewer a command ends half-way, or cannot wait for signals.
const MIN_OPEN_FILES: u64 = 32;
/// How the system says that the limit was reached (`EMFILE`).
const TOO_MANY: &str = "(os error 24)";
const REMEDY: &str = "raise the limit on open files (ulimit -n)";

/// Raises the soft limit on open files to the hard one. A watch keeps two descriptors for each
/// process it follows, and the usual soft limit of 1024, which is there for programs that use
/// `select`, would end that at some 400 processes.
pub(crate) fn allow_all() {
    let limit = getrlimit(Resource::Nofile);
    // Where even this is refused, the sources say which files they could not open.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The limit on open files is too low for a command.
#[derive(Debug, thiserror::Error)]
#[error("this process may open at most {0} files, and needs {MIN_OPEN_FILES}: {REMEDY}")]
pub(crate) struct TooFewFiles(u64);

/// Checks that the limit leaves enough for a command.
///
/// # Errors
/// When it does not.
pub(crate) fn require_enough() -> Result<(), TooFewFiles> {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < MIN_OPEN_FILES => Err(TooFewFiles(limit)),
        _ => Ok(()),
    }
}

/// A failure's text, with the remedy where the limit was reached: what failed knows only what it wanted to open.
pub(crate) fn with_remedy(text: &str) -> String {
    if text.contains(TOO_MANY) && !text.contains("ulimit") {
        format!("{text}; {REMEDY}")
    } else {
        text.to_owned()
    }
}
