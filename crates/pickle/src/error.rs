//! Why a pickle is not read.

use std::fmt;

/// Why a pickle is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PickleError {
    /// It is too long.
    #[error("a pickle of {bytes} bytes; {} are read at most", crate::MAX_BYTES)]
    TooLong {
        /// How long.
        bytes: usize,
    },
    /// It ends within an opcode, or before its value is complete.
    #[error("it ends before it is complete, at byte {at}")]
    Cut {
        /// Where.
        at: usize,
    },
    /// It would import or call something, or uses an opcode that makes no plain data.
    #[error("it has the opcode {name} at byte {at}, which makes no plain data and is refused")]
    Refused {
        /// The opcode, as `pickletools` names it, or its number.
        name: String,
        /// Where.
        at: usize,
    },
    /// It uses the stack, a mark or the memo as no pickle does.
    #[error("it is malformed at byte {at}: {what}")]
    Malformed {
        /// How.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// Its values refer to each other so often that reading them would take too long.
    #[error("its values refer to each other too often")]
    Entangled,
    /// Its values are not what is wanted.
    #[error("{0}")]
    Unexpected(String),
}

impl serde::de::Error for PickleError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Unexpected(message.to_string())
    }
}
