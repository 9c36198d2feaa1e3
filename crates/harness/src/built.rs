//! Binaries of other packages of the workspace.
//!
//! Cargo tells a test where the binaries of its own package are (`CARGO_BIN_EXE_…`), but not those
//! of another, and builds them only by chance. So they are built here, with the test's own profile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::skipped::workspace_root;

/// The path of the binary `bin` of `package`, built first unless it is up to date.
///
/// Cargo is asked once for each binary and test process.
///
/// # Panics
/// When the build fails, or the package has no such binary.
#[track_caller]
pub fn cargo_bin(package: &str, bin: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<(String, String), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry((package.to_owned(), bin.to_owned())).or_insert_with(|| build(package, bin)).clone()
}

#[track_caller]
fn build(package: &str, bin: &str) -> PathBuf {
    let this_program = std::env::current_exe().expect("a test knows its own path");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace_root());
    command.args(["build", "--quiet", "--message-format=json-render-diagnostics"]);
    command.args(["--package", package, "--bin", bin, "--profile", profile(&this_program)]);
    command.stderr(Stdio::inherit());
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed ({})", output.status);
    executable(&String::from_utf8_lossy(&output.stdout), bin)
        .unwrap_or_else(|| panic!("{command:?} named no executable"))
}

/// The profile a test program was built with, from its path `<target>/<profile>/deps/<name>`.
fn profile(program: &Path) -> &str {
    let directory = program.ancestors().nth(2).and_then(Path::file_name);
    match directory.and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(other) => other,
    }
}

/// The path of `bin` in cargo's messages, one JSON object a line.
fn executable(messages: &str, bin: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter(|message| message["target"]["name"] == bin)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_read_from_the_path() {
        assert_eq!(profile(Path::new("/t/debug/deps/a-1")), "dev");
        assert_eq!(profile(Path::new("/t/release/deps/a-1")), "release");
        assert_eq!(profile(Path::new("/t/slim/deps/a-1")), "slim");
    }

    #[test]
    fn a_binary_of_another_package_is_built_and_found() {
        let path = cargo_bin("xtask", "xtask");
        assert!(path.is_file(), "{}", path.display());
        assert_eq!(path, cargo_bin("xtask", "xtask"));
    }
}
