//! Tables of documents: each row has as many cells as the heading, since a browser drops the others.

use crate::finding::Finding;
use crate::repository::SourceFile;

/// Finds rows with more or fewer cells than their table's heading.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().filter(|file| file.path.ends_with(".md")).flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let (mut findings, mut heading) = (Vec::new(), None);
    let (mut is_code, mut above) = (false, 0);
    for (line, text) in (1..).zip(file.text.lines()) {
        is_code ^= text.trim_start().starts_with("```");
        let count = cells(text).filter(|_| !is_code);
        let is_rule = text.chars().all(|one| "|-: ".contains(one));
        match (count, heading) {
            (None, _) => heading = None,
            (Some(_), None) if is_rule => heading = Some(above),
            (Some(count), Some(heading)) if count != heading => {
                let message = format!("{count} cells below a heading of {heading}");
                findings.push(Finding::at(&file.path, line, message));
            }
            _ => {}
        }
        above = count.unwrap_or_default();
    }
    findings
}

/// How many cells a row of a table has; `None` for another line. A `|` in code or behind `\` ends none.
fn cells(line: &str) -> Option<usize> {
    let row = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
    let (mut count, mut is_code, mut is_escaped) = (1, false, false);
    for one in row.chars() {
        is_code ^= one == '`';
        count += usize::from(one == '|' && !is_code && !is_escaped);
        is_escaped = one == '\\';
    }
    Some(count)
}
