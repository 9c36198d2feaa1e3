//! Binaries of other packages of the workspace, and libraries for C.
//!
//! Cargo tells a test where the binaries of its own package are (`CARGO_BIN_EXE_…`), but not those
//! of another, and builds them only by chance. So they are built here, with the test's own profile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::skipped::workspace_root;

/// An example of this workspace. Cargo counts features of development dependencies only where a test, a
/// benchmark or an example is built too.
const SMALL_EXAMPLE: &str = "read_cost";

/// The path of the binary `bin`, built first unless it is up to date.
///
/// Cargo is asked once for each binary and test process. It unites the features of the whole workspace, as
/// `cargo test --workspace` does, so that nothing is compiled a second time there.
///
/// # Panics
/// When the build fails, or no package has such a binary.
#[track_caller]
pub fn cargo_bin(bin: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(bin.to_owned()).or_insert_with(|| build(bin)).clone()
}

/// The directory with the shared and static libraries of `package` for C, whose target is named
/// `library`, built first unless they are up to date.
///
/// # Panics
/// When the build fails, or the package has no such library.
#[track_caller]
pub fn cargo_library_directory(package: &str, library: &str) -> PathBuf {
    let file = format!("lib{library}.so");
    artifacts(&messages(&["--package", package, "--lib"]), library)
        .flat_map(|artifact| artifact["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .find(|path| path.ends_with(&file))
        .and_then(|path| path.parent().map(Path::to_path_buf))
        .unwrap_or_else(|| panic!("building {package} named no {file}"))
}

#[track_caller]
fn build(bin: &str) -> PathBuf {
    artifacts(&messages(&["--workspace", "--bin", bin, "--example", SMALL_EXAMPLE]), bin)
        .find_map(|artifact| artifact["executable"].as_str().map(PathBuf::from))
        .unwrap_or_else(|| panic!("building named no executable {bin}"))
}

/// What cargo reports of building these targets, one JSON object a line.
#[track_caller]
fn messages(targets: &[&str]) -> String {
    let this_program = std::env::current_exe().expect("a test knows its own path");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace_root());
    command.args(["build", "--quiet", "--message-format=json-render-diagnostics"]);
    command.args(["--profile", profile(&this_program)]).args(targets);
    command.stderr(Stdio::inherit());
    // What cargo tells this test of its own package: build scripts that check it (ring's) would be
    // run again, and all that depends on them rebuilt, each time another package's tests ask.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_package(name)) {
        command.env_remove(name);
    }
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed ({})", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether cargo sets a variable for the package whose test it runs, as the Cargo book lists them.
fn is_of_this_package(name: &OsStr) -> bool {
    const PREFIXES: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_"];
    let name = name.to_string_lossy();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The profile a test program was built with, from its path `<target>/<profile>/deps/<name>`.
fn profile(program: &Path) -> &str {
    let directory = program.ancestors().nth(2).and_then(Path::file_name);
    match directory.and_then(|name| name.to_str()) {
        None | Some("debug") => "test",
        Some(other) => other,
    }
}

/// The artifacts of a target in cargo's messages.
fn artifacts(messages: &str, target: &str) -> impl Iterator<Item = serde_json::Value> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter(move |message| message["target"]["name"] == target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_sets_for_cargo_is_kept() {
        for (name, expected) in [
            ("CARGO_PKG_NAME", true),
            ("CARGO_MANIFEST_DIR", true),
            ("CARGO_BIN_EXE_xtask", true),
            ("CARGO_TARGET_DIR", false),
            ("CARGO_HOME", false),
            ("PATH", false),
        ] {
            assert_eq!(is_of_this_package(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn the_profile_is_read_from_the_path() {
        assert_eq!(profile(Path::new("/t/debug/deps/a-1")), "test");
        assert_eq!(profile(Path::new("/t/release/deps/a-1")), "release");
        assert_eq!(profile(Path::new("/t/slim/deps/a-1")), "slim");
    }

    #[test]
    fn a_binary_of_another_package_is_built_and_found() {
        let path = cargo_bin("xtask");
        assert!(path.is_file(), "{}", path.display());
        assert_eq!(path, cargo_bin("xtask"));
    }
}
