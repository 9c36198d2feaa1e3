//! Links in Markdown files: the file must exist, and so must the heading.
//!
//! A path of this repository in inline code counts as a link: `xtask/src/main.rs` must be there. So
//! does a path below docs/ in a comment of a Rust file.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Finds relative links that lead nowhere. Links to the web are not followed.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let sources = files.iter().filter(|file| file.is_rust());
    pages
        .flat_map(|page| check_page(page, files))
        .chain(sources.flat_map(|source| check_comments(source, files)))
        .collect()
}

/// The pages that a Rust file's comments send their reader to.
fn check_comments(source: &SourceFile, files: &[SourceFile]) -> Vec<Finding> {
    let part = |one: char| one.is_ascii_alphanumeric() || "./_-".contains(one);
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        let Some((before, comment)) = line.split_once("//") else { continue };
        if before.matches('"').count() % 2 == 1 {
            // Within a string.
            continue;
        }
        let words = comment.split(|one| !part(one)).map(|word| word.trim_end_matches('.'));
        for page in words.filter(|word| word.starts_with("docs/") && !exists(word, files)) {
            let text = format!("{page} is not in the repository");
            findings.push(Finding::at(&source.path, number, text));
        }
    }
    findings
}

fn check_page(page: &SourceFile, files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(&page.text) {
        let outside: String = line.split('`').step_by(2).collect();
        let problems = targets(&outside).into_iter().filter_map(|one| problem(page, &one, files));
        let inside = line.split('`').skip(1).step_by(2);
        let absent = inside.filter(|code| is_path(code) && !exists(code, files));
        let named = absent.map(|code| format!("`{code}` is not in the repository"));
        findings.extend(problems.chain(named).map(|text| Finding::at(&page.path, number, text)));
    }
    findings
}

/// The lines outside code blocks.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((number, line));
        }
    }
    lines
}

/// The targets of `[text](target)` and `[name]: target`.
pub(crate) fn targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let defined = definition.map(|(_, target)| target);
    // A title may follow the target after a space.
    let target = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
    inline.chain(defined).map(target).collect()
}

fn problem(page: &SourceFile, target: &str, files: &[SourceFile]) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let resolved =
        if path.is_empty() { Some(page.path.clone()) } else { resolve(&page.path, path) };
    let Some(path) = resolved else {
        return Some(format!("the link {target:?} leads to no file of the repository"));
    };
    match files.iter().find(|file| file.path == path) {
        None if exists(&path, files) => None,
        None => Some(format!("the link {target:?} leads to no file")),
        Some(file) if !heading.is_empty() && file.path.ends_with(".md") => {
            let found = headings(&file.text).iter().any(|one| one == heading);
            (!found).then(|| format!("the link {target:?} leads to no heading"))
        }
        Some(_) => None,
    }
}

/// Whether inline code names a place in this repository, and not a pattern for one.
fn is_path(code: &str) -> bool {
    let below_root = ["crates/", "docs/", "tools/", "xtask/", ".ci/"];
    let plain = |one: char| one.is_ascii_alphanumeric() || "./_-".contains(one);
    below_root.iter().any(|directory| code.starts_with(directory)) && code.chars().all(plain)
}

/// Whether there is a file or directory at `path`.
fn exists(path: &str, files: &[SourceFile]) -> bool {
    let path = path.trim_end_matches('/');
    files.iter().any(|file| {
        file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// `relative` as seen from the page at `page`; none when it leaves the repository.
pub(crate) fn resolve(page: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

/// The names under which a page's headings can be linked to.
fn headings(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && line.starts_with('#') {
            found.push(anchor(line.trim_start_matches('#').trim()));
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .replace(' ', "-")
        .chars()
        .filter(|one| one.is_alphanumeric() || matches!(one, '-' | '_'))
        .collect()
}
