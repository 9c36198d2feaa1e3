//! The library, built and installed under a prefix by the same script that users run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use telltale_harness::{Scratch, cargo_library_directory, compile_c, compile_cpp};

/// This package's directory.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory of the built library.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cargo_library_directory("telltale-nrt", "telltale_nrt"))
}

/// Installs under a prefix in `scratch`.
pub(crate) fn install(scratch: &Scratch) -> PathBuf {
    let prefix = scratch.join("prefix");
    let mut command = Command::new(here().join("install.sh"));
    command.arg(&prefix).arg(built()).env_remove("DESTDIR");
    let output = command.output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    prefix
}

/// Compiles a program of this package against the library under `prefix`.
pub(crate) fn program(source: &str, prefix: &Path) -> PathBuf {
    program_with(source, prefix, &[])
}

/// As [`program`], with more flags.
pub(crate) fn program_with(source: &str, prefix: &Path, more: &[&str]) -> PathBuf {
    let source = here().join("tests/c").join(source);
    let library = prefix.join("lib");
    let flags = [
        format!("-I{}", prefix.join("include").display()),
        format!("-L{}", library.display()),
        "-ltelltale_nrt".to_owned(),
        format!("-Wl,-rpath,{}", library.display()),
        "-pthread".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let out = prefix.join(source.file_stem().expect("a name"));
    match source.extension().is_some_and(|extension| extension == "cpp") {
        true => compile_cpp(&source, &out, &flags),
        false => compile_c(&source, &out, &flags),
    }
}
