//! The tree that is installed, as the installers of the repository lay it out: they serve who builds from source as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DistError, Release, Target, build, run};

/// Where packages take their files from, below `target`. The paths are in their descriptions too.
const PLACE: &str = "target/stage";
/// Where a tool puts what it makes.
pub(super) const FRESH: &str = "target/stage/made";
/// The licences of what is linked.
const LICENCES: &str = "THIRD-PARTY.txt";

/// What is installed, in trees of which each has a `usr`: a program that records needs the library alone.
pub(super) struct InstalledTrees {
    /// Programs, with units, pages and completions.
    pub(super) programs: PathBuf,
    /// Libraries with their headers; distributions of RPM packages have the same in `lib64`.
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
    strip(&built.join("libtelltale.a"))?;
    for (tree, libraries) in [(&stage.library, "lib"), (&place.join("library64"), "lib64")] {
        for library in ["crates/capi/install.sh", "crates/nrt/install.sh"] {
            let mut install = script(library);
            install.env("DESTDIR", tree).env("LIBDIR", libraries);
            install.env("CC", release.tools.c_compiler(release.target)?);
            run(install.env("LDFLAGS", "-Wl,--strip-all").arg("/usr").arg(&built))?;
        }
    }
    let mut profiler = script("crates/nccl-profiler/install.sh");
    run(profiler.env("DESTDIR", &stage.programs).arg("/usr/lib/telltale").arg(&built))?;
    documents(release, &stage)?;
    Ok(stage)
}

/// A program for this machine, which writes the pages of one that is for another.
fn host_program(release: &Release) -> Result<PathBuf, DistError> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--release", "--package", "telltale", "--bin", "telltale"]);
    run(cargo.current_dir(&release.root))?;
    Ok(release.root.join("target/release/telltale"))
}

/// Licences and changes; each package has them where it has its documents.
fn documents(release: &Release, stage: &InstalledTrees) -> Result<(), DistError> {
    let licences = release.root.join(PLACE).join(LICENCES);
    let mut about = release.tools.command("cargo-about");
    about.args(["generate", "--locked", "--fail", "--target", release.target.triple()]);
    about.args(["--manifest-path", "crates/telltale/Cargo.toml"]);
    about.args(["--config", "deploy/packages/licences.toml", "--output-file"]).arg(&licences);
    run(about.arg("deploy/packages/licences.hbs").current_dir(&release.root))?;
    for (tree, package) in [(&stage.programs, "telltale"), (&stage.library, "libtelltale0")] {
        let place = tree.join("usr/share/doc").join(package);
        fs::create_dir_all(&place).map_err(DistError::file(&place))?;
        for from in
            [release.root.join("LICENSE"), release.root.join("CHANGELOG.md"), licences.clone()]
        {
            let to = place.join(from.file_name().unwrap_or_default());
            fs::copy(&from, to).map_err(DistError::file(&from))?;
        }
    }
    Ok(())
}

/// Takes what only a debugger reads out of a static library, with the program that rustc does it with.
fn strip(library: &Path) -> Result<(), DistError> {
    let compiler = build::printed(&["sysroot"])?;
    let host = Target::host().map_or("", Target::triple);
    let program = compiler.join("lib/rustlib").join(host).join("bin/rust-objcopy");
    let mut strip = Command::new(program);
    strip.env("LD_LIBRARY_PATH", compiler.join("lib"));
    run(strip.args(["--strip-debug", "--enable-deterministic-archives"]).arg(library))
}
