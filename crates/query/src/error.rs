//! Why a query cannot be read, and where.

use crate::{MAX_DEPTH, MAX_PATTERNS, MAX_QUERY_BYTES};

/// Why a query cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {}: {problem}", column + 1)]
pub struct QueryError {
    /// Characters of the query before the place that makes no sense.
    pub column: usize,
    problem: QueryProblem,
}

/// What is wrong at that place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryProblem {
    #[error("the query is longer than {MAX_QUERY_BYTES} bytes")]
    TooLong,
    #[error("parentheses and `not` stand more than {MAX_DEPTH} deep within each other")]
    TooDeep,
    #[error("this is one pattern more than the {MAX_PATTERNS} that a query can have")]
    TooManyPatterns,
    #[error("{found}, but {expected}")]
    Unexpected { found: String, expected: String },
    #[error("there is no field `{name}`{}", meant(.close))]
    NoField { name: String, close: Option<&'static str> },
    #[error("`{field}` is {is} and cannot be compared by `{operator}`")]
    Operator { field: &'static str, is: String, operator: &'static str },
    #[error("`{field}` is {expected}, and `{value}` is not")]
    Value { field: &'static str, expected: String, value: String },
    #[error("the text that begins here does not end; add {0}")]
    Open(char),
    #[error("this pattern cannot be used: {0}")]
    Pattern(String),
}

fn meant(field: &Option<&'static str>) -> String {
    match field {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::from("; a text that is looked for anywhere stands in quotes"),
    }
}

impl QueryError {
    pub(crate) fn new(column: usize, problem: QueryProblem) -> Self {
        Self { column, problem }
    }

    /// The query with a mark under the place, and the message: three lines for a terminal.
    /// What could steer the terminal is replaced.
    #[must_use]
    pub fn pointed(&self, query: &str) -> String {
        let query: String =
            query.chars().map(|it| if it.is_control() { '?' } else { it }).collect();
        let mark = " ".repeat(self.column);
        format!("{query}\n{mark}^\n{self}")
    }
}
