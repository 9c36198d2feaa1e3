//! A configuration file's text: what is wrong with it and where, or its values.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::Configuration;
use super::check::{check, unknown_key};
use super::dotted::lookup;
use super::keys::{ConfigurationKey, ValueKind};
use super::lists::fault;
use super::words::plain;
use telltale_query::nearest;

/// Problems of one file that are reported.
const MAX_PROBLEMS: usize = 20;

/// Something wrong in a file, with its place there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong and what to do.
    pub text: String,
}

/// A value of a file and the line it is in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LocatedValue {
    pub(super) path: String,
    pub(super) value: toml::Value,
    pub(super) line: usize,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

/// Reads a text.
///
/// # Errors
/// Everything that is wrong with it, as far as known at once.
pub(super) fn read(
    text: &str,
    keys: &[ConfigurationKey],
) -> Result<Vec<LocatedValue>, Vec<FileProblem>> {
    let problem = |error: &toml::de::Error| {
        at(text, error.span().unwrap_or_default(), plain(error.message()))
    };
    let table = DeTable::parse(text).map_err(|error| vec![problem(&error)])?;
    let values: toml::Table = toml::from_str(text).map_err(|error| vec![problem(&error)])?;
    let mut walk = Walk { text, keys, places: Vec::new(), problems: Vec::new() };
    walk.table(table.get_ref(), &mut Vec::new());
    // What each key's owner demands of its value, and then of all values together.
    let whole = toml::from_str::<Configuration>(text).err();
    let precise = whole.as_ref().filter(|error| error.span().is_some());
    for place in &walk.places {
        let value = lookup(&values, &place.path);
        let Some(message) = value.and_then(|value| check(&place.path, value).err()) else {
            continue;
        };
        if let Some((span, message)) =
            value.and_then(|value| fault(table.get_ref(), &place.path, value))
        {
            walk.problems.push(at(text, span, message));
            continue;
        }
        // The error of the whole text knows a place within the value.
        let inside = |error: &&toml::de::Error| {
            error.span().is_some_and(|span| place.value.contains(&span.start))
        };
        let unknown = unknown_key(table.get_ref(), &message);
        walk.problems.push(match (unknown, precise.filter(inside)) {
            (Some((span, message)), _) => at(text, span, message),
            (None, Some(error)) => problem(error),
            (None, None) => at(text, place.value.clone(), message),
        });
    }
    if walk.problems.is_empty() {
        walk.problems.extend(whole.as_ref().map(problem));
    }
    if !walk.problems.is_empty() {
        walk.problems.sort_by_key(|problem| (problem.line, problem.column));
        walk.problems.truncate(MAX_PROBLEMS);
        return Err(walk.problems);
    }
    let found = walk.places.into_iter().filter_map(|place| {
        let value = lookup(&values, &place.path)?.clone();
        Some(LocatedValue { path: place.path, value, line: place.line })
    });
    Ok(found.collect())
}

/// Where a key that is known stands.
struct KeyLocation {
    path: String,
    line: usize,
    value: Range<usize>,
}

/// Walks through a file's tables.
struct Walk<'a> {
    text: &'a str,
    keys: &'a [ConfigurationKey],
    places: Vec<KeyLocation>,
    problems: Vec<FileProblem>,
}

impl Walk<'_> {
    fn table(&mut self, table: &DeTable<'_>, above: &mut Vec<String>) {
        for (name, value) in table {
            above.push(name.get_ref().to_string());
            let path = above.join(".");
            self.entry(&path, name, value, above);
            above.pop();
        }
    }

    fn entry(
        &mut self,
        path: &str,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        above: &mut Vec<String>,
    ) {
        if let Some(key) = self.keys.iter().find(|key| key.path == path) {
            let (line, _) = place(self.text, name.span().start);
            let wrong = matches!(value.get_ref(), DeValue::Table(_)) && key.kind != ValueKind::Map;
            if wrong {
                self.complain(name.span(), format!("`{path}` is a value, not a table"));
            } else {
                self.places.push(KeyLocation { path: path.to_owned(), line, value: value.span() });
            }
            return;
        }
        let below = format!("{path}.");
        let is_table = self.keys.iter().any(|key| key.path.starts_with(&below));
        match value.get_ref() {
            DeValue::Table(inner) if is_table => self.table(inner, above),
            _ if is_table => {
                self.complain(name.span(), format!("`{path}` is a table: write [{path}]"));
            }
            _ => {
                let is_table = matches!(value.get_ref(), DeValue::Table(_));
                let whole = self.keys.iter().map(|key| key.path.as_str());
                let tables = self.keys.iter().filter_map(|key| key.path.rsplit_once('.'));
                let tables = tables.map(|(table, _)| table).filter(|_| is_table);
                let hint = match nearest(path, whole.chain(tables)) {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None => String::from("; `telltale config show` lists all keys"),
                };
                self.complain(name.span(), format!("unknown key `{path}`{hint}"));
            }
        }
    }

    fn complain(&mut self, span: Range<usize>, message: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(at(self.text, span, message));
        }
    }
}

fn at(text: &str, span: Range<usize>, message: String) -> FileProblem {
    let (line, column) = place(text, span.start);
    FileProblem { line, column, text: message }
}

/// Line and column of a byte.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
