//! A query as a tree, and what it says of one row: true, false, or neither, because something it
//! asks for is not known.

use crate::field::Field;
use crate::lexer::Comparison;
use crate::pattern::Pattern;
use crate::subject::{Subject, Value};

/// The client no longer wants the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// A part of a query.
#[derive(Debug, Clone)]
pub(crate) enum Expression {
    All,
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Test(&'static Field, Test),
}

/// What is asked of one field.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    /// A number, in the field's base unit.
    Number(Comparison, f64),
    /// Text, equal or not, whatever its case.
    Text { text: String, negated: bool },
    /// Text that a pattern is found in.
    Pattern { pattern: Pattern, negated: bool },
    /// One of these numbers.
    NumberIn(Vec<f64>),
    /// One of these texts.
    TextIn(Vec<String>),
    /// Whether there is a value.
    Absent { negated: bool },
}

impl Expression {
    /// Whether it names a field that is of a kind.
    pub(crate) fn names(&self, is_of_kind: &dyn Fn(&Field) -> bool) -> bool {
        match self {
            Self::All => false,
            Self::Not(inner) => inner.names(is_of_kind),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(|part| part.names(is_of_kind)),
            Self::Test(field, _) => is_of_kind(field),
        }
    }

    /// What it says; none where that depends on something that is not known. `goes_on` is asked
    /// before each search for a pattern, with the most steps that it can take: a row may have many,
    /// each of them in a long text.
    pub(crate) fn holds(
        &self,
        subject: &Subject<'_>,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<bool>, Stopped> {
        match self {
            Self::All => Ok(Some(true)),
            Self::Not(inner) => Ok(inner.holds(subject, goes_on)?.map(|holds| !holds)),
            Self::And(parts) => decided(parts, subject, false, goes_on),
            Self::Or(parts) => decided(parts, subject, true, goes_on),
            Self::Test(field, test) => {
                let value = subject.value(field);
                match test.most_steps(&value) {
                    Some(steps) if !goes_on(steps) => Err(Stopped),
                    _ => Ok(test.holds(&value)),
                }
            }
        }
    }
}

/// What parts say together: one that says `decisive` decides; else one that is unknown leaves it open.
fn decided(
    parts: &[Expression],
    subject: &Subject<'_>,
    decisive: bool,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<bool>, Stopped> {
    let mut said = Some(!decisive);
    for part in parts {
        match part.holds(subject, goes_on)? {
            Some(holds) if holds == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => said = None,
        }
    }
    Ok(said)
}

impl Test {
    /// The most steps that a search can take; none where this searches for nothing.
    fn most_steps(&self, value: &Value<'_>) -> Option<u64> {
        match (self, value) {
            (Self::Pattern { pattern, .. }, Value::Text(value)) => Some(pattern.most_steps(value)),
            (Self::Pattern { .. }, _) => Some(0),
            _ => None,
        }
    }

    fn holds(&self, value: &Value<'_>) -> Option<bool> {
        if let Self::Absent { negated } = self {
            return Some(matches!(value, Value::Absent) != *negated);
        }
        match (self, value) {
            (Self::Number(comparison, wanted), Value::Number(value)) => {
                comparison.holds(*value, *wanted)
            }
            (Self::NumberIn(wanted), Value::Number(value)) => {
                // Both went the same way from digits, so equal ones are the same number.
                Some(wanted.iter().any(|wanted| wanted.to_bits() == value.to_bits()))
            }
            (Self::Text { text, negated }, Value::Text(value)) => {
                Some(same(text, value) != *negated)
            }
            (Self::TextIn(texts), Value::Text(value)) => {
                Some(texts.iter().any(|text| same(text, value)))
            }
            (Self::Pattern { pattern, negated }, Value::Text(value)) => {
                Some(pattern.is_in(value) != *negated)
            }
            _ => None,
        }
    }
}

/// Whether two texts are the same whatever their case. Looks no further than their first
/// difference: one of them may be a long command line, and a query may have many texts.
fn same(one: &str, other: &str) -> bool {
    one == other || lower(one).eq(lower(other))
}

/// The letters of a text in small. The sigma that ends a word is taken for the other one, which is
/// the same letter in capitals.
fn lower(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase).map(|one| if one == 'ς' { 'σ' } else { one })
}

impl Comparison {
    fn holds(self, value: f64, wanted: f64) -> Option<bool> {
        let order = value.partial_cmp(&wanted)?;
        Some(match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Like | Self::Unlike => return None,
        })
    }
}
