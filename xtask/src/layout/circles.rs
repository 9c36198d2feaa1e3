//! Which top modules of a crate use each other in a circle.
//!
//! A top module is a file or directory directly in `src`; its tests do not count. What a root module re-exports counts as
//! used in its own module. [`MODULES_IN_CIRCLES`] lists the modules that are still in one, and can only shrink.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree};

use super::map::MODULES_IN_CIRCLES;
use crate::finding::Finding;
use crate::parsed::{Token, imports, parse, tokens, without_tests};
use crate::repository::SourceFile;

/// Who uses whom, by module.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Checks every crate against the list.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut crates: BTreeMap<&str, Vec<(&str, &SourceFile)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        if let Some((name, path)) = file.path.split_once("/src/") {
            crates.entry(name).or_default().push((path, file));
        }
    }
    for (name, files) in &crates {
        match arrows(files) {
            Ok(arrows) => findings.extend(judge(name, &in_circles(&arrows))),
            Err(finding) => findings.push(finding),
        }
    }
    findings
}

fn judge(name: &str, found: &BTreeSet<String>) -> Vec<Finding> {
    let listed = MODULES_IN_CIRCLES.iter().find(|(of, _)| *of == name).map(|(_, modules)| *modules);
    let listed: BTreeSet<&str> = listed.into_iter().flatten().copied().collect();
    let directory = format!("{name}/src");
    let new = found.iter().filter(|one| !listed.contains(one.as_str())).map(|one| {
        let what =
            format!("{one} uses a module that uses it, directly or by others: cut the circle");
        Finding::whole(&directory, what)
    });
    let gone = listed.iter().filter(|one| !found.contains(**one)).map(|one| {
        let what = format!("{one} is in no circle any more: drop it from MODULES_IN_CIRCLES");
        Finding::whole(&directory, what)
    });
    new.chain(gone).collect()
}

/// The arrows between the top modules of a crate, of which these are the files by their path in `src`.
fn arrows(files: &[(&str, &SourceFile)]) -> Result<Arrows, Finding> {
    let modules: BTreeSet<&str> = files.iter().map(|(path, _)| top_module(path)).collect();
    let mut exported = BTreeMap::new();
    for (_, root) in files.iter().filter(|(path, _)| is_root(path)) {
        exported.extend(exports(parse(root)?));
        // A module of that name is meant where there is one.
        exported.retain(|name, _| !modules.contains(name.as_str()));
    }
    let mut arrows = Arrows::new();
    for (path, file) in files.iter().filter(|(path, _)| !is_root(path)) {
        let parsed = without_tests(parse(file)?);
        let used = uses(path, &imports(&parsed), &tokens(&parsed));
        let known = used.iter().map(|name| exported.get(name).unwrap_or(name));
        let own = top_module(path);
        let others = known.filter(|name| *name != own && modules.contains(name.as_str()));
        arrows.entry(own.to_owned()).or_default().extend(others.cloned());
    }
    Ok(arrows)
}

fn is_root(path: &str) -> bool {
    matches!(path, "lib.rs" | "main.rs")
}

fn top_module(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// What a root module re-exports, with the module that has it.
fn exports(root: &syn::File) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in &root.items {
        if let Item::Use(import) = item
            && let UseTree::Path(path) = &import.tree
        {
            let mut names = Vec::new();
            leaves(&path.tree, &mut names);
            let module = path.ident.to_string();
            found.extend(names.into_iter().map(|name| (name, module.clone())));
        }
    }
    found
}

fn leaves(tree: &UseTree, found: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, found),
        UseTree::Name(name) => found.push(name.ident.to_string()),
        UseTree::Rename(rename) => found.push(rename.rename.to_string()),
        UseTree::Glob(_) => {}
        UseTree::Group(group) => group.items.iter().for_each(|one| leaves(one, found)),
    }
}

/// Names of the crate's root that a file uses: after `crate`, or after as many `super` as it is deep.
fn uses(path: &str, imports: &[(String, usize)], tokens: &[Token]) -> BTreeSet<String> {
    let to_root = path.split('/').count();
    let mut found = BTreeSet::new();
    for (import, _) in imports {
        let parts: Vec<&str> = import.split("::").collect();
        found.extend(of_root(&parts, to_root));
    }
    let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    for (place, word) in words.iter().enumerate() {
        if matches!(*word, "crate" | "super")
            && place.checked_sub(1).is_none_or(|before| words[before] != ":")
        {
            let parts: Vec<&str> = path_from(&words[place..]);
            found.extend(of_root(&parts, to_root));
        }
    }
    found
}

/// The parts of the path that begins here: words with two colons between them.
fn path_from<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut parts = vec![words[0]];
    let mut rest = &words[1..];
    while let [":", ":", word, ..] = rest {
        parts.push(word);
        rest = &rest[3..];
    }
    parts
}

fn of_root(parts: &[&str], to_root: usize) -> Option<String> {
    let name = match parts {
        ["crate", name, ..] => name,
        _ => {
            let supers = parts.iter().take_while(|part| **part == "super").count();
            if supers != to_root {
                return None;
            }
            parts.get(supers)?
        }
    };
    Some((*name).to_owned())
}

/// The modules from which a way leads back to them.
fn in_circles(arrows: &Arrows) -> BTreeSet<String> {
    let is_in_one = |start: &&String| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = vec![start.as_str()];
        while let Some(one) = open.pop() {
            for next in arrows.get(one).into_iter().flatten() {
                if next == *start {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    arrows.keys().filter(is_in_one).cloned().collect()
}
