//! Crates that others link: what a registry shows of them is there, and nothing private is below them.

use toml::{Table, Value};

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Keys of `[package]` that each has, beside those that all crates have.
const KEYS: [&str; 6] =
    ["categories", "include", "keywords", "readme", "repository", "description"];
/// Keywords that a registry takes.
const MAX_KEYWORDS: usize = 5;

/// Finds crates to be published that a user of a registry could not use.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let manifests = files.iter().filter(|file| file.name() == "Cargo.toml");
    let parsed =
        manifests.filter_map(|file| Some((file, toml::from_str::<Table>(&file.text).ok()?)));
    let parsed: Vec<(&SourceFile, Table)> = parsed.collect();
    let mut findings = Vec::new();
    let mut names = Vec::new();
    for (file, manifest) in &parsed {
        let Some(package) = manifest.get("package").and_then(Value::as_table) else { continue };
        if package.get("publish").and_then(Value::as_bool) == Some(true) {
            names.extend(package.get("name").and_then(Value::as_str));
            findings.extend(check_one(file, manifest, package, files));
        }
    }
    for (file, manifest) in &parsed {
        let workspace = manifest.get("workspace").and_then(Value::as_table);
        let dependencies =
            workspace.and_then(|it| it.get("dependencies")).and_then(Value::as_table);
        findings.extend(dependencies.into_iter().flat_map(|them| versions(file, them, &names)));
    }
    findings
}

fn check_one(
    file: &SourceFile,
    manifest: &Table,
    package: &Table,
    files: &[SourceFile],
) -> Vec<Finding> {
    let missing = KEYS.iter().filter(|key| !package.contains_key(**key));
    let mut messages: Vec<String> =
        missing.map(|key| format!("is published, so it needs `{key}`")).collect();
    let keywords = package.get("keywords").and_then(Value::as_array).map_or(0, Vec::len);
    if keywords > MAX_KEYWORDS {
        messages.push(format!("has {keywords} keywords; {MAX_KEYWORDS} are taken"));
    }
    let metadata = package.get("metadata").and_then(Value::as_table);
    if !metadata.is_some_and(|metadata| metadata.contains_key("docs")) {
        messages.push(String::from("is published, so it needs [package.metadata.docs.rs]"));
    }
    let directory = file.path.trim_end_matches("Cargo.toml");
    let beside = |name: &str| files.iter().find(|file| file.path == format!("{directory}{name}"));
    let is_macro = manifest.get("lib").and_then(|lib| lib.get("proc-macro")).is_some();
    let head = "#![doc = include_str!(\"../README.md\")]";
    if !is_macro && !beside("src/lib.rs").is_some_and(|lib| lib.text.starts_with(head)) {
        messages.push(format!("is published, so src/lib.rs begins with {head}"));
    }
    let first = beside("README.md").and_then(|readme| readme.text.split("```").nth(1));
    if !first.is_some_and(|block| block.starts_with("rust")) {
        messages.push(String::from("is published, so README.md begins with an example in Rust"));
    }
    messages.into_iter().map(|message| Finding::whole(&file.path, message)).collect()
}

/// A crate has a version for others if and only if it is published: so none depends on one that is not.
fn versions(file: &SourceFile, dependencies: &Table, published: &[&str]) -> Vec<Finding> {
    let ours = dependencies.iter().filter(|(_, value)| value.get("path").is_some());
    let wrong = ours.filter(|(name, value)| {
        value.get("version").is_some() != published.contains(&name.as_str())
    });
    wrong
        .map(|(name, _)| {
            let what = if published.contains(&name.as_str()) { "needs a" } else { "must have no" };
            Finding::whole(
                &file.path,
                format!("{name} {what} version, as crates with `publish = true`"),
            )
        })
        .collect()
}
