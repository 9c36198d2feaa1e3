//! Where unsafe code may be, and that every other crate forbids it.

use super::map::UNSAFE_ALLOWED;
use crate::finding::Finding;
use crate::parsed::{parse, tokens};
use crate::repository::SourceFile;

/// Checks every Rust file, and the attributes of every crate's roots.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().filter(|file| file.is_rust()).flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let parsed = match parse(file) {
        Ok(parsed) => parsed,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    if !UNSAFE_ALLOWED.iter().any(|(place, _)| file.path.starts_with(place))
        && let Some(token) = tokens(parsed).into_iter().find(|token| token.text == "unsafe")
    {
        let message = "unsafe code does not belong here; layout/map.rs lists where it may be";
        findings.push(Finding::at(&file.path, token.line, message));
    }
    // A crate without a single item has nothing to forbid yet.
    if let Some(level) = required_level(&file.path)
        && !parsed.items.is_empty()
        && !parsed.attrs.iter().any(|attribute| is_level(attribute, level))
    {
        findings.push(Finding::whole(&file.path, format!("needs #![{level}(unsafe_code)]")));
    }
    findings
}

/// What a crate's root must say about unsafe code; none for other files.
///
/// A crate that may have it in one file cannot forbid it, because `forbid` knows no exception.
fn required_level(path: &str) -> Option<&'static str> {
    let (crate_directory, inside) = path.split_once("/src/")?;
    if inside != "lib.rs" && inside != "main.rs" {
        return None;
    }
    let crate_directory = format!("{crate_directory}/");
    if UNSAFE_ALLOWED.iter().any(|(place, _)| *place == crate_directory) {
        return None;
    }
    let in_one_file = UNSAFE_ALLOWED.iter().any(|(place, _)| place.starts_with(&crate_directory));
    Some(if in_one_file { "deny" } else { "forbid" })
}

fn is_level(attribute: &syn::Attribute, level: &str) -> bool {
    let stricter = level == "deny" && attribute.path().is_ident("forbid");
    (attribute.path().is_ident(level) || stricter)
        && attribute.parse_args::<syn::Ident>().is_ok_and(|lint| lint == "unsafe_code")
}
