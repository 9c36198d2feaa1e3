//! In how many files a type's own methods are written.
//!
//! A type whose methods are in many files has many subjects. Its parts should be types with a state
//! of their own. [`IN_MANY_FILES`] lists the types that are in more files, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Type};

use super::map::IN_MANY_FILES;
use crate::finding::Finding;
use crate::parsed::{is_test_only, parse};
use crate::repository::SourceFile;

/// Files that may implement one type. Implementations of traits do not count.
pub const MOST_FILES: usize = 4;

/// What a crate says of its types of one name.
#[derive(Debug, Default)]
struct TypeSpread<'a> {
    definitions: usize,
    implemented_in: BTreeSet<&'a str>,
}

/// Checks the types of every crate.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut named: BTreeMap<(&str, String), TypeSpread<'_>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some((name, _)) = file.path.split_once("/src/") else { continue };
        match parse(file) {
            Ok(parsed) => note(name, &file.path, &parsed.items, &mut named),
            Err(finding) => findings.push(finding),
        }
    }
    for ((package, name), TypeSpread { definitions, implemented_in }) in &named {
        let listed = IN_MANY_FILES.iter().any(|(of, types, _)| of == package && types == name);
        // Types of one name cannot be distinguished here.
        let is_in_many = implemented_in.len() > MOST_FILES * (*definitions).max(1);
        let message = match (is_in_many, listed) {
            (true, false) => format!(
                "{name} is implemented in {} files: make its parts types of their own",
                implemented_in.len()
            ),
            (false, true) => {
                format!("{name} is in no more than {MOST_FILES} files: drop it from IN_MANY_FILES")
            }
            _ => continue,
        };
        findings.push(Finding::whole(&format!("{package}/src"), message));
    }
    findings
}

/// Adds what these items define and implement.
fn note<'a>(
    package: &'a str,
    path: &'a str,
    items: &[Item],
    named: &mut BTreeMap<(&'a str, String), TypeSpread<'a>>,
) {
    for item in items {
        let key = |name: &syn::Ident| (package, name.to_string());
        match item {
            Item::Struct(syn::ItemStruct { ident, .. })
            | Item::Enum(syn::ItemEnum { ident, .. }) => {
                named.entry(key(ident)).or_default().definitions += 1;
            }
            Item::Impl(one) if one.trait_.is_none() && !is_test_only(&one.attrs) => {
                if let Type::Path(path_of) = &*one.self_ty
                    && let Some(last) = path_of.path.segments.last()
                {
                    named.entry(key(&last.ident)).or_default().implemented_in.insert(path);
                }
            }
            Item::Mod(module) if !is_test_only(&module.attrs) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                note(package, path, inner, named);
            }
            _ => {}
        }
    }
}
