//! What a node is called, which of its lives is meant, and what it is to the job.
//!
//! Names come from strangers: they are checked once, here.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Bytes a node's name may have: what a domain name may (RFC 1035, 2.3.4, less the final dot).
pub const MAX_NODE_NAME_BYTES: usize = telltale_wire::limits::cluster::MAX_NODE_BYTES;

/// The name of a node: 1 to 253 of the ASCII letters, digits, `.`, `-`, `_` and `:`.
///
/// Two nodes with the same name are the same node, in different incarnations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

/// Why a text is not the name of a node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeNameError {
    /// It is empty.
    #[error("a node's name is empty; give the host's name")]
    Empty,
    /// It is too long.
    #[error("a node's name has {bytes} bytes, and may have {MAX_NODE_NAME_BYTES}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// It has a character that names must not have.
    #[error("a node's name has a character {character:?}; use letters, digits, '.', '-', '_', ':'")]
    Character {
        /// The first such character.
        character: char,
    },
}

impl NodeName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, longer than [`MAX_NODE_NAME_BYTES`], or has another character than those
    /// that names may have.
    pub fn new(text: &str) -> Result<Self, NodeNameError> {
        if text.is_empty() {
            return Err(NodeNameError::Empty);
        }
        if text.len() > MAX_NODE_NAME_BYTES {
            return Err(NodeNameError::TooLong { bytes: text.len() });
        }
        let allowed = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_' | ':')
        };
        match text.chars().find(|character| !allowed(*character)) {
            Some(character) => Err(NodeNameError::Character { character }),
            None => Ok(Self(text.into())),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Where a node's workers are reached by others: a host name or an IP address, of the same characters
/// and length as a node's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostAddress(NodeName);

impl HostAddress {
    /// Checks an address's form; whether it leads anywhere is not known here.
    ///
    /// # Errors
    /// As [`NodeName::new`].
    pub fn new(text: &str) -> Result<Self, NodeNameError> {
        NodeName::new(text).map(Self)
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Which life of a node's agent is meant: a number that its driver draws at each start of the agent,
/// larger than every one before (milliseconds since 1970 will do).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u64);

impl Incarnation {
    /// The incarnation with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Why a node is kept out of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bar {
    /// It failed too often.
    Quarantined,
    /// It was replaced for what was suspected of it.
    Suspected,
    /// An operator drains it: it keeps its slot until a spare can take it, and gets no other.
    Draining,
    /// An operator removed it.
    Removed,
}

/// What a node is to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// It holds a slot, so its ranks run or are about to.
    Active,
    /// It is registered and waits for a slot.
    Standby,
    /// It held a slot or stood by, and is not heard any more.
    Silent,
    /// Its agent was asked to end, and is not heard any more; it keeps its slot.
    Ended,
    /// It is kept out of the job, for this reason, until an operator readmits it.
    Barred(Bar),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let long = "n".repeat(MAX_NODE_NAME_BYTES + 1);
        let cases = [
            ("rack-3.node_7:0", None),
            ("", Some(NodeNameError::Empty)),
            (long.as_str(), Some(NodeNameError::TooLong { bytes: 254 })),
            ("a b", Some(NodeNameError::Character { character: ' ' })),
            ("a\u{202e}b", Some(NodeNameError::Character { character: '\u{202e}' })),
        ];
        for (text, expected) in cases {
            assert_eq!(NodeName::new(text).err(), expected, "{text:?}");
        }
    }
}
