//! What a check reports: a place, the rule that is broken there, and what to do.

use std::fmt;

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the repository's root.
    pub path: String,
    /// Line, counted from 1, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    /// A finding about a whole file.
    #[must_use]
    pub fn whole(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }

    /// A finding about one line.
    #[must_use]
    pub fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}:{line}: {}", self.path, self.message),
            None => write!(formatter, "{}: {}", self.path, self.message),
        }
    }
}

impl std::error::Error for Finding {}
