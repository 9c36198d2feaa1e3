//! ARCHITECTURE.md shows the map as it is: every crate and what it may use.

use super::map::{MEMBERS, MayUse, Member};
use crate::finding::Finding;
use crate::repository::SourceFile;

const PAGE: &str = "ARCHITECTURE.md";

/// Checks the page's tables against the map.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE);
    let text = page.map_or("", |page| &page.text);
    MEMBERS.iter().filter_map(|member| check_member(member, text)).collect()
}

fn check_member(member: &Member, page: &str) -> Option<Finding> {
    let name = short_name(member.package);
    let start = format!("| `{name}` |");
    let Some((line, row)) = (1..).zip(page.lines()).find(|(_, row)| row.starts_with(&start)) else {
        return Some(Finding::whole(PAGE, format!("lacks a row that starts with {start}")));
    };
    let MayUse::Only(allowed) = member.may_use else { return None };
    let names: Vec<&str> = allowed.iter().copied().map(short_name).collect();
    let expected = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let shown = row.trim_end_matches(['|', ' ']).rsplit('|').next().map_or("", str::trim);
    (shown != expected)
        .then(|| Finding::at(PAGE, line, format!("{name} may use {expected}, not {shown}")))
}

fn short_name(package: &str) -> &str {
    package.strip_prefix("telltale-").unwrap_or(package)
}
