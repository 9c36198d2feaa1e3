//! Where a slot is, in words that a person can follow.

use std::fmt;

use crate::cores::CoreCoord;
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::kernel::Text;

/// Where an argument word of a program belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// An argument of one core.
    Runtime {
        /// Which kernel, from 0.
        kernel: usize,
        /// Its name.
        name: Text,
        /// Which core.
        core: CoreCoord,
        /// Which of its arguments, from 0.
        argument: usize,
    },
    /// An argument that all cores of a kernel share.
    Common {
        /// Which kernel, from 0.
        kernel: usize,
        /// Its name.
        name: Text,
        /// Which argument, from 0.
        argument: usize,
    },
    /// The address of a circular buffer.
    CircularBuffer {
        /// Which circular buffer, from 0.
        index: usize,
    },
    /// Behind the last word.
    Nowhere {
        /// The slot's number.
        slot: usize,
    },
}

impl ArgumentLocation {
    /// The place of a slot, counted in the order of a program's words.
    #[must_use]
    pub fn of<A: Copy>(program: &ProgramDescriptor<A>, slot: usize) -> Self {
        let mut rest = slot;
        for (kernel, described) in program.kernels.iter().enumerate() {
            let name = || described.name.clone();
            let common = described.common_runtime_arguments.len();
            if rest < common {
                return Self::Common { kernel, name: name(), argument: rest };
            }
            rest -= common;
            for (core, words) in described.runtime_arguments.cores() {
                if rest < words.len() {
                    return Self::Runtime { kernel, name: name(), core, argument: rest };
                }
                rest -= words.len();
            }
        }
        let buffers = program.circular_buffers.iter().enumerate();
        let mut with_address = buffers.filter(|(_, one)| one.placement.address().is_some());
        match with_address.nth(rest) {
            Some((index, _)) => Self::CircularBuffer { index },
            None => Self::Nowhere { slot },
        }
    }
}

impl fmt::Display for ArgumentLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime { kernel, name, core, argument } => {
                write!(formatter, "kernel {kernel} `{name}`, core {core}, argument {argument}")
            }
            Self::Common { kernel, name, argument } => {
                write!(formatter, "kernel {kernel} `{name}`, common argument {argument}")
            }
            Self::CircularBuffer { index } => {
                write!(formatter, "circular buffer {index}, address")
            }
            Self::Nowhere { slot } => write!(formatter, "argument slot {slot}"),
        }
    }
}
