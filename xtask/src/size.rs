//! How large the project is: lines of production code by crate, and words of its documents.
//!
//! A line counts when a part of the program lies on it: comments, documentation, blank lines, inline test modules,
//! `tests/`, `benches/`, `examples/` and generated files do not. Words are counted as `wc -w` does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;

use crate::finding::Finding;
use crate::parsed::{parse, without_tests};
use crate::repository::SourceFile;

/// Directories of a crate that hold no production code.
const NOT_SHIPPED: [&str; 4] = ["tests", "benches", "examples", "fuzz"];

/// How the other languages begin a line that is a comment.
const COMMENTS: [(&str, &[&str]); 9] = [
    (".c", &["//", "/*", "* ", "*/"]),
    (".cpp", &["//", "/*", "* ", "*/"]),
    (".css", &["/*"]),
    (".h", &["//", "/*", "* ", "*/"]),
    (".html", &["<!--"]),
    (".js", &["//", "/*", "* ", "*/"]),
    (".proto", &["//"]),
    (".py", &["#"]),
    (".sql", &["--"]),
];

/// Lines of code by language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lines {
    /// In Rust.
    pub rust: usize,
    /// In anything else.
    pub other: usize,
}

/// The whole project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size {
    /// By the directory of each crate, or by the top directory of what belongs to none.
    pub code: BTreeMap<String, Lines>,
    /// Words by document. Decisions and generated documents are left out.
    pub documents: BTreeMap<String, usize>,
}

/// Counts.
///
/// # Errors
/// A finding that names a Rust file that does not parse.
pub fn size(files: &[SourceFile]) -> Result<Size, Finding> {
    let mut size = Size::default();
    for file in files {
        if is_document(&file.path) && !file.is_generated() {
            size.documents.insert(file.path.clone(), file.text.split_whitespace().count());
        }
        if !is_production(file) {
            continue;
        }
        let (rust, other) = match file.is_rust() {
            true => (rust_lines(file)?, 0),
            false => (0, other_lines(file)),
        };
        if rust + other > 0 {
            let of_crate = size.code.entry(crate_of(&file.path).to_owned()).or_default();
            of_crate.rust += rust;
            of_crate.other += other;
        }
    }
    Ok(size)
}

/// README, and what lies directly in `docs` or anywhere in `deploy`.
fn is_document(path: &str) -> bool {
    let Some(name) = path.strip_suffix(".md") else { return false };
    match name.split_once('/') {
        None => name == "README",
        Some(("docs", rest)) => !rest.contains('/'),
        Some((first, _)) => first == "deploy",
    }
}

fn is_production(file: &SourceFile) -> bool {
    let has_part = |part| NOT_SHIPPED.contains(&part);
    let is_in_scope = file.path.starts_with("crates/") || file.path.starts_with("xtask/");
    is_in_scope && !file.is_generated() && !file.is_test() && !file.path.split('/').any(has_part)
}

fn crate_of(path: &str) -> &str {
    let end = match path.strip_prefix("crates/") {
        Some(rest) => "crates/".len() + rest.find('/').unwrap_or(rest.len()),
        None => path.find('/').unwrap_or(path.len()),
    };
    &path[..end]
}

fn rust_lines(file: &SourceFile) -> Result<usize, Finding> {
    let mut lines = BTreeSet::new();
    mark(without_tests(parse(file)?).to_token_stream(), &mut lines);
    Ok(lines.len())
}

/// Marks the lines that these tokens are on; documentation is none.
fn mark(stream: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let is_pound = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '#');
        if is_pound {
            // Of an inner attribute, `#` and `!`.
            let is_bang = |next: &TokenTree| matches!(next, TokenTree::Punct(punct) if punct.as_char() == '!');
            let bang = trees.next_if(is_bang);
            if trees.next_if(is_documentation).is_some() {
                continue;
            }
            lines.extend(bang.map(|bang| bang.span().start().line));
        }
        let (first, last) = (tree.span().start().line, tree.span().end().line);
        match tree {
            TokenTree::Group(group) => {
                lines.extend([first, last]);
                mark(group.stream(), lines);
            }
            // A string may have several lines.
            _ => lines.extend(first..=last),
        }
    }
}

fn is_documentation(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

fn other_lines(file: &SourceFile) -> usize {
    let known = COMMENTS.iter().find(|(ending, _)| file.path.ends_with(ending));
    let Some((_, comments)) = known else { return 0 };
    let is_code =
        |line: &&str| !line.is_empty() && !comments.iter().any(|comment| line.starts_with(comment));
    file.text.lines().map(str::trim).filter(is_code).count()
}

impl fmt::Display for Size {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "{:<40} {:>8} {:>8}", "lines of production code", "Rust", "other")?;
        let mut all = Lines::default();
        for (name, lines) in &self.code {
            writeln!(to, "{name:<40} {:>8} {:>8}", lines.rust, lines.other)?;
            all.rust += lines.rust;
            all.other += lines.other;
        }
        writeln!(to, "{:<40} {:>8} {:>8}\n", "all", all.rust, all.other)?;
        writeln!(to, "{:<40} {:>8}", "words of documents", "")?;
        for (name, words) in &self.documents {
            writeln!(to, "{name:<40} {words:>8}")?;
        }
        writeln!(to, "{:<40} {:>8}", "all", self.documents.values().sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_that_the_program_lies_on() {
        let text = "//! A crate.\n#![forbid(unsafe_code)]\n\n/// Documented.\n#[must_use]\nfn one() -> &'static str {\n    \
                    // Why.\n    \"two\nlines\"\n}\n\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
        assert_eq!(rust_lines(&SourceFile::new("crates/a/src/lib.rs", text)), Ok(6));
        let query = "-- Why.\n\nselect 1\n  from two;\n";
        assert_eq!(other_lines(&SourceFile::new("crates/a/src/one.sql", query)), 2);
    }

    #[test]
    fn only_what_ships_counts_and_only_documents_for_people() {
        let code = "fn one() {}\n";
        let generated = format!("// @generated\n{code}");
        let files = [
            SourceFile::new("crates/a/src/lib.rs", code),
            SourceFile::new("crates/a/src/inner/tests.rs", code),
            SourceFile::new("crates/a/src/made.rs", &generated),
            SourceFile::new("crates/a/tests/all.rs", code),
            SourceFile::new("xtask/src/main.rs", code),
            SourceFile::new("README.md", "one two"),
            SourceFile::new("docs/page.md", "three\nfour five"),
            SourceFile::new("docs/decisions/0001.md", "six"),
            SourceFile::new("docs/made.md", "<!-- Generated from one -->\nseven"),
            SourceFile::new("deploy/machines/README.md", "eight"),
        ];
        let found = size(&files).expect("all parse");
        let code: Vec<_> = found.code.iter().map(|(name, lines)| (&**name, lines.rust)).collect();
        assert_eq!(code, [("crates/a", 1), ("xtask", 1)]);
        let words: Vec<_> = found.documents.into_iter().collect();
        let expected = [("README.md", 2), ("deploy/machines/README.md", 1), ("docs/page.md", 3)];
        assert_eq!(words, expected.map(|(name, words)| (name.to_owned(), words)));
    }
}
