//! Names that say nothing: a file is named after its subject.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Names of files and directories that stand for "things that had no place".
const BANNED: [&str; 11] = [
    "util", "utils", "common", "helper", "helpers", "manager", "misc", "trait", "traits", "types",
    "mod",
];

/// Finds source files and directories with such a name.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().filter_map(check_path).collect()
}

fn check_path(file: &SourceFile) -> Option<Finding> {
    let is_source = [".rs", ".c", ".h", ".cpp", ".hpp", ".py", ".sh"]
        .iter()
        .any(|ending| file.path.ends_with(ending));
    let bad = file
        .path
        .split('/')
        .map(|part| part.split('.').next().unwrap_or(part))
        .find(|stem| BANNED.contains(stem))?;
    let message = format!("{bad:?} says nothing: name the file or directory after its subject");
    is_source.then(|| Finding::whole(&file.path, message))
}
