//! The repository as the checks see it: its root, its files and their text.
//!
//! Reads only. Build output and version control are left out.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// Directories that are not part of the source, wherever they are.
const SKIPPED_DIRECTORIES: [&str; 4] = [".git", "target", "__pycache__", "node_modules"];

/// Deepest directory that is checked: far more than the tree has.
const MAX_DEPTH: u32 = 32;

/// One file: its path from the root, with `/` between the parts, and its text.
#[derive(Clone)]
pub struct SourceFile {
    /// Path from the repository's root.
    pub path: String,
    /// The whole text; empty when the file is not text.
    pub text: String,
    /// Its syntax tree once a rule has asked for it: most of what the rules take is the parsing.
    pub(crate) parsed: OnceCell<Result<syn::File, Finding>>,
}

impl SourceFile {
    /// A file that need not exist; for tests of the rules.
    #[must_use]
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), parsed: OnceCell::new() }
    }

    /// The path's last part.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether this is Rust.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether a generator wrote it, as its first line then says.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        let first = self.text.lines().next().unwrap_or_default();
        first.contains("Generated from") || first.contains("@generated")
    }

    /// Whether it belongs to an integration test or is a module of tests.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

/// The root of the repository this program was compiled in.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies directly below the root").to_path_buf()
}

/// Every file below `root`, sorted by path; a file that is not UTF-8 is there with an empty text.
///
/// # Errors
/// When a directory or file cannot be read.
pub fn files(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    collect(root, "", 0, &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn collect(root: &Path, below: &str, depth: u32, found: &mut Vec<SourceFile>) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other(format!("{below} is nested deeper than {MAX_DEPTH}")));
    }
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED_DIRECTORIES.contains(&name.as_str()) {
            collect(root, &path, depth + 1, found)?;
        } else if kind.is_file() && name != ".git" {
            let text = String::from_utf8(std::fs::read(entry.path())?).unwrap_or_default();
            found.push(SourceFile::new(path, text));
        }
    }
    Ok(())
}
