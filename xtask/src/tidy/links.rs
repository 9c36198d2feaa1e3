//! Links between Markdown files: the file must exist, and so must the heading.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Finds relative links that lead nowhere. Links to the web are not followed.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    pages.flat_map(|page| check_page(page, files)).collect()
}

fn check_page(page: &SourceFile, files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(&page.text) {
        for target in targets(&line) {
            if let Some(message) = problem(page, &target, files) {
                findings.push(Finding::at(&page.path, number, message));
            }
        }
    }
    findings
}

/// The lines outside code blocks, without inline code.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let outside: Vec<&str> = line.split('`').step_by(2).collect();
            lines.push((number, outside.join("")));
        }
    }
    lines
}

/// The targets of `[text](target)` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
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
    let file = files.iter().find(|file| file.path == path);
    let is_directory = || files.iter().any(|file| file.path.starts_with(&format!("{path}/")));
    match file {
        None if is_directory() => None,
        None => Some(format!("the link {target:?} leads to no file")),
        Some(file) if !heading.is_empty() && file.path.ends_with(".md") => {
            let found = headings(&file.text).iter().any(|one| one == heading);
            (!found).then(|| format!("the link {target:?} leads to no heading"))
        }
        Some(_) => None,
    }
}

/// `relative` as seen from the page at `page`; none when it leaves the repository.
fn resolve(page: &str, relative: &str) -> Option<String> {
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
