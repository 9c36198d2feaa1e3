//! The tree that is installed, as the installers of the repository lay it out: they serve who builds from source as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DistError, Release, Target, build, run};

/// Where packages take their files from, below `target`. The paths are in their descriptions too.
const PLACE: &str = "target/stage";
/// Where a tool puts what it makes.
pub(super) const FRESH: &str = "target/stage/made";
/// Documents that go with what is installed.
const DOCUMENTS: [&str; 2] = ["LICENSE", "CHANGELOG.md"];

/// What is installed, in two trees of which each has a `usr`: a program that records needs the library alone.
pub(super) struct InstalledTrees {
    /// Programs, with units, pages and completions.
    pub(super) programs: PathBuf,
    /// Libraries with their headers.
    pub(super) library: PathBuf,
}

/// Lays it out, in place of what was there.
pub(super) fn lay_out(release: &Release) -> Result<InstalledTrees, DistError> {
    let place = release.root.join(PLACE);
    if place.exists() {
        fs::remove_dir_all(&place).map_err(DistError::file(&place))?;
    }
    let stage = InstalledTrees { programs: place.join("programs"), library: place.join("library") };
    let built = build::directory(release);
    let script = |path: &str| {
        let mut command = Command::new(release.root.join(path));
        command.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
        command
    };
    let mut install = script("deploy/install.sh");
    install.arg("--destdir").arg(&stage.programs);
    if Target::host() != Some(release.target) {
        install.arg("--pages-by").arg(host_program(release)?);
    }
    run(install.arg(built.join("telltale")))?;
    for library in ["crates/capi/install.sh", "crates/nrt/install.sh"] {
        run(script(library).env("DESTDIR", &stage.library).arg("/usr").arg(&built))?;
    }
    let mut profiler = script("crates/nccl-profiler/install.sh");
    run(profiler.env("DESTDIR", &stage.programs).arg("/usr/lib/telltale").arg(&built))?;
    let documents = stage.programs.join("usr/share/doc/telltale");
    fs::create_dir_all(&documents).map_err(DistError::file(&documents))?;
    for name in DOCUMENTS {
        let from = release.root.join(name);
        fs::copy(&from, documents.join(name)).map_err(DistError::file(&from))?;
    }
    Ok(stage)
}

/// A program for this machine, which writes the pages of one that is for another.
fn host_program(release: &Release) -> Result<PathBuf, DistError> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--release", "--package", "telltale", "--bin", "telltale"]);
    run(cargo.current_dir(&release.root))?;
    Ok(release.root.join("target/release/telltale"))
}

// === impl InstalledTrees ===

impl InstalledTrees {
    /// The trees, without their `usr`.
    pub(super) fn trees(&self) -> [PathBuf; 2] {
        [&self.programs, &self.library].map(|tree: &PathBuf| Path::new(tree).join("usr"))
    }
}
