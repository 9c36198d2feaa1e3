//! Names for the parts of a program, for errors.

use std::fmt;

use crate::cores::CoreRanges;
use crate::descriptor::ProgramDescriptor;
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

impl<A> ProgramDescriptor<A> {
    /// Every part with its cores: kernels, circular buffers, semaphores.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Part, &CoreRanges)> {
        let kernels = self.kernels.iter().enumerate().map(|(index, kernel)| {
            (Part::Kernel { index, name: kernel.name.clone() }, &kernel.core_ranges)
        });
        let buffers = self
            .circular_buffers
            .iter()
            .enumerate()
            .map(|(index, buffer)| (Part::CircularBuffer { index }, &buffer.core_ranges));
        let semaphores = self.semaphores.iter().enumerate().map(|(index, semaphore)| {
            (Part::Semaphore { index, id: semaphore.id }, &semaphore.core_ranges)
        });
        kernels.chain(buffers).chain(semaphores)
    }
}
