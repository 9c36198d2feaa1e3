//! Dead files: Rust sources that no crate compiles.
//!
//! Follows `mod` items and `include!` from every target that cargo would find.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Expr, ExprLit, Item, Lit, Meta};

use crate::finding::Finding;
use crate::parsed::parse;
use crate::repository::SourceFile;

/// Finds Rust files below a crate's directory that nothing reaches.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<(String, bool)> =
        targets(files).into_iter().map(|path| (path, true)).collect();
    while let Some((path, is_root)) = pending.pop() {
        let Some(file) = files.iter().find(|file| file.path == path) else { continue };
        if !reached.insert(path) {
            continue;
        }
        // A file that does not parse is reported by the rules that read it.
        if let Ok(parsed) = parse(file) {
            pending.extend(leads_to(file, parsed, is_root));
        }
    }
    let crates = crate_directories(files);
    files
        .iter()
        .filter(|file| file.is_rust() && !reached.contains(&file.path))
        .filter(|file| crates.iter().any(|directory| file.path.starts_with(directory)))
        .map(|file| Finding::whole(&file.path, "is compiled by no crate: use it or delete it"))
        .collect()
}

/// Directories of packages, each with a final `/`.
fn crate_directories(files: &[SourceFile]) -> Vec<String> {
    let manifests = files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    manifests.map(|directory| format!("{directory}/")).collect()
}

/// Files that cargo compiles by itself: by its conventions, or because a manifest names them.
fn targets(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for directory in crate_directories(files) {
        let inside = |file: &SourceFile| file.path.strip_prefix(&directory).map(str::to_owned);
        let conventional = files.iter().filter(|file| file.is_rust());
        for path in conventional.filter_map(inside).filter(|path| is_conventional(path)) {
            found.push(format!("{directory}{path}"));
        }
        let manifest = files.iter().find(|file| file.path == format!("{directory}Cargo.toml"));
        let named = manifest.and_then(|file| toml::from_str::<toml::Table>(&file.text).ok());
        for path in named.iter().flat_map(named_paths) {
            found.push(format!("{directory}{path}"));
        }
    }
    found
}

fn is_conventional(inside: &str) -> bool {
    let parts: Vec<&str> = inside.split('/').collect();
    let in_root_directory = |name: &str| matches!(name, "tests" | "benches" | "examples");
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", _] | ["src", "bin", _, "main.rs"] => true,
        [directory, _] | [directory, _, "main.rs"] => in_root_directory(directory),
        _ => false,
    }
}

/// The `path` entries of a manifest's targets.
fn named_paths(manifest: &toml::Table) -> Vec<String> {
    let kinds = ["lib", "bin", "test", "bench", "example"];
    let sections = kinds.iter().filter_map(|kind| manifest.get(*kind));
    let tables = sections.flat_map(|section| match section {
        toml::Value::Array(list) => list.iter().filter_map(toml::Value::as_table).collect(),
        toml::Value::Table(table) => vec![table],
        _ => Vec::new(),
    });
    tables.filter_map(|table| table.get("path")?.as_str().map(str::to_owned)).collect()
}

/// The files that a file's modules and inclusions may lie in, and whether each counts as a root.
fn leads_to(file: &SourceFile, parsed: &syn::File, is_root: bool) -> Vec<(String, bool)> {
    let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let own_directory = if is_root || name == "mod.rs" {
        parent.to_owned()
    } else {
        file.path.trim_end_matches(".rs").to_owned()
    };
    let mut found = Vec::new();
    modules(&parsed.items, parent, &own_directory, &mut found);
    let mut inclusions = Inclusions(Vec::new());
    inclusions.visit_file(parsed);
    found.extend(inclusions.0.into_iter().map(|path| (resolve(parent, &path), is_root)));
    found
}

fn modules(items: &[Item], parent: &str, directory: &str, found: &mut Vec<(String, bool)>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let below = format!("{directory}/{}", module.ident);
        match (&module.content, path_attribute(&module.attrs)) {
            (Some((_, inner)), _) => modules(inner, &below, &below, found),
            (None, Some(path)) => found.push((resolve(parent, &path), true)),
            (None, None) => {
                found.push((format!("{below}.rs"), false));
                found.push((format!("{below}/mod.rs"), false));
            }
        }
    }
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Joins a relative path to a directory and takes the `..` out of it.
fn resolve(directory: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

struct Inclusions(Vec<String>);

impl<'ast> Visit<'ast> for Inclusions {
    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        if invocation.path.is_ident("include")
            && let Ok(text) = invocation.parse_body::<syn::LitStr>()
        {
            self.0.push(text.value());
        }
        visit::visit_macro(self, invocation);
    }
}
