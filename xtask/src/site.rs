//! A searchable site of the documents: the same files, put together for mdBook.
//!
//! The list of pages is docs/SUMMARY.md. What the pages link to is copied beside them, so that the site works without
//! the repository. mdBook itself is installed below `target/` where it is not there.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository::SourceFile;
use crate::tidy::links::{resolve, targets};

/// The list of pages, as mdBook wants it, with paths as seen from its own directory.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The release that is installed.
const MDBOOK: &str = "0.5.2";
const BOOK: &str = "[book]\ntitle = \"Telltale\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[output.html]\nno-section-label = true\n\
                    \n[output.html.print]\nenable = false\n";

/// Why there is no site.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// A file or directory.
    #[error("{path} cannot be read or written")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program that ended with an error.
    #[error("{0} failed")]
    Program(&'static str),
}

/// What the site is made of, as paths of the repository: pages in the order of the list, then what they link to.
#[must_use]
pub fn parts(files: &[SourceFile]) -> BTreeSet<String> {
    let text =
        |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let mut found = BTreeSet::from([SUMMARY.to_owned()]);
    let mut open = vec![SUMMARY.to_owned()];
    while let Some(page) = open.pop() {
        let linked = text(&page).unwrap_or_default().lines().flat_map(targets);
        for target in linked.filter(|target| !target.contains("://")) {
            let path = target.split('#').next().unwrap_or_default();
            let Some(path) = resolve(&page, path).filter(|_| !path.is_empty()) else { continue };
            if text(&path).is_some() && found.insert(path.clone()) && path.ends_with(".md") {
                open.push(path);
            }
        }
    }
    found
}

/// Puts the parts below `into`, with what mdBook needs.
///
/// # Errors
/// When a file cannot be read or written.
pub fn assemble(root: &Path, files: &[SourceFile], into: &Path) -> Result<(), SiteError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| SiteError::File { path, source }
    };
    for part in parts(files) {
        let place = into.join("src").join(&part);
        let directory = place.parent().unwrap_or(into);
        std::fs::create_dir_all(directory).map_err(failed(directory))?;
        std::fs::copy(root.join(&part), &place).map_err(failed(&place))?;
    }
    let summary = root.join(SUMMARY);
    let text = std::fs::read_to_string(&summary).map_err(failed(&summary))?;
    let place = into.join("src/SUMMARY.md");
    std::fs::write(&place, from_root(&text)).map_err(failed(&place))?;
    let place = into.join("book.toml");
    std::fs::write(&place, BOOK).map_err(failed(&place))
}

/// The list with paths as seen from the root of the repository.
#[must_use]
pub fn from_root(summary: &str) -> String {
    let mut made = String::new();
    for line in summary.lines() {
        match targets(line).first().and_then(|target| Some((target, resolve(SUMMARY, target)?))) {
            Some((target, path)) => {
                made.push_str(&line.replace(&format!("]({target})"), &format!("]({path})")))
            }
            None => made.push_str(line),
        }
        made.push('\n');
    }
    made
}

/// Makes the site in `target/site`, and returns its first page.
///
/// # Errors
/// When a file cannot be read or written, or mdBook cannot be had or fails.
pub fn make(root: &Path, files: &[SourceFile]) -> Result<PathBuf, SiteError> {
    let place = root.join("target/site");
    if place.exists() {
        let failed = |source| SiteError::File { path: place.clone(), source };
        std::fs::remove_dir_all(&place).map_err(failed)?;
    }
    assemble(root, files, &place)?;
    let program = mdbook(root)?;
    let status = Command::new(program).arg("build").arg(&place).status();
    match status {
        Ok(status) if status.success() => Ok(place.join("book/index.html")),
        _ => Err(SiteError::Program("mdbook build")),
    }
}

/// mdBook: the one on the path, else one below `target/`, which is installed first where it is not there.
fn mdbook(root: &Path) -> Result<PathBuf, SiteError> {
    let works = |program: &Path| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let own = root.join("target/mdbook/bin/mdbook");
    for program in [PathBuf::from("mdbook"), own.clone()] {
        if works(&program) {
            return Ok(program);
        }
    }
    eprintln!("installing mdBook {MDBOOK} below target/mdbook");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut install = Command::new(cargo);
    install
        .args(["install", "mdbook", "--locked", "--version", MDBOOK, "--root"])
        .arg(root.join("target/mdbook"));
    match install.status() {
        Ok(status) if status.success() => Ok(own),
        _ => Err(SiteError::Program("cargo install mdbook")),
    }
}
