//! The skip file's chores: print it, empty it, or insist that it is empty.

use std::io::{self, ErrorKind};
use std::path::Path;

use telltale_harness::skipped::lines;

/// How the line of a test ends that was left out because it takes long.
const LONG: &str = "TELLTALE_LONG_TESTS=1 runs it";

/// The distinct lines of the skip file at `file`, one a line; empty when nothing was skipped.
///
/// # Errors
/// When the file cannot be read.
pub fn report(file: &Path) -> io::Result<String> {
    Ok(lines(file)?.iter().map(|line| format!("{line}\n")).collect())
}

/// Those of the lines that say that something is missing here. A test that only takes long says so, and is run by
/// `.ci/long`.
#[must_use]
pub fn missing(report: &str) -> String {
    let lines = report.lines().filter(|line| !line.ends_with(LONG));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Empties the skip file, so that the next run of the tests starts a new one.
///
/// # Errors
/// When the file is there and cannot be removed.
pub fn clear(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
