//! The tree that is installed, as the installers of the repository lay it out: they serve who builds from source as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{DistError, Release, Target, build, copy, listed, run};

/// Where packages take their files from, below `target`. The paths are in their descriptions too.
const PLACE: &str = "target/stage";
/// Where a tool puts what it makes.
pub(super) const FRESH: &str = "target/stage/made";
/// Where files that only packages have are, below that.
const PACKAGED: &str = "packaged";
/// Those files.
const OF_PACKAGES: [&str; 2] = ["deploy/packages/account.sh", "deploy/packages/telltale.toml"];
/// Where those of pkg-config are in a tree.
const DESCRIPTIONS: &str = "usr/lib/pkgconfig";
/// Files that documents say how to use, and that no package installs where they count.
const EXAMPLES: [&str; 4] = [
    "agent-training.env",
    "coordinator-training.toml",
    "telltale-containers.conf",
    "telltale-nvidia.conf",
];
/// The licences of what is linked.
const LICENCES: &str = "THIRD-PARTY.txt";

/// The licences of what the Python module's native half links.
pub(super) const MODULE_LICENCES: &str = "target/stage/THIRD-PARTY-MODULE.txt";

/// What is installed, in trees of which each has a `usr`: a program that records needs the library alone.
pub(super) struct InstalledTrees {
    /// Programs, with units, pages and completions.
    pub(super) programs: PathBuf,
    /// Libraries with their headers; distributions of RPM packages have the same in `lib64`.
    pub(super) library: PathBuf,
    /// What of these is otherwise where it may lie anywhere.
    pub(super) anywhere: PathBuf,
}

/// Lays it out, in place of what was there.
pub(super) fn lay_out(release: &Release) -> Result<InstalledTrees, DistError> {
    let place = release.root.join(PLACE);
    if place.exists() {
        fs::remove_dir_all(&place).map_err(DistError::file(&place))?;
    }
    let [programs, library, anywhere] =
        ["programs", "library", "anywhere"].map(|name| place.join(name));
    let stage = InstalledTrees { programs, library, anywhere };
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
    link_by_scripts(&place.join("library64/usr/lib64"))?;
    for path in OF_PACKAGES {
        copy(&release.root.join(path), &place.join(PACKAGED))?;
    }
    relocatable(&stage)?;
    documents(release, &stage)?;
    date(&place, UNIX_EPOCH + Duration::from_secs(release.epoch))?;
    Ok(stage)
}

/// Replaces the links of libraries, which the tool for RPM cannot package: the one that a linker reads by a script that
/// names the library, and the one that programs want by none, since `ldconfig` makes it.
fn link_by_scripts(directory: &Path) -> Result<(), DistError> {
    for path in listed(directory)?.into_iter().filter(|path| path.is_symlink()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fs::remove_file(&path).map_err(DistError::file(&path))?;
        if name.ends_with(".so") {
            let script = format!("/* GNU ld script */\nINPUT({name}.0)\n");
            fs::write(&path, script).map_err(DistError::file(&path))?;
        }
    }
    Ok(())
}

/// Describes the libraries to pkg-config by where the description lies.
fn relocatable(stage: &InstalledTrees) -> Result<(), DistError> {
    let place = stage.anywhere.join(DESCRIPTIONS);
    fs::create_dir_all(&place).map_err(DistError::file(&place))?;
    for path in listed(&stage.library.join(DESCRIPTIONS))? {
        let text = fs::read_to_string(&path).map_err(DistError::file(&path))?;
        let text = text.replace("prefix=/usr\n", "prefix=${pcfiledir}/../..\n");
        let text = text.replace("/usr/", "${prefix}/");
        let path = place.join(path.file_name().unwrap_or_default());
        fs::write(&path, text).map_err(DistError::file(&path))?;
    }
    Ok(())
}

/// Gives every file below a directory one time: tools take what is older than the source as it is.
fn date(directory: &Path, time: SystemTime) -> Result<(), DistError> {
    for path in listed(directory)? {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            date(&path, time)?;
        }
        let file = fs::File::open(&path).and_then(|file| file.set_modified(time));
        file.map_err(DistError::file(&path))?;
    }
    Ok(())
}

/// A program for this machine, which writes the pages of one that is for another.
fn host_program(release: &Release) -> Result<PathBuf, DistError> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--release", "--package", "telltale", "--bin", "telltale"]);
    release.place(&mut cargo);
    run(&mut cargo)?;
    Ok(release.root.join("target/release/telltale"))
}

/// Licences and changes, which each package has where it has its documents, and the documents that programs name.
fn documents(release: &Release, stage: &InstalledTrees) -> Result<(), DistError> {
    let licences = release.root.join(PLACE).join(LICENCES);
    list_licences(release, "crates/telltale/Cargo.toml", &licences)?;
    list_licences(release, "crates/python/Cargo.toml", &release.root.join(MODULE_LICENCES))?;
    for (tree, package) in [(&stage.programs, "telltale"), (&stage.library, "libtelltale0")] {
        let place = tree.join("usr/share/doc").join(package);
        for name in ["LICENSE", "CHANGELOG.md"] {
            copy(&release.root.join(name), &place)?;
        }
        copy(&licences, &place)?;
    }
    let place = stage.programs.join("usr/share/doc/telltale");
    for path in listed(&release.root.join("docs"))? {
        if path.extension().is_some_and(|extension| extension == "md") {
            copy(&path, &place.join("docs"))?;
        }
    }
    for name in EXAMPLES {
        copy(&release.root.join("deploy/systemd").join(name), &place.join("deploy/systemd"))?;
    }
    Ok(())
}

/// Writes the licences of what a crate links.
fn list_licences(release: &Release, manifest: &str, into: &Path) -> Result<(), DistError> {
    let mut about = release.tools.command("cargo-about");
    about.args(["generate", "--locked", "--fail", "--target", release.target.triple()]);
    about.args(["--manifest-path", manifest]);
    about.args(["--config", "deploy/packages/licences.toml", "--output-file"]).arg(into);
    run(about.arg("deploy/packages/licences.hbs").current_dir(&release.root))
}

/// Takes what only a debugger or a Rust compiler reads out of a static library, with the program that rustc does it with:
/// most of it would be code for an optimizer that a linker of C does not have.
fn strip(library: &Path) -> Result<(), DistError> {
    let compiler = build::printed(&["sysroot"])?;
    let host = Target::host().map_or("", Target::triple);
    let program = compiler.join("lib/rustlib").join(host).join("bin/rust-objcopy");
    let mut strip = Command::new(program);
    strip.env("LD_LIBRARY_PATH", compiler.join("lib"));
    strip.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
    run(strip.args(["--strip-debug", "--enable-deterministic-archives"]).arg(library))
}
