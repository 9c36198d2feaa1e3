//! Programs and libraries, for any glibc that is not older than [`GLIBC`]: zig links against the symbols of that
//! version, and compiles C for it, whatever this machine has.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::GLIBC;
use super::{DistError, Release, run};

/// What is shipped.
const CRATES: [&str; 5] =
    ["telltale", "telltale-capi", "telltale-nrt", "telltale-preload", "telltale-nccl-profiler"];

/// Builds all of it.
pub(super) fn all(release: &Release) -> Result<(), DistError> {
    let triple = release.target.triple();
    if !has_standard_library(triple)? {
        return Err(DistError::NoStandardLibrary(triple));
    }
    let mut cargo = release.tools.command("cargo");
    cargo.args(["zigbuild", "--locked", "--profile", "dist"]);
    cargo.arg("--target").arg(format!("{triple}.{}.{}", GLIBC.0, GLIBC.1));
    cargo.args(CRATES.iter().flat_map(|name| ["--package", name]));
    cargo.current_dir(&release.root).env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(&release.root));
    run(&mut cargo)
}

/// Where they are then.
pub(super) fn directory(release: &Release) -> PathBuf {
    release.root.join("target").join(release.target.triple()).join("dist")
}

/// The compiler's flags, as cargo takes them: no path of this machine is in what is built.
pub(super) fn flags(root: &Path) -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let named = [(Some(root.to_owned()), "/telltale"), (home, "/cargo")];
    let known = named.into_iter().filter_map(|(path, name)| Some((path?, name)));
    let flags = known.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

fn has_standard_library(triple: &str) -> Result<bool, DistError> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", triple]);
    let output = rustc.output().map_err(|source| {
        let program = String::from("rustc");
        DistError::Start { program, source }
    })?;
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}
