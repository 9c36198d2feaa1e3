//! Manifests: every crate takes the workspace's lints and versions, every dependency has a reason
//! and a receiver that takes it.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Finds manifests that go their own way.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut offered = Vec::new();
    let mut taken = BTreeSet::new();
    for file in files.iter().filter(|file| file.name() == "Cargo.toml") {
        match toml::from_str::<Table>(&file.text) {
            Err(error) => findings.push(Finding::whole(&file.path, error.to_string())),
            Ok(manifest) => match manifest.get("workspace") {
                Some(workspace) => {
                    findings.extend(reasons(file));
                    let dependencies = workspace.get("dependencies").and_then(Value::as_table);
                    let names = dependencies.into_iter().flat_map(Table::keys);
                    offered.extend(names.map(|name| (&file.path, name.clone())));
                }
                None => {
                    findings.extend(check_member(file, &manifest));
                    taken.extend(dependencies(&manifest).into_iter().map(|(name, _)| name.clone()));
                }
            },
        }
    }
    let unused = offered.into_iter().filter(|(_, name)| !taken.contains(name));
    findings.extend(unused.map(|(path, name)| {
        Finding::whole(path, format!("no crate takes the dependency {name}: drop it"))
    }));
    findings
}

fn check_member(file: &SourceFile, manifest: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lints = manifest.get("lints").and_then(Value::as_table);
    if !lints.is_some_and(takes_from_workspace) {
        let message = "needs [lints] with workspace = true";
        findings.push(Finding::whole(&file.path, message));
    }
    for (name, value) in dependencies(manifest) {
        // A crate whose tests are of its optional parts too depends on itself.
        let is_itself = value.get("path").and_then(Value::as_str) == Some(".");
        if !is_itself && !value.as_table().is_some_and(takes_from_workspace) {
            let message = format!("{name} must be `{name}.workspace = true`");
            findings.push(Finding::whole(&file.path, message));
        }
    }
    findings
}

fn takes_from_workspace(table: &Table) -> bool {
    table.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// All dependencies of a package, those of one platform included.
fn dependencies(manifest: &Table) -> Vec<(&String, &Value)> {
    let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
    let platforms = manifest.get("target").and_then(Value::as_table);
    let tables = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(tables)
        .flat_map(|table| sections.iter().filter_map(|section| table.get(*section)))
        .filter_map(Value::as_table)
        .flat_map(Table::iter)
        .collect()
}

/// Finds outside dependencies of the workspace whose line does not say why they are there.
fn reasons(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut section = "";
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.starts_with('[') {
            section = line.trim();
        }
        let is_dependency = section == "[workspace.dependencies]"
            && line.contains('=')
            && !line.trim_start().starts_with('#');
        let is_ours = line.contains("path = ");
        let reason = line.split_once(" #").map_or("", |(_, reason)| reason.trim());
        if is_dependency && !is_ours && reason.is_empty() {
            let message = "say on the same line, after #, why this dependency is here";
            findings.push(Finding::at(&file.path, number, message));
        }
    }
    findings
}
