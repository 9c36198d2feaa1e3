//! Dependencies between packages, as cargo sees them, against the map.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::LayoutError;
use super::map::{
    ASYNC_RUNTIMES, MEMBERS, MayUse, Member, NOT_PRODUCT, SCHEMA_DEPENDENCIES,
    SCHEMA_OPTIONAL_DEPENDENCIES,
};
use crate::finding::Finding;

/// What `cargo metadata` says, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A package of the workspace.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// What it depends on directly.
    pub dependencies: Vec<Dependency>,
}

/// One line of a package's dependencies.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// The package depended on.
    pub name: String,
    /// `dev`, `build`, or none for a normal one.
    pub kind: Option<String>,
    /// Whether a feature must ask for it.
    #[serde(default)]
    pub optional: bool,
}

impl Package {
    /// Names of the normal and build dependencies.
    fn built_with(&self) -> impl Iterator<Item = &str> {
        self.built().map(|one| one.name.as_str())
    }

    fn built(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|one| one.kind.as_deref() != Some("dev"))
    }
}

/// The packages of the workspace at `root`.
///
/// # Errors
/// When cargo fails.
pub fn members(root: &Path) -> Result<Vec<Package>, LayoutError> {
    let text = cargo(root, "metadata", &["--no-deps", "--format-version", "1"])?;
    parse(&text)
}

/// The packages in what `cargo metadata` wrote.
///
/// # Errors
/// When it is not the JSON that cargo documents.
pub fn parse(text: &str) -> Result<Vec<Package>, LayoutError> {
    let metadata: Metadata = serde_json::from_str(text).map_err(LayoutError::Metadata)?;
    Ok(metadata.packages)
}

/// Everything that `package` is built with, directly or not: one `name version` a line.
///
/// `cargo tree` resolves features for this package alone, unlike `cargo metadata`, so a feature
/// that only another package asks for does not count.
///
/// # Errors
/// When cargo fails.
pub fn tree(root: &Path, package: &str) -> Result<String, LayoutError> {
    let edges = ["--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    cargo(root, "tree", &[&["--package", package], &edges[..]].concat())
}

/// Checks direct dependencies within the workspace, and those of schema outside it.
#[must_use]
pub fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let in_workspace = |name: &str| packages.iter().any(|package| package.name == name);
    for package in packages {
        let Some(member) = MEMBERS.iter().find(|member| member.package == package.name) else {
            findings.push(finding(package, "is not on the map: add it to layout/map.rs"));
            continue;
        };
        for used in package.built_with().filter(|name| in_workspace(name)) {
            if !allows(member, used) {
                findings.push(finding(package, &format!("must not depend on {used}")));
            }
        }
    }
    for member in &MEMBERS {
        if !in_workspace(member.package) {
            let message = format!("{} is on the map and not in the workspace", member.package);
            findings.push(Finding::whole("Cargo.toml", message));
        }
    }
    findings.extend(check_schema(packages));
    findings
}

fn check_schema(packages: &[Package]) -> Vec<Finding> {
    packages
        .iter()
        .filter(|package| package.name == "telltale-schema")
        .flat_map(|schema| {
            let is_allowed = |one: &&Dependency| {
                let name = one.name.as_str();
                SCHEMA_DEPENDENCIES.contains(&name)
                    || (one.optional && SCHEMA_OPTIONAL_DEPENDENCIES.contains(&name))
            };
            let outside = schema.built().filter(move |one| !is_allowed(one));
            outside.map(|one| {
                finding(schema, &format!("must do no I/O, so it must not use {}", one.name))
            })
        })
        .collect()
}

/// Checks that nothing in a package's `tree` is an async runtime.
#[must_use]
pub fn check_no_async(package: &str, tree: &str) -> Vec<Finding> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| ASYNC_RUNTIMES.contains(name))
        .map(|name| {
            let message =
                format!("{package} must start no async runtime, but is built with {name}");
            Finding::whole("Cargo.toml", message)
        })
        .collect()
}

/// Checks that the shipped program's `tree` has nothing that only a feature of schema brings.
#[must_use]
pub fn check_shipped(tree: &str) -> Vec<Finding> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| SCHEMA_OPTIONAL_DEPENDENCIES.contains(name))
        .map(|name| {
            let message = format!("the shipped program must do without {name}");
            Finding::whole("crates/telltale/Cargo.toml", message)
        })
        .collect()
}

fn allows(member: &Member, used: &str) -> bool {
    match member.may_use {
        MayUse::Only(names) => names.contains(&used),
        MayUse::Product => !NOT_PRODUCT.contains(&used),
        MayUse::Anything => true,
    }
}

fn finding(package: &Package, message: &str) -> Finding {
    Finding::whole("Cargo.toml", format!("{} {message}", package.name))
}

fn cargo(root: &Path, command: &'static str, arguments: &[&str]) -> Result<String, LayoutError> {
    let output = Command::new(env!("CARGO"))
        .arg(command)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|source| LayoutError::Cargo { command, source })?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(LayoutError::CargoFailed { command, report });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
