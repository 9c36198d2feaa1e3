//! The Python that tests use.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::built::cargo_library_directory;
use crate::skip;
use crate::skipped::workspace_root;

/// Python: the one that `TELLTALE_PYTHON` names, for users with packages elsewhere, else `python3`.
pub fn python() -> Command {
    Command::new(std::env::var_os("TELLTALE_PYTHON").unwrap_or_else(|| "python3".into()))
}

/// The same if it can import `modules`, one or several with commas between; else none, and `test` is recorded as
/// skipped.
pub fn python_with(test: &str, modules: &str) -> Option<Command> {
    let trial = python().args(["-c", &format!("import {modules}")]).output();
    if trial.is_ok_and(|output| output.status.success()) {
        return Some(python());
    }
    skip(test, &format!("needs Python with {modules}; TELLTALE_PYTHON names one"));
    None
}

/// A directory for `PYTHONPATH` with the modules `telltale` and `telltale_ccl`: their sources, and the library, built
/// first unless it is up to date.
///
/// # Panics
/// When the build fails, or the directory cannot be made.
#[track_caller]
pub fn python_module() -> PathBuf {
    let library = cargo_library_directory("telltale-python", "_telltale");
    let path = library.join("python-module");
    let module = path.join("telltale");
    fs::create_dir_all(&module).expect("the target directory is writable");
    let sources = workspace_root().join("crates/python/python/telltale");
    for entry in fs::read_dir(sources).expect("the module has sources") {
        let source = entry.expect("it can be read").path();
        link(&source, &module.join(source.file_name().expect("it is a file")));
    }
    link(&workspace_root().join("clients/python/telltale_ccl"), &path.join("telltale_ccl"));
    link(&library.join("lib_telltale.so"), &module.join("_telltale.abi3.so"));
    path
}

/// A link that other tests may make at the same time.
fn link(to: &Path, at: &Path) {
    match symlink(to, at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            panic!("{}: {error}", at.display())
        }
        _ => {}
    }
}
