//! Every Rust file begins by saying what it is for.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// The head of a crate whose README says it, for those who find it in a registry.
const README: &str = "#![doc = include_str!(\"../README.md\")]";

/// Finds Rust files that do not begin with `//!`, `/*!` or the README; tests and generated files may.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.is_rust() && !file.is_generated() && !file.is_test())
        .filter(|file| !["//!", "/*!", README].iter().any(|head| file.text.starts_with(head)))
        .map(|file| {
            let message = "must begin with //! lines: what it does and what it must not do";
            Finding::at(&file.path, 1, message)
        })
        .collect()
}
