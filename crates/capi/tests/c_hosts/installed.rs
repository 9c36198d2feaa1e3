//! The library, built and installed under a prefix by the same script that users run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use telltale_harness::{Scratch, cargo_library_directory, compile_c, compile_cpp};

/// How a program gets the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linked {
    Shared,
    Static,
}

/// Libraries that the static form needs, as `docs/integrate.md` and `telltale.pc.in` say.
const PRIVATE_LIBRARIES: [&str; 7] =
    ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

/// This package's directory.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory of the built libraries.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cargo_library_directory("telltale-capi", "telltale"))
}

/// The script, about to install the built libraries under `prefix`.
pub(crate) fn installer(prefix: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(here().join("install.sh"));
    command.arg(prefix).arg(built()).env_remove("DESTDIR");
    command
}

/// Installs under a prefix in `scratch`.
pub(crate) fn install(scratch: &Scratch) -> PathBuf {
    let prefix = scratch.join("prefix");
    let output = installer(&prefix).output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    prefix
}

/// Compiles a program of this package against the library under `prefix` with the options that
/// `docs/integrate.md` shows.
pub(crate) fn program(source: &str, prefix: &Path, linked: Linked) -> PathBuf {
    let source = here().join(source);
    let name = format!("{}-{linked:?}", source.file_stem().expect("a name").to_string_lossy());
    let library = prefix.join("lib");
    let mut flags = vec!["-I".to_owned() + &prefix.join("include").to_string_lossy()];
    match linked {
        Linked::Shared => flags.extend([
            format!("-L{}", library.display()),
            "-ltelltale".to_owned(),
            format!("-Wl,-rpath,{}", library.display()),
            // For the programs' own threads.
            "-pthread".to_owned(),
        ]),
        Linked::Static => {
            flags.push(library.join("libtelltale.a").to_string_lossy().into_owned());
            flags.extend(PRIVATE_LIBRARIES.map(str::to_owned));
        }
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let out = prefix.join(name);
    match source.extension().is_some_and(|extension| extension == "cpp") {
        true => compile_cpp(&source, &out, &flags),
        false => compile_c(&source, &out, &flags),
    }
}
