//! Words that must not be in the repository: marks of unfinished work, traces of private machines.
//!
//! The words are put together from halves, so that this file does not hold them itself.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Marks of unfinished or switched-off code, as written.
const UNFINISHED: [&str; 7] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
    concat!("#[ign", "ore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Parts of private paths and of names that mean nothing to a reader elsewhere; any case.
const PRIVATE: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/tmp/", "notes"),
    concat!("sub", "agent"),
    concat!("arti", "factory"),
];

/// Finds such words in any text file.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for word in UNFINISHED.iter().filter(|word| holds_word(line, word)) {
            let message = format!("{word:?}: finish it, or leave it out");
            findings.push(Finding::at(&file.path, number, message));
        }
        let lower = line.to_lowercase();
        for word in PRIVATE.iter().filter(|word| lower.contains(**word)) {
            let message = format!("{word:?} means nothing to a reader elsewhere");
            findings.push(Finding::at(&file.path, number, message));
        }
    }
    findings
}

/// Whether `line` holds `word` and not merely a longer word around it.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    line.match_indices(word).any(|(start, found)| {
        let before = line[..start].chars().next_back();
        let after = line[start + found.len()..].chars().next();
        let starts_inside = found.starts_with(is_part) && before.is_some_and(is_part);
        let ends_inside = found.ends_with(is_part) && after.is_some_and(is_part);
        !starts_inside && !ends_inside
    })
}
