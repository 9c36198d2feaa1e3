//! The crates that others link, packaged as a registry would get them, and their documents as docs.rs makes
//! them. Nothing is published from here.

use std::io;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

/// What the documents are made with. A link to what is private is shown as text there.
const FLAGS: &str = "-D warnings -A rustdoc::private_intra_doc_links";

/// Why there are no packages.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Cargo cannot be started.
    #[error("cargo cannot be started; is it installed?")]
    Start(#[source] io::Error),
    /// Cargo says something that is not understood here.
    #[error("cargo metadata is not as cargo documents it")]
    Metadata(#[source] serde_json::Error),
    /// Cargo failed, and has said why.
    #[error("cargo {0} failed; what it says above names the crate")]
    Cargo(String),
}

#[derive(Debug, Deserialize)]
struct WorkspaceMetadata {
    packages: Vec<Member>,
}

#[derive(Debug, Deserialize)]
struct Member {
    name: String,
    /// The registries that it may go to; none for all.
    publish: Option<Vec<String>>,
}

/// The names of the workspace's crates that may be published.
///
/// # Errors
/// When cargo fails.
pub fn published(root: &Path) -> Result<Vec<String>, PackageError> {
    let mut cargo = cargo(root);
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = cargo.output().map_err(PackageError::Start)?;
    if !output.status.success() {
        return Err(PackageError::Cargo(String::from("metadata")));
    }
    let metadata: WorkspaceMetadata =
        serde_json::from_slice(&output.stdout).map_err(PackageError::Metadata)?;
    let may_go = |member: &Member| member.publish.as_ref().is_none_or(|to| !to.is_empty());
    Ok(metadata.packages.into_iter().filter(may_go).map(|member| member.name).collect())
}

/// Makes the packages in target/package; with `verify` each is unpacked and compiled, beside the others of
/// this version. Then makes their documents, in which every link must lead somewhere.
///
/// # Errors
/// When cargo fails.
pub fn make(root: &Path, verify: bool) -> Result<Vec<String>, PackageError> {
    let names = published(root)?;
    let chosen: Vec<&str> = names.iter().flat_map(|name| ["--package", name]).collect();
    // A change need not be committed to be checked; `cargo publish` refuses it then.
    let mut package = cargo(root);
    package.args(["package", "--allow-dirty"]).args(&chosen);
    if !verify {
        package.arg("--no-verify");
    }
    run(package, "package")?;
    let mut documents = cargo(root);
    documents.args(["doc", "--no-deps", "--all-features", "--quiet"]).args(&chosen);
    run(documents.env("RUSTDOCFLAGS", FLAGS), "doc")?;
    Ok(names)
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

fn run(mut command: impl std::borrow::BorrowMut<Command>, name: &str) -> Result<(), PackageError> {
    let status = command.borrow_mut().status().map_err(PackageError::Start)?;
    if status.success() { Ok(()) } else { Err(PackageError::Cargo(name.to_owned())) }
}
