//! Everything that a release consists of, made by one command: an archive, packages for Debian and RPM, a Python wheel,
//! the list of components and the checksums. Kept tools make each; what is here says what goes where.

mod archive;
mod build;
mod packages;
mod recompress;
mod stage;
mod summary;
mod target;
mod tools;
mod unwinder;
mod wheel;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use build::StandardLibrary;
pub use target::Target;
use tools::Tools;

/// Why there is no release.
#[derive(Debug, thiserror::Error)]
pub enum DistError {
    /// A file or directory.
    #[error("{path} cannot be read or written")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program that cannot be started.
    #[error("{program} cannot be started; is it installed?")]
    Start {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program that ended with an error.
    #[error("{0} failed")]
    Program(String),
    /// There is no standard library for a target.
    #[error(
        "Rust's standard library for {0} is not installed: `rustup target add {0}`, or \
         `rustup component add rust-src`, from which it is compiled"
    )]
    NoStandardLibrary(&'static str),
    /// The source that is built has no version or no time.
    #[error("{0}")]
    Source(String),
}

/// What is made, and of which source.
#[derive(Debug)]
struct Release {
    root: PathBuf,
    target: Target,
    standard_library: StandardLibrary,
    version: String,
    /// The time of the source, in seconds since 1970: that of its commit. It stands for the time of the build.
    epoch: u64,
    tools: Tools,
    /// Where all of it goes.
    into: PathBuf,
}

/// Makes a release for `target` in `target/dist`, and prints what it made, how large, and how long each took. Where it is
/// not to build, programs and libraries are those that were built last.
///
/// # Errors
/// When something is missing, or a step fails.
pub fn make(root: &Path, target: Target, builds: bool) -> Result<(), DistError> {
    let into = root.join("target/dist");
    std::fs::create_dir_all(&into).map_err(DistError::file(&into))?;
    let release = Release {
        root: root.to_owned(),
        target,
        standard_library: StandardLibrary::of(target)?,
        version: version(root)?,
        epoch: epoch(root)?,
        tools: Tools::install(root)?,
        into,
    };
    clear(&release)?;
    let begun = Instant::now();
    let mut made = Vec::new();
    if builds {
        step("programs and libraries", || build::all(&release))?;
    }
    let stage = step("the tree that is installed", || stage::lay_out(&release))?;
    made.push(step("archive", || archive::write(&release, &stage))?);
    made.push(step("contents of an image", || archive::image(&release, &stage))?);
    made.extend(step("Debian packages", || packages::debian(&release))?);
    made.extend(step("RPM packages", || packages::rpm(&release))?);
    made.extend(step("wheel", || packages::wheel(&release, &stage))?);
    made.extend(step("list of components", || packages::components(&release))?);
    made.push(summary::checksums(&release, &made)?);
    summary::print(&stage, &made, begun.elapsed())
}

/// Removes what an earlier release for this processor consisted of, so that what is there is of one.
fn clear(release: &Release) -> Result<(), DistError> {
    let names = [release.target.name(), release.target.debian_name()];
    for path in listed(&release.into)?.into_iter().filter(|path| path.is_file()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_ours = name.starts_with("telltale") || name.starts_with("libtelltale");
        if is_ours && names.iter().any(|processor| name.contains(processor)) {
            std::fs::remove_file(&path).map_err(DistError::file(&path))?;
        }
    }
    Ok(())
}

/// Does one step, and says how long it took.
fn step<T>(what: &str, work: impl FnOnce() -> Result<T, DistError>) -> Result<T, DistError> {
    eprintln!("Making: {what}");
    let begun = Instant::now();
    let made = work()?;
    eprintln!("  {:.1} s", begun.elapsed().as_secs_f64());
    Ok(made)
}

/// The one version number, of the workspace.
fn version(root: &Path) -> Result<String, DistError> {
    let path = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(DistError::file(&path))?;
    let table: toml::Table = text.parse().map_err(|error| DistError::Source(format!("{error}")))?;
    let version = table.get("workspace").and_then(|it| it.get("package")?.get("version")?.as_str());
    version.map(str::to_owned).ok_or_else(|| DistError::Source("no version in Cargo.toml".into()))
}

/// `SOURCE_DATE_EPOCH`, or the time of the commit.
fn epoch(root: &Path) -> Result<u64, DistError> {
    if let Some(epoch) = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|it| it.parse().ok()) {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    let output = git.args(["log", "-1", "--format=%ct"]).current_dir(root).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        let text =
            "the time of the source is not known: it is no git repository; set SOURCE_DATE_EPOCH";
        DistError::Source(text.into())
    })
}

/// What is in a directory.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, DistError> {
    let entries = std::fs::read_dir(directory).map_err(DistError::file(directory))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<Result<_, _>>().map_err(DistError::file(directory))
}

/// Copies a file into a directory, which is made where it is not there.
fn copy(file: &Path, into: &Path) -> Result<(), DistError> {
    std::fs::create_dir_all(into).map_err(DistError::file(into))?;
    let to = into.join(file.file_name().unwrap_or_default());
    std::fs::copy(file, to).map(drop).map_err(DistError::file(file))
}

/// Runs a command to its end.
fn run(command: &mut Command) -> Result<(), DistError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let words = command.get_args().take(2).map(|word| word.to_string_lossy());
    let name = [program.as_str().into()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
    let status = command.status().map_err(|source| DistError::Start { program, source })?;
    if status.success() { Ok(()) } else { Err(DistError::Program(name)) }
}

// === impl DistError ===

impl DistError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
