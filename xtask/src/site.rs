//! A searchable site of the documents: the same files, put together for mdBook.
//!
//! The list of pages is docs/SUMMARY.md. What the pages link to is copied beside them, so that the site works without
//! the repository; mdBook renders listed pages only, so linked ones that are not in the list are added to it. mdBook
//! itself is installed below `target/` where it is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::repository::SourceFile;
use crate::tidy::links::{resolve, targets};

/// The list of pages, as mdBook wants it, with paths as seen from its own directory.
const SUMMARY: &str = "docs/SUMMARY.md";
const DECISIONS: &str = "docs/decisions/";
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
    /// Links of the finished pages that lead nowhere.
    #[error("links that lead nowhere:\n{}", .0.join("\n"))]
    Links(Vec<String>),
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
    let parts = parts(files);
    for part in parts.iter().filter(|part| *part != SUMMARY) {
        let place = into.join("src").join(place_of(part));
        let directory = place.parent().unwrap_or(into);
        std::fs::create_dir_all(directory).map_err(failed(directory))?;
        match files.iter().find(|file| file.path == *part && part.ends_with(".md")) {
            Some(page) => std::fs::write(&place, with_index(&page.text)),
            None => std::fs::copy(root.join(part), &place).map(|_| ()),
        }
        .map_err(failed(&place))?;
    }
    let place = into.join("src/SUMMARY.md");
    std::fs::write(&place, list(files, &parts)).map_err(failed(&place))?;
    let place = into.join("book.toml");
    std::fs::write(&place, BOOK).map_err(failed(&place))
}

/// Links to README.md as links to index.md, whose name mdBook gives the page of a directory: it renders README.md as
/// index.html, and leaves links to README.html.
fn with_index(text: &str) -> String {
    text.replace("README.md)", "index.md)").replace("README.md#", "index.md#")
}

/// Where a part is put.
fn place_of(part: &str) -> String {
    part.strip_suffix("README.md").map_or_else(|| part.to_owned(), |rest| format!("{rest}index.md"))
}

/// The list of all pages: the decisions below their own page, others that are only linked at the end.
fn list(files: &[SourceFile], parts: &BTreeSet<String>) -> String {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &file.text);
    let listed = from_root(text(SUMMARY).map_or("", |text| text));
    let is_listed = |path: &str| listed.contains(&format!("]({path})"));
    let entry = |path: &str| {
        let heading =
            text(path).and_then(|text| text.lines().find_map(|line| line.strip_prefix("# ")));
        format!("- [{}]({path})\n", heading.unwrap_or(path))
    };
    let missing = parts.iter().filter(|path| path.ends_with(".md") && *path != SUMMARY);
    let missing = missing.filter(|path| !is_listed(path));
    let (decisions, others): (Vec<&String>, Vec<&String>) =
        missing.partition(|path| path.starts_with(DECISIONS));
    let mut made = String::new();
    for line in listed.lines() {
        made.push_str(&format!("{line}\n"));
        if line.contains(&format!("]({DECISIONS}README.md)")) {
            made.extend(decisions.iter().map(|path| format!("  {}", entry(path))));
        }
    }
    if !others.is_empty() {
        made.push_str("\n# Other pages\n\n");
        made.extend(others.iter().map(|path| entry(path)));
    }
    with_index(&made)
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
        Ok(status) if status.success() => {}
        _ => return Err(SiteError::Program("mdbook build")),
    }
    let book = place.join("book");
    match broken_links(&book)?.as_slice() {
        [] => Ok(book.join("index.html")),
        broken => Err(SiteError::Links(broken.to_vec())),
    }
}

/// Links of the pages below `book` to files that are not there, or to places that a page does not have.
///
/// # Errors
/// When a file cannot be read.
pub fn broken_links(book: &Path) -> Result<Vec<String>, SiteError> {
    let mut pages = BTreeMap::new();
    let mut open = vec![book.to_owned()];
    while let Some(directory) = open.pop() {
        let failed = |source| SiteError::File { path: directory.clone(), source };
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html") {
                let text = std::fs::read_to_string(&path);
                let text = text.map_err(|source| SiteError::File { path: path.clone(), source })?;
                pages.insert(path, text);
            }
        }
    }
    let mut broken = Vec::new();
    for (page, text) in &pages {
        // These two link as from other places.
        if page.ends_with("404.html") || page.ends_with("toc.html") {
            continue;
        }
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            if link.contains(':') {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                _ => plain(&page.with_file_name("").join(path)),
            };
            let has_anchor = |text: &String| attributes(text, "id").any(|id| id == anchor);
            let is_there =
                target.exists() && (anchor.is_empty() || pages.get(&target).is_none_or(has_anchor));
            if !is_there {
                let page = page.strip_prefix(book).unwrap_or(page);
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(broken)
}

/// The values of an attribute in a page.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {name}=\"");
    let length = begin.len();
    let places: Vec<usize> = text.match_indices(&begin).map(|(place, _)| place).collect();
    places.into_iter().filter_map(move |place| text[place + length..].split('"').next())
}

/// A path without its `..`.
fn plain(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(made.pop()),
            part => made.push(part),
        }
    }
    made
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
