//! What running a program needs, worked out once when it is loaded: which kernel runs where, with
//! which of the program's argument words, and where the circular buffers are.

use std::sync::Arc;

use super::loaded::LoadedKernel;

/// Kernels that one core can run at a time.
pub(crate) const KERNELS_OF_CORE: usize = 8;

/// A loaded program. The argument words that it is run with are not part of it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) kernels: Vec<PlannedKernel>,
    pub(crate) cores: Vec<PlannedCore>,
    pub(crate) circular_buffers: Vec<PlannedCircularBuffer>,
    pub(crate) semaphores: Vec<PlannedSemaphore>,
    /// What the circular buffers of a core take up that are not on top of buffers.
    pub(crate) memory_bytes: usize,
}

/// One kernel of a program.
#[derive(Debug)]
pub(crate) struct PlannedKernel {
    pub(crate) name: Arc<str>,
    pub(crate) code: Arc<LoadedKernel>,
    pub(crate) common_arguments: Words,
}

/// One core of a program.
#[derive(Debug)]
pub(crate) struct PlannedCore {
    pub(crate) x: u16,
    pub(crate) y: u16,
    /// Its place in the grid, row by row.
    pub(crate) place: usize,
    /// The program's kernels by number, each with its arguments here.
    pub(crate) kernels: Vec<(usize, Words)>,
    /// The program's circular buffers by number; for one on top of a buffer, which part of it.
    pub(crate) circular_buffers: Vec<(usize, u32)>,
    /// What those take up that are not on top of buffers.
    pub(crate) memory_bytes: usize,
}

/// A range of the program's argument words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Words {
    pub(crate) first: usize,
    pub(crate) count: u32,
}

/// One format of a circular buffer.
#[derive(Debug)]
pub(crate) struct PlannedCircularBuffer {
    /// The number that kernels know it by.
    pub(crate) index: u8,
    pub(crate) page_bytes: u32,
    pub(crate) pages: u32,
    pub(crate) place: CircularBufferPlace,
}

/// Where a circular buffer's pages are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CircularBufferPlace {
    /// In the core's memory for circular buffers, from this byte on.
    Own(usize),
    /// On a buffer that is divided among `parts` cores.
    OnBuffer {
        /// Which argument word has the buffer's address.
        address_word: usize,
        parts: u32,
        offset: u32,
        bytes: u32,
    },
}

/// The values that a semaphore starts with.
#[derive(Debug)]
pub(crate) struct PlannedSemaphore {
    pub(crate) id: usize,
    pub(crate) initial_value: u32,
    /// Places in the grid.
    pub(crate) cores: Vec<usize>,
}

impl Words {
    /// These words of `all`; none if the program is run with too few.
    pub(crate) fn of(self, all: &[u32]) -> Option<&[u32]> {
        let count = usize::try_from(self.count).ok()?;
        all.get(self.first..self.first.checked_add(count)?)
    }
}
