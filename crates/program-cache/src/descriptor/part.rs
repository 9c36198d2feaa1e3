//! Names for the parts of a program, for errors.

use std::fmt;

use crate::descriptor::kernel::Text;

/// A part of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A kernel.
    Kernel {
        /// Which one, from 0.
        index: usize,
        /// Its name.
        name: Text,
    },
    /// A circular buffer.
    CircularBuffer {
        /// Which one, from 0.
        index: usize,
    },
    /// A semaphore.
    Semaphore {
        /// Which one, from 0.
        index: usize,
        /// What kernels call it.
        id: u32,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel { index, name } => write!(formatter, "kernel {index} ({name})"),
            Self::CircularBuffer { index } => write!(formatter, "circular buffer {index}"),
            Self::Semaphore { index, id } => write!(formatter, "semaphore {index} (id {id})"),
        }
    }
}
