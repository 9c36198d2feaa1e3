//! The wheel, for every Python since 3.10: the one program with all commands, which starts without one, and the modules.
//! Bytes are those of every other package, so it is laid out here and packed by PyPA's own `wheel`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::recompress::recompress;
use super::stage::{InstalledTrees, MODULE_LICENCES};
use super::target::GLIBC;
use super::{DistError, Release, build, copy, listed, run};

/// Where it is laid out.
const PLACE: &str = "target/stage/wheel";
/// What `pip` shows of it.
const METADATA: &str = "deploy/packages/wheel.metadata";
/// What of the installed tree goes where in the wheel: into the environment's `bin`, and below the environment itself.
const FILES: [(&str, &str); 4] = [
    ("bin", "scripts"),
    ("lib/telltale", "data/lib/telltale"),
    ("share/doc/telltale/docs", "data/share/doc/telltale/docs"),
    ("share/man/man1", "data/share/man/man1"),
];
/// Where the modules' sources are, by their names. `telltale_ccl` is what an agent loads into a job as well.
const MODULES: [(&str, &str); 2] = [
    ("telltale", "crates/python/python/telltale"),
    ("telltale_ccl", "clients/python/telltale_ccl"),
];
/// What of a module is shipped.
const SOURCES: [&str; 3] = ["py", "pyi", "typed"];
/// As its metadata names them.
const LICENCES: [&str; 2] = ["LICENSE", "THIRD-PARTY.txt"];
/// The programs for services are not in it: one program has all commands.
const PROGRAM: &str = "telltale";

/// Packs it into `out`.
pub(super) fn pack(release: &Release, stage: &InstalledTrees, out: &Path) -> Result<(), DistError> {
    let place = release.root.join(PLACE);
    let name = format!("telltale-{}", release.version);
    let installed = stage.programs.join("usr");
    for (from, to) in FILES {
        let to = place.join(format!("{name}.data")).join(to);
        for file in listed(&installed.join(from))? {
            if from != "bin" || file.file_name().is_some_and(|name| name == PROGRAM) {
                copy(&file, &to)?;
            }
        }
    }
    modules(release, &place)?;
    let information = place.join(format!("{name}.dist-info"));
    for name in LICENCES {
        copy(&installed.join("share/doc/telltale").join(name), &information.join("licenses"))?;
    }
    copy(&release.root.join(MODULE_LICENCES), &information.join("licenses"))?;
    let metadata = release.root.join(METADATA);
    let text = fs::read_to_string(&metadata).map_err(DistError::file(&metadata))?;
    write(&information.join("METADATA"), &text.replace("{version}", &release.version))?;
    write(&information.join("WHEEL"), &tags(release))?;
    let plain = fs::Permissions::from_mode(0o644);
    for file in listed(&information)?.into_iter().chain(listed(&information.join("licenses"))?) {
        if file.is_file() {
            // Whatever this user's files usually have.
            fs::set_permissions(&file, plain.clone()).map_err(DistError::file(&file))?;
        }
    }
    let mut wheel = release.tools.command("wheel");
    wheel.args(["pack", "--dest-dir"]).arg(out).arg(&place);
    run(wheel.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    let of_target = format!("_{}.whl", release.target.name());
    let is_wheel = |file: &PathBuf| file.to_string_lossy().ends_with(&of_target);
    listed(out)?.into_iter().filter(is_wheel).try_for_each(|wheel| recompress(&wheel))
}

/// Puts the modules in it, with the native half.
fn modules(release: &Release, place: &Path) -> Result<(), DistError> {
    for (name, sources) in MODULES {
        let sources = listed(&release.root.join(sources))?;
        let is_source = |file: &&PathBuf| {
            SOURCES.iter().any(|kind| file.extension().is_some_and(|its| its == *kind))
        };
        for file in sources.iter().filter(is_source) {
            copy(file, &place.join(name))?;
        }
    }
    let native = build::directory(release).join("lib_telltale.so");
    let to = place.join("telltale/_telltale.abi3.so");
    fs::copy(&native, &to).map_err(DistError::file(&native))?;
    Ok(())
}

/// For which interpreters and systems it is.
fn tags(release: &Release) -> String {
    let (major, minor) = GLIBC;
    format!(
        "Wheel-Version: 1.0\nGenerator: cargo xtask dist ({})\nRoot-Is-Purelib: false\n\
         Tag: cp310-abi3-manylinux_{major}_{minor}_{}\n",
        release.version,
        release.target.name()
    )
}

fn write(path: &Path, text: &str) -> Result<(), DistError> {
    fs::write(path, text).map_err(DistError::file(path))
}
