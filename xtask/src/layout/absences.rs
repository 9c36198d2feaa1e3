//! Invariants that are absences: what a crate's sources must not mention.

use super::map::{Absent, SourceAbsence, source_absences};
use crate::finding::Finding;
use crate::parsed::{Token, imports, parse, tokens, without_tests};
use crate::repository::SourceFile;

/// Checks every file that an absence is promised for.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let absences: Vec<SourceAbsence> = source_absences().collect();
    for file in files.iter().filter(|file| file.is_rust()) {
        let promised: Vec<&SourceAbsence> =
            absences.iter().filter(|one| file.path.starts_with(one.directory)).collect();
        if promised.is_empty() {
            continue;
        }
        match parse(file) {
            Ok(parsed) => findings.extend(check_file(&file.path, parsed, &promised)),
            Err(finding) => findings.push(finding),
        }
    }
    findings
}

fn check_file(path: &str, parsed: &syn::File, promised: &[&SourceAbsence]) -> Vec<Finding> {
    let parsed = without_tests(parsed);
    let tokens = tokens(&parsed);
    let imports = imports(&parsed);
    let mut findings = Vec::new();
    for absence in promised {
        let (what, lines) = match absence.absent {
            Absent::Path(banned) => (banned, path_lines(banned, &imports, &tokens)),
            Absent::Literal(banned) => (banned, literal_lines(banned, &tokens)),
        };
        for line in lines {
            let message = format!("{what} must not be here: {}", absence.promise);
            findings.push(Finding::at(path, line, message));
        }
    }
    findings.dedup();
    findings
}

fn path_lines(banned: &str, imports: &[(String, usize)], tokens: &[Token]) -> Vec<usize> {
    let below = format!("{banned}::");
    let imported = imports
        .iter()
        .filter(|(path, _)| path == banned || path.starts_with(&below))
        .map(|(_, line)| *line);
    let words: Vec<&str> = banned.split("::").collect();
    // `a::b` is five tokens at most: a word, two colons, a word.
    let used = (0..tokens.len()).filter(|start| matches_at(&tokens[*start..], &words));
    let mut lines: Vec<usize> = imported.chain(used.map(|start| tokens[start].line)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn matches_at(tokens: &[Token], words: &[&str]) -> bool {
    let expected = words.join(" : : ");
    let expected = expected.split(' ');
    let count = expected.clone().count();
    tokens.len() >= count
        && tokens.iter().zip(expected).all(|(token, expected)| token.text == expected)
}

fn literal_lines(banned: &str, tokens: &[Token]) -> Vec<usize> {
    let holds = |token: &&Token| token.text.contains('"') && token.text.contains(banned);
    tokens.iter().filter(holds).map(|token| token.line).collect()
}
