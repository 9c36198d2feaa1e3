//! Programs and libraries, for any glibc that is not older than [`GLIBC`]: zig links against the symbols of that
//! version, and compiles C for it, whatever this machine has.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::GLIBC;
use super::{DistError, Release, Target, run, unwinder};

/// What is shipped.
const CRATES: [&str; 6] = [
    "telltale",
    "telltale-capi",
    "telltale-nrt",
    "telltale-preload",
    "telltale-nccl-profiler",
    "telltale-python",
];

/// Where Rust's standard library comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandardLibrary {
    /// rustup has installed it.
    Installed,
    /// It is compiled with the rest, of the source that is installed (`rust-src`).
    Compiled,
}

/// Builds all of it, at once: alone, each would compile what they share with other features once more.
pub(super) fn all(release: &Release) -> Result<(), DistError> {
    let mut cargo = release.tools.command("cargo-zigbuild");
    cargo.args(["zigbuild", "--locked", "--profile", "dist", "--target"]);
    cargo.arg(format!("{}.{}.{}", release.target.triple(), GLIBC.0, GLIBC.1));
    cargo.args(CRATES.iter().flat_map(|name| ["--package", name]));
    release.settings(&mut cargo);
    cargo.env("TELLTALE_UNWINDER_DIRECTORY", unwinder::names(release)?);
    run(&mut cargo)
}

/// Where they are then.
pub(super) fn directory(release: &Release) -> PathBuf {
    release.root.join("target").join(release.target.triple()).join("dist")
}

// === impl Release ===

impl Release {
    /// Where every build of a release puts what it makes, whatever is usual for its caller, and of which time it is.
    pub(super) fn place(&self, command: &mut Command) {
        command.current_dir(&self.root).env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        command.env("CARGO_TARGET_DIR", self.root.join("target")).env_remove("CARGO_BUILD_TARGET");
    }

    /// What every build of a release has in common, whichever tool calls cargo.
    pub(super) fn settings(&self, command: &mut Command) {
        self.place(command);
        command.env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&self.root));
        command.env("CFLAGS", c_flags(&self.root));
        if self.standard_library == StandardLibrary::Compiled {
            // Accepted by a stable compiler with this variable alone.
            command.env("RUSTC_BOOTSTRAP", "1").args(["-Z", "build-std=std,panic_unwind"]);
        }
    }
}

// === impl StandardLibrary ===

impl StandardLibrary {
    /// Finds it.
    pub(super) fn of(target: Target) -> Result<Self, DistError> {
        let triple = target.triple();
        let library = printed(&["target-libdir", "--target", triple])?;
        if library.is_dir() {
            return Ok(Self::Installed);
        }
        let source = printed(&["sysroot"])?.join("lib/rustlib/src/rust/library/std");
        if source.is_dir() { Ok(Self::Compiled) } else { Err(DistError::NoStandardLibrary(triple)) }
    }
}

/// A path that the compiler prints.
pub(super) fn printed(what: &[&str]) -> Result<PathBuf, DistError> {
    let mut rustc = Command::new("rustc");
    let output = rustc.arg("--print").args(what).output().map_err(|source| {
        let program = String::from("rustc");
        DistError::Start { program, source }
    })?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Directories of this machine, and what stands for them in what is built; of several that match, the last counts.
fn directories(root: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let compiler = printed(&["sysroot"]).ok();
    let standard_library = compiler.as_deref().and_then(standard_library_source);
    let named = [
        (Some(root.to_owned()), String::from("/telltale")),
        (home, String::from("/cargo")),
        (compiler, String::from("/rust")),
        (standard_library, format!("/rustc/{}", compiler_commit().unwrap_or_default())),
    ];
    named.into_iter().filter_map(|(path, name)| Some((path?, name)))
}

/// Where the standard library's source is, if it is installed: the compiler names its files by where they are then, and
/// else by the compiler's commit.
fn standard_library_source(compiler: &Path) -> Option<PathBuf> {
    compiler.join("lib/rustlib/src/rust").canonicalize().ok()
}

/// The commit that the compiler was made of.
fn compiler_commit() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("commit-hash: ")).map(str::to_owned)
}

/// The Rust compiler's flags, as cargo takes them.
fn rust_flags(root: &Path) -> String {
    let flag =
        |(path, name): (PathBuf, String)| format!("--remap-path-prefix={}={name}", path.display());
    directories(root).map(flag).collect::<Vec<_>>().join("\u{1f}")
}

/// The C compiler's.
fn c_flags(root: &Path) -> String {
    let flag =
        |(path, name): (PathBuf, String)| format!("-ffile-prefix-map={}={name}", path.display());
    directories(root).map(flag).collect::<Vec<_>>().join(" ")
}
