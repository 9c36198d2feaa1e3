//! Packages of distributions, the wheel and the list of components, each by the tool that is kept for it. What goes into
//! one is described beside its crate, in `[package.metadata]` of `Cargo.toml`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::stage::{FRESH, InstalledTrees};
use super::{DistError, Release, listed, run, wheel};

/// The crates of which packages are made, each with its variants.
const OF_DEBIAN: [(&str, Option<&str>); 3] =
    [("telltale", None), ("telltale-capi", None), ("telltale-capi", Some("dev"))];
/// The same by their directories, as the tool for RPM wants them.
const OF_RPM: [(&str, Option<&str>); 3] =
    [("crates/telltale", None), ("crates/capi", None), ("crates/capi", Some("devel"))];

/// Those of Debian.
pub(super) fn debian(release: &Release) -> Result<Vec<PathBuf>, DistError> {
    let out = fresh(release)?;
    for (name, variant) in OF_DEBIAN {
        let mut deb = cargo(release, "deb");
        // It warns of each path that it would not build.
        deb.args(["--quiet", "--no-build", "--no-strip", "--package", name]);
        deb.args(["--target", release.target.triple(), "--profile", "dist"]);
        deb.args(variant.iter().flat_map(|variant| ["--variant", variant]));
        run(deb.arg("--output").arg(&out))?;
    }
    taken(release, &out)
}

/// Those of Fedora, RHEL and SUSE.
pub(super) fn rpm(release: &Release) -> Result<Vec<PathBuf>, DistError> {
    let out = fresh(release)?;
    for (directory, variant) in OF_RPM {
        let mut rpm = cargo(release, "generate-rpm");
        rpm.args(["--package", directory, "--arch", release.target.name()]);
        rpm.args(["--payload-compress", "zstd"]);
        rpm.args(["--source-date", &release.epoch.to_string()]);
        rpm.args(variant.iter().flat_map(|variant| ["--variant", variant]));
        run(rpm.arg("--output").arg(&out))?;
    }
    taken(release, &out)
}

/// The wheel.
pub(super) fn wheel(release: &Release, stage: &InstalledTrees) -> Result<Vec<PathBuf>, DistError> {
    let out = fresh(release)?;
    wheel::pack(release, stage, &out)?;
    taken(release, &out)
}

/// All components of the programs and their versions (CycloneDX). The tool writes a list beside the manifest of every
/// crate of the workspace: that of the program is kept.
pub(super) fn components(release: &Release) -> Result<Vec<PathBuf>, DistError> {
    let out = fresh(release)?;
    let name = format!("telltale-{}-{}.cdx", release.version, release.target.name());
    let mut list = cargo(release, "cyclonedx");
    list.args(["--format", "json", "--manifest-path", "crates/telltale/Cargo.toml"]);
    list.args(["--target", release.target.triple(), "--no-build-deps"]);
    let listed_all = run(list.args(["--override-filename", &name]));
    let name = format!("{name}.json");
    let made = release.root.join("crates/telltale").join(&name);
    let text = fs::read_to_string(&made).map_err(DistError::file(&made));
    for crates in ["", "crates", "tools"] {
        for beside in listed(&release.root.join(crates))? {
            let list = beside.join(&name);
            if list.exists() {
                fs::remove_file(&list).map_err(DistError::file(&list))?;
            }
        }
    }
    listed_all?;
    // It names crates of the workspace by where they are, on this machine.
    let text = text?.replace(&*release.root.to_string_lossy(), "/telltale");
    fs::write(out.join(&name), text).map_err(DistError::file(&out))?;
    taken(release, &out)
}

fn cargo(release: &Release, chore: &str) -> Command {
    let mut command = release.tools.command("cargo");
    release.place(command.arg(chore));
    command
}

/// An empty directory: what a tool makes is what is in there afterwards, whatever it calls it.
fn fresh(release: &Release) -> Result<PathBuf, DistError> {
    let place = release.root.join(FRESH);
    if place.exists() {
        fs::remove_dir_all(&place).map_err(DistError::file(&place))?;
    }
    fs::create_dir_all(&place).map_err(DistError::file(&place))?;
    Ok(place)
}

/// Takes what was made to where all of it goes.
fn taken(release: &Release, from: &Path) -> Result<Vec<PathBuf>, DistError> {
    let mut made = Vec::new();
    for path in listed(from)? {
        let place = release.into.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &place).map_err(DistError::file(&place))?;
        made.push(place);
    }
    made.sort();
    Ok(made)
}
