//! The table of docs/questions.md: its rows, the ways in them, and how long each is by the rule above it.

use std::fs;
use std::path::Path;

/// Where something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `telltale top`, which is open already.
    Top,
    /// The page, which is open already.
    Page,
    /// A shell.
    Shell,
}

/// One way to an answer.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) place: Place,
    /// What is pressed, clicked or typed, as it is written there.
    pub(super) steps: Vec<String>,
}

/// One row.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) ways: Vec<Way>,
    /// What other tools are called and how long their way is; none where they cannot tell.
    pub(super) others: Vec<(String, Option<usize>)>,
}

/// What stands for no step.
const AT_ONCE: &str = "first screen";
/// What a cell begins with whose tool cannot tell.
const CANNOT: &str = "—";

impl Way {
    fn new(text: &str) -> Self {
        let (place, steps) = text.split_once(": ").unwrap_or_else(|| panic!("no place: {text}"));
        let place = match place {
            "top" => Place::Top,
            "page" => Place::Page,
            "shell" => Place::Shell,
            _ => panic!("{place} is no place"),
        };
        assert_eq!(steps.contains(AT_ONCE), !steps.contains('`'), "{text}");
        Self { place, steps: spans(steps).map(str::to_owned).collect() }
    }

    pub(super) fn length(&self) -> usize {
        self.steps.iter().map(|step| words(step)).sum()
    }
}

impl Question {
    /// The shortest way here.
    pub(super) fn length(&self) -> usize {
        self.ways.iter().map(Way::length).min().expect("each question has a way")
    }
}

/// The texts between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    assert!(text.matches('`').count().is_multiple_of(2), "an open backtick: {text}");
    text.split('`').skip(1).step_by(2)
}

/// What is between blanks is a step each.
fn words(span: &str) -> usize {
    span.split_whitespace().count()
}

fn other_length(cell: &str) -> Option<usize> {
    if cell.starts_with(CANNOT) {
        assert!(!cell.contains('`'), "no way, and yet one: {cell}");
        return None;
    }
    assert_eq!(cell.contains(AT_ONCE), !cell.contains('`'), "{cell}");
    Some(spans(cell).map(words).sum())
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/questions.md");
    fs::read_to_string(page).unwrap()
}

/// The questions for which the page says that another tool needs fewer steps.
pub(super) fn listed_as_shorter() -> Vec<String> {
    let text = page();
    let (_, section) = text.split_once("\n## Where another tool needs fewer steps\n").unwrap();
    let items = section.trim_start().lines().map_while(|line| line.strip_prefix("- "));
    items.map(str::to_owned).collect()
}

/// All rows, in the order of the table.
pub(super) fn questions() -> Vec<Question> {
    let text = page();
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| question |"));
    let tools = cells(lines.next().expect("the table"));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells);
    let question = |row: Vec<String>| {
        assert_eq!(row.len(), tools.len(), "{row:?}");
        let ways = row[1].split("<br>").map(Way::new).collect();
        let others = tools.iter().zip(&row).skip(2);
        let others = others.map(|(tool, cell)| (tool.clone(), other_length(cell))).collect();
        Question { text: row[0].clone(), ways, others }
    };
    rows.map(question).collect()
}
