//! The language in which people say which processes and devices they want to see:
//! `dram > 2GiB and user == root or name ~ /train/`. Specified in `docs/query.md`.
//!
//! [`Query::parse`] reads a query, [`Query::select`] applies it to a snapshot, [`complete`] says how
//! one that is being typed can go on. A query comes from anybody: its length, depth and the work
//! that it makes are bounded. Nothing here reads or measures anything.
#![forbid(unsafe_code)]

mod choice;
mod completion;
mod device_list;
mod error;
mod expression;
mod field;
mod lexer;
mod parser;
mod pattern;
mod reason;
mod selection;
mod sort;
mod spelling;
mod subject;
mod total;
mod unit;

pub use choice::{ChosenDevices, DeviceChoice, DeviceChoiceError};
pub use completion::{Candidate, complete};
pub use device_list::{DeviceList, DeviceListError, NoSuchDevice};
pub use error::QueryError;
pub use field::{Field, FieldKind, Owner};
pub use sort::{Sort, SortError};
pub use spelling::nearest;
pub use subject::Value;
pub use unit::Dimension;

use expression::{Expression, Stopped};
use subject::Subject;
use telltale_schema::snapshot::{Device, HeldDevice, Process};

/// Bytes of the longest query.
pub const MAX_QUERY_BYTES: usize = 2048;

/// How deep parentheses and `not` may stand within each other.
pub const MAX_DEPTH: usize = 32;

/// Patterns and quoted texts of one query that are searched for in a text.
pub const MAX_PATTERNS: usize = 16;

/// Why a search that is not stopped comes to its end.
const ALWAYS: &str = "it always goes on";

/// A query that can be answered.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    expression: Expression,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// With the column where it stops making sense, and what could stand there.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let expression = parser::parse(text)?;
        Ok(Self { text: text.to_owned(), expression })
    }

    /// The query as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it asks what processes use of their host, which is read only where it is asked for.
    #[must_use]
    pub fn asks_for_usage(&self) -> bool {
        self.names(Field::is_of_usage)
    }

    /// Whether it names a field that is of a kind.
    #[must_use]
    pub fn names(&self, is_of_kind: impl Fn(&Field) -> bool) -> bool {
        self.expression.names(&is_of_kind)
    }

    /// Whether it holds for a process and what it has on one device. What is not known makes a
    /// comparison neither true nor false, and only what is true is a match.
    #[must_use]
    pub fn matches_process(
        &self,
        process: &Process,
        held: Option<&HeldDevice>,
        device: Option<&Device>,
    ) -> bool {
        let subject = Subject { process: Some(process), held, device };
        self.holds(&subject, &mut |_| true).expect(ALWAYS)
    }

    /// Whether it holds for a device, for any user.
    #[must_use]
    pub fn matches_device(&self, device: &Device) -> bool {
        self.holds(&Subject::of_device_alone(device), &mut |_| true).expect(ALWAYS)
    }

    fn holds(
        &self,
        subject: &Subject<'_>,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, Stopped> {
        Ok(self.expression.holds(subject, goes_on)? == Some(true))
    }
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Query {}

impl std::fmt::Display for Query {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::str::FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        Self::parse(text)
    }
}
