//! The programs that make packages. They are installed below `target/tools` at these versions, so that the same
//! source makes the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::DistError;
use super::target::{GLIBC, Target};

/// Programs from crates.io, with the features that make a program of it.
const CRATES: [(&str, &str, &str); 4] = [
    ("cargo-about", "0.9.3", "cli"),
    ("cargo-cyclonedx", "0.5.9", ""),
    ("cargo-deb", "3.8.0", ""),
    ("cargo-generate-rpm", "0.21.1", ""),
];
/// Programs from PyPI: the linker that knows every version of glibc, what drives it, and what packs wheels.
const WHEELS: [&str; 3] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1", "wheel==0.45.1"];

/// Installed programs.
#[derive(Debug)]
pub(super) struct Tools {
    /// Where they are.
    place: PathBuf,
    /// The value of `PATH` with which they and what they call are found.
    path: std::ffi::OsString,
}

// === impl Tools ===

impl Tools {
    /// Installs what is not there.
    pub(super) fn install(root: &Path) -> Result<Self, DistError> {
        let place = root.join("target/tools");
        for (name, version, features) in CRATES {
            if is_installed(&place, name, version) {
                continue;
            }
            eprintln!("Installing {name} {version}");
            let mut install = Command::new(env!("CARGO"));
            install.args(["install", "--quiet", "--locked", "--root"]).arg(&place);
            install.args(["--features", features]);
            super::run(install.arg(format!("{name}@{version}")))?;
        }
        let python = place.join("python");
        let stamp = python.join("installed");
        let wanted = WHEELS.join("\n");
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(Self::of(&place));
        }
        eprintln!("Installing {}", WHEELS.join(", "));
        super::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python))?;
        let mut pip = Command::new(python.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        super::run(pip.args(WHEELS))?;
        std::fs::write(&stamp, wanted).map_err(DistError::file(&stamp))?;
        Ok(Self::of(&place))
    }

    fn of(place: &Path) -> Self {
        let own = [place.join("python/bin"), place.join("bin")].into_iter();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let all: Vec<PathBuf> = own.chain(std::env::split_paths(&inherited)).collect();
        // A directory of `PATH` with a colon in its name came out of it in two.
        Self { place: place.to_owned(), path: std::env::join_paths(all).unwrap_or(inherited) }
    }

    /// A script that compiles C for `target` as what is shipped is compiled, for who knows a compiler by its path.
    pub(super) fn c_compiler(&self, target: Target) -> Result<PathBuf, DistError> {
        let path = self.place.join(format!("cc-{}", target.name()));
        let python = self.place.join("python/bin/python");
        let (major, minor) = GLIBC;
        let triple = format!("{}-linux-gnu.{major}.{minor}", target.name());
        let text =
            format!("#!/bin/sh\nexec {} -m ziglang cc -target {triple} \"$@\"\n", python.display());
        std::fs::write(&path, text).map_err(DistError::file(&path))?;
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, permissions).map_err(DistError::file(&path))?;
        Ok(path)
    }

    /// A command that finds them.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", &self.path);
        command
    }
}

/// Whether cargo has installed this version there.
fn is_installed(place: &Path, name: &str, version: &str) -> bool {
    let list = std::fs::read_to_string(place.join(".crates.toml")).unwrap_or_default();
    list.contains(&format!("\"{name} {version} ("))
}
