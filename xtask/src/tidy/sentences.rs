//! Sentences of documents: short ones, by count.
//!
//! A sentence ends at `.`, `!`, `?` or `:`, at an empty line, and before an item of a list. Headings, tables, code, and
//! generated parts have none.

use crate::finding::Finding;
use crate::repository::SourceFile;
use crate::size::{END, GENERATED, is_document};

/// Words that a sentence may have.
const MAX_WORDS: usize = 30;
/// Words that the sentences of one document may have on the average.
const MAX_AVERAGE: f64 = 15.0;

/// A sentence.
struct Sentence<'a> {
    /// Of its last line.
    line: usize,
    words: Vec<&'a str>,
}

/// Finds long sentences, and documents whose sentences are long on the average.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let documents = files.iter().filter(|file| is_document(&file.path) && !file.is_generated());
    documents.flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let sentences = sentences(&file.text);
    let long = sentences.iter().filter(|sentence| sentence.words.len() > MAX_WORDS);
    let mut findings: Vec<Finding> = long
        .map(|Sentence { line, words }| {
            let begin = words[..4].join(" ");
            let count = words.len();
            let message =
                format!("a sentence of {count} words, \"{begin} …\": at most {MAX_WORDS}");
            Finding::at(&file.path, *line, message)
        })
        .collect();
    let words: usize = sentences.iter().map(|sentence| sentence.words.len()).sum();
    let average = words as f64 / sentences.len().max(1) as f64;
    if average > MAX_AVERAGE {
        let message = format!("{average:.1} words a sentence: at most {MAX_AVERAGE}");
        findings.push(Finding::at(&file.path, 1, message));
    }
    findings
}

fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let (mut found, mut words) = (Vec::new(), Vec::new());
    let (mut is_code, mut is_generated) = (false, false);
    for (line, text) in (1..).zip(text.lines()) {
        let trimmed = text.trim_start();
        is_generated |= GENERATED.iter().any(|mark| text.starts_with(mark));
        let is_fence = trimmed.starts_with("```");
        let is_other = is_code || is_fence || is_generated || text.starts_with("    ");
        let is_prose =
            !is_other && !trimmed.is_empty() && !trimmed.starts_with(['|', '#', '!', '<']);
        is_code ^= is_fence;
        is_generated &= !text.starts_with(END);
        if (!is_prose || item(trimmed).is_some()) && !words.is_empty() {
            let words = std::mem::take(&mut words);
            found.push(Sentence { line: line - 1, words });
        }
        if !is_prose {
            continue;
        }
        for word in item(trimmed).unwrap_or(trimmed).split_whitespace() {
            words.push(word);
            if word.trim_end_matches([')', '"', '*', '_']).ends_with(['.', '!', '?', ':']) {
                let words = std::mem::take(&mut words);
                found.push(Sentence { line, words });
            }
        }
    }
    if !words.is_empty() {
        found.push(Sentence { line: text.lines().count(), words });
    }
    found
}

/// What an item of a list says.
fn item(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let marks: &[&str] = if rest.len() < line.len() { &[". "] } else { &["- ", "> "] };
    marks.iter().find_map(|mark| rest.strip_prefix(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<usize> {
        sentences(text).iter().map(|sentence| sentence.words.len()).collect()
    }

    #[test]
    fn sentences_end_at_marks_items_and_empty_lines() {
        let text = "# Not one\n\nOne two. Three\nfour five:\n\n- six\n- seven eight\n1. nine\n\n| not | one |\n\nten\n";
        assert_eq!(lengths(text), [2, 3, 1, 2, 1, 1]);
        assert_eq!(lengths("One `a.b` two (three).\n```\nnot one\n```\nfour"), [4, 1]);
    }

    #[test]
    fn long_sentences_and_long_averages_are_found() {
        let of = |words: usize| format!("{}end.\n", "word ".repeat(words - 1));
        let found = |text: String| check(&[SourceFile::new("docs/a.md", &text)]).len();
        let short = of(1).repeat(40);
        assert_eq!(found(of(MAX_WORDS) + &short), 0);
        assert_eq!(found(of(MAX_WORDS + 1) + &short), 1);
        assert_eq!(found(of(16)), 1);
        assert_eq!(found(of(15)), 0);
    }
}
