//! What a factory writes where a per-dispatch word will stand: a constant, or the name of a value
//! that is known only at the dispatch. A factory never sees an address.

use crate::key::ProgramKey;

/// Which of an operation's operands (inputs and outputs, counted from 0 in the order in which the
/// operation is given them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ProgramKey)]
pub struct OperandIndex(pub u16);

/// Which of an operation's values that change with each dispatch, such as a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ProgramKey)]
pub struct DynamicIndex(pub u16);

/// Which of the global semaphores that an operation is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ProgramKey)]
pub struct GlobalSemaphoreIndex(pub u16);

/// One word of a kernel's arguments, or an address of a circular buffer, as a factory describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A word that follows from the attributes and specifications alone.
    Word(u32),
    /// The address of an operand's buffer, plus an offset.
    Address {
        /// Whose address.
        operand: OperandIndex,
        /// Bytes from the start of the buffer; the sum wraps around at 32 bits like the device's
        /// own arithmetic.
        offset_bytes: u32,
    },
    /// A value handed over with each dispatch.
    Dynamic(DynamicIndex),
    /// The address of a global semaphore.
    SemaphoreAddress(GlobalSemaphoreIndex),
}

impl Default for Argument {
    fn default() -> Self {
        Self::Word(0)
    }
}

impl From<u32> for Argument {
    fn from(word: u32) -> Self {
        Self::Word(word)
    }
}
