//! The tables of docs/coming-from.md: what is written elsewhere, and what here.

use std::fs;
use std::path::Path;

/// What stands where there is no such command here.
const NOT_HERE: &str = "not here";
/// What a table of pairs begins with.
const HEADINGS: [&str; 2] = ["| you write | here |", "| its metric | here |"];

/// A row.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The heading of its section.
    pub(crate) section: String,
    /// What is written elsewhere, several where one thing here stands for all.
    pub(crate) theirs: Vec<String>,
    /// What is written here; none where there is no such command.
    pub(crate) ours: Option<String>,
}

/// The page.
pub(crate) fn text() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    fs::read_to_string(page).unwrap()
}

/// All rows, in the order of the page.
pub(crate) fn pairs() -> Vec<Pair> {
    let text = text();
    let mut pairs = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').expect("a section has a body");
        let mut is_of_pairs = false;
        for line in body.lines() {
            is_of_pairs = match line.starts_with('|') {
                true => is_of_pairs || HEADINGS.iter().any(|begin| line.starts_with(begin)),
                false => false,
            };
            let is_heading = HEADINGS.iter().any(|begin| line.starts_with(begin));
            if is_of_pairs && !is_heading && !line.starts_with("|---") {
                pairs.push(pair(heading, line));
            }
        }
    }
    pairs
}

fn pair(section: &str, line: &str) -> Pair {
    let line = line.trim_start_matches("| ").trim_end().trim_end_matches('|');
    let cells: Vec<&str> = line.split(" | ").collect();
    assert_eq!(cells.len(), 3, "{line}");
    let theirs: Vec<String> = spans(cells[0]).map(str::to_owned).collect();
    assert!(!theirs.is_empty(), "{line}");
    let ours: Vec<&str> = spans(cells[1]).collect();
    let ours = match &ours[..] {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => panic!("{several:?} is more than one command"),
    };
    assert!(
        ours.is_some() || cells[1].trim() == NOT_HERE,
        "neither a command nor {NOT_HERE}: {line}"
    );
    Pair { section: section.to_owned(), theirs, ours }
}

/// The texts between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    assert!(text.matches('`').count().is_multiple_of(2), "an open backtick: {text}");
    text.split('`').skip(1).step_by(2)
}
