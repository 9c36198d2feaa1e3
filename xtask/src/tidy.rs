//! The house style as checks: sizes, names, words, sentences, tables, dead files, file heads, links,
//! manifests.
//!
//! Each rule is a function from files to findings, so that a test can show it a bad sample.

pub mod dialect;
pub mod heads;
pub mod links;
pub mod manifests;
pub mod names;
pub mod published;
pub mod reachable;
pub mod sentences;
pub mod sizes;
pub mod tables;
pub mod words;

use std::io;
use std::path::Path;

use crate::finding::Finding;
use crate::repository::{SourceFile, files};

/// A rule: what it finds in all files of the repository.
type Rule = fn(&[SourceFile]) -> Vec<Finding>;

/// Checks the repository at `root` against every rule.
///
/// # Errors
/// When a file or directory cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    Ok(check_files(&files(root)?))
}

/// Checks `files` as if they were the whole repository.
#[must_use]
pub fn check_files(files: &[SourceFile]) -> Vec<Finding> {
    let rules: [Rule; 12] = [
        dialect::check,
        heads::check,
        links::check,
        manifests::check,
        names::check,
        published::check,
        reachable::check,
        sentences::check,
        sizes::check_files,
        sizes::check_functions,
        tables::check,
        words::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(files)).collect();
    findings.sort();
    findings.dedup();
    findings
}
