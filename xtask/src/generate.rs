//! Files that are made from other files, and the check that they are fresh.
//!
//! Each output has one source and one generator. Nothing is written outside the listed outputs.

mod documents;
mod health;
pub mod json_schema;
pub mod metrics;
pub mod protobuf;
mod python_stub;
mod sensors;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file that a generator makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Path from the repository's root.
    pub path: String,
    /// What the file must contain.
    pub text: String,
}

/// Why files could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// A source could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The source.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// An output could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The output.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The metric definitions are not what they must be.
    #[error("{path} is wrong: {reason}")]
    Metrics {
        /// The definitions.
        path: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A template has no line in whose place something comes.
    #[error("{} has no line `{mark}`; write it where the generated lines belong", path.display())]
    NoMark {
        /// The template.
        path: PathBuf,
        /// The line.
        mark: &'static str,
    },
    /// The .proto files do not compile.
    #[error("the .proto files do not compile: {reason}")]
    Protobuf {
        /// The compiler's report.
        reason: String,
    },
    /// rustfmt could not be run or refused generated code.
    #[error("rustfmt failed on generated code; `rustup component add rustfmt` installs it")]
    Format {
        /// What the system or rustfmt said.
        #[source]
        source: io::Error,
    },
}

/// Everything that must exist, made from the sources under `root`.
///
/// # Errors
/// When a source cannot be read or does not make sense.
pub fn outputs(root: &Path) -> Result<Vec<GeneratedFile>, GenerateError> {
    let metrics = metrics::defined(root)?;
    let mut outputs = metrics::outputs(root, &metrics)?;
    outputs.extend(sensors::outputs(root, &metrics)?);
    health::add(root, &mut outputs)?;
    outputs.extend(protobuf::outputs(root)?);
    outputs.extend(json_schema::outputs());
    outputs.push(python_stub::output(root)?);
    outputs.extend(documents::outputs(root)?);
    Ok(outputs)
}

/// The paths of `outputs` whose file under `root` is missing or differs.
#[must_use]
pub fn stale(root: &Path, outputs: &[GeneratedFile]) -> Vec<String> {
    let fresh = |output: &&GeneratedFile| {
        std::fs::read_to_string(root.join(&output.path)).is_ok_and(|text| text == output.text)
    };
    outputs.iter().filter(|output| !fresh(output)).map(|output| output.path.clone()).collect()
}

/// Writes those of `outputs` that are stale, and returns their paths.
///
/// # Errors
/// When a file cannot be written.
pub fn write(root: &Path, outputs: &[GeneratedFile]) -> Result<Vec<String>, GenerateError> {
    let stale = stale(root, outputs);
    for output in outputs.iter().filter(|output| stale.contains(&output.path)) {
        let path = root.join(&output.path);
        let parent = path.parent().expect("an output lies below the root");
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, &output.text))
            .map_err(|source| GenerateError::Write { path: path.clone(), source })?;
    }
    Ok(stale)
}

/// Formats Rust code as `cargo fmt` would in the repository at `root`.
fn formatted(root: &Path, code: &str) -> Result<String, GenerateError> {
    format_with_rustfmt(root, code).map_err(|source| GenerateError::Format { source })
}

fn format_with_rustfmt(root: &Path, code: &str) -> io::Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // rustfmt reads all of its input before it writes, so this cannot block both ways.
    let mut input = rustfmt.stdin.take().expect("standard input was asked for");
    input.write_all(code.as_bytes())?;
    drop(input);
    let output = rustfmt.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("rustfmt ended with {}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
