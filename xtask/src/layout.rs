//! The architecture's map as a check: who may depend on whom, and what a crate must not contain.
//!
//! The map itself is data in [`map`]; a change of the architecture is a change of that data.

pub mod absences;
pub mod circles;
pub mod dependencies;
pub mod described;
pub mod map;
pub mod spread;
pub mod unsafe_code;

use std::path::Path;

use crate::finding::Finding;
use crate::repository::files;

/// Checks the repository at `root` against the map.
///
/// # Errors
/// When the sources or cargo's view of them cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>, LayoutError> {
    let files = files(root).map_err(LayoutError::Read)?;
    let members = dependencies::members(root)?;
    let mut findings = dependencies::check(&members);
    for package in map::NO_ASYNC_RUNTIME {
        findings.extend(dependencies::check_no_async(package, &dependencies::tree(root, package)?));
    }
    findings.extend(dependencies::check_shipped(&dependencies::tree(root, "telltale")?));
    findings.extend(unsafe_code::check(&files));
    findings.extend(absences::check(&files));
    findings.extend(circles::check(&files));
    findings.extend(described::check(&files));
    findings.extend(spread::check(&files));
    findings.sort();
    Ok(findings)
}

/// Why the layout could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A source file or directory could not be read.
    #[error("cannot read the repository's files")]
    Read(#[source] std::io::Error),
    /// Cargo could not be run.
    #[error("cannot run cargo {command}")]
    Cargo {
        /// The subcommand.
        command: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Cargo ran and failed.
    #[error("cargo {command} failed: {report}")]
    CargoFailed {
        /// The subcommand.
        command: &'static str,
        /// What cargo wrote.
        report: String,
    },
    /// Cargo's answer is not the JSON it should be.
    #[error("cannot understand what cargo metadata says")]
    Metadata(#[source] serde_json::Error),
}
