//! Every Rust file begins by saying what it is for.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Finds Rust files that do not begin with `//!` or `/*!`; tests and generated files may.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.is_rust() && !file.is_generated() && !file.is_test())
        .filter(|file| !file.text.starts_with("//!") && !file.text.starts_with("/*!"))
        .map(|file| {
            let message = "must begin with //! lines: what it does and what it must not do";
            Finding::at(&file.path, 1, message)
        })
        .collect()
}
