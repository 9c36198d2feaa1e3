//! The skip file: one line for each test that could not run here, and why.
//!
//! Tests append, `cargo xtask skipped` prints. A skip that cannot be recorded panics, because an
//! unrecorded skip looks like a pass.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file's name inside the target directory.
const FILE_NAME: &str = "skipped-tests.txt";

/// Records that `test` could not run because of `reason`, in the skip file and on standard error.
///
/// The caller returns from its test afterwards. One `write` with `O_APPEND` carries the whole line,
/// so tests in parallel threads and processes do not mix their lines.
///
/// # Panics
/// When the skip file cannot be written.
pub fn skip(test: &str, reason: &str) {
    eprintln!("skipped {test}: {reason}");
    append(&path(), test, reason);
}

/// Where the skip file is: `TELLTALE_SKIP_FILE`, else `skipped-tests.txt` in the target directory.
#[must_use]
pub fn path() -> PathBuf {
    match std::env::var_os("TELLTALE_SKIP_FILE") {
        Some(file) if !file.is_empty() => PathBuf::from(file),
        _ => target_directory().join(FILE_NAME),
    }
}

/// The distinct lines of the skip file at `file`, sorted; none when it does not exist.
///
/// # Errors
/// When the file exists but cannot be read.
pub fn lines(file: &Path) -> std::io::Result<BTreeSet<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// The workspace's root directory, as it was when this crate was compiled.
pub(crate) fn workspace_root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory
        .ancestors()
        .nth(2)
        .expect("this crate lies two directories below the workspace's root")
        .to_path_buf()
}

/// `CARGO_TARGET_DIR` (a relative one is taken from the workspace's root), else `target`.
fn target_directory() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty());
    workspace_root().join(chosen.map_or_else(|| PathBuf::from("target"), PathBuf::from))
}

fn append(file: &Path, test: &str, reason: &str) {
    let one_line: Vec<&str> = reason.split_whitespace().collect();
    let line = format!("{test}: {}\n", one_line.join(" "));
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .and_then(|mut open| open.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("cannot record the skipped test in {}: {error}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn lines_are_distinct_and_a_reason_stays_on_one_line() {
        let scratch = Scratch::new();
        let file = scratch.join("skipped.txt");
        assert!(lines(&file).unwrap().is_empty(), "a missing file means nothing was skipped");
        append(&file, "b::test", "needs\n  root");
        append(&file, "a::test", "needs root");
        append(&file, "b::test", "needs root");
        let found: Vec<String> = lines(&file).unwrap().into_iter().collect();
        assert_eq!(found, ["a::test: needs root", "b::test: needs root"]);
    }

    #[test]
    fn parallel_appends_keep_their_lines_whole() {
        let scratch = Scratch::new();
        let file = scratch.join("skipped.txt");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..50 {
                        append(file, &format!("thread_{thread}_{round}"), "because");
                    }
                });
            }
        });
        let found = lines(&file).unwrap();
        assert_eq!(found.len(), 200);
        assert!(found.iter().all(|line| line.ends_with(": because")));
    }

    #[test]
    fn an_unwritable_skip_file_is_loud() {
        let scratch = Scratch::new();
        let absent = scratch.join("no/such/directory");
        assert!(std::panic::catch_unwind(|| append(&absent, "test", "reason")).is_err());
    }
}
