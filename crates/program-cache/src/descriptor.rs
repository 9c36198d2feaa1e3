//! The full description of a program: kernels, circular buffers, semaphores. Plain data that is
//! cheap to build; making one does nothing else.

pub mod circular_buffer;
pub mod decoding;
pub mod encoding;
pub mod kernel;
pub mod merge;
pub mod part;
pub mod semaphore;
pub mod validate;

use smallvec::SmallVec;

use crate::cores::CoreRanges;
use circular_buffer::CircularBufferDescriptor;
use kernel::KernelDescriptor;
use merge::MergeError;
use part::Part;
use semaphore::SemaphoreDescriptor;

/// A program.
///
/// `A` is what stands where a word of each dispatch goes: `u32` for a description with its values,
/// [`Argument`](crate::argument::Argument) for one that a factory wrote.
///
/// The orders of kernels and of circular buffers are part of the program: arguments and addresses
/// are found by position. The order of semaphores is not; their `id` names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramDescriptor<A = u32> {
    /// What runs, on which cores, with which arguments.
    pub kernels: SmallVec<[KernelDescriptor<A>; 3]>,
    /// The queues between the kernels of a core.
    pub circular_buffers: SmallVec<[CircularBufferDescriptor<A>; 5]>,
    /// The counters that kernels wait on.
    pub semaphores: SmallVec<[SemaphoreDescriptor; 3]>,
}

impl<A> Default for ProgramDescriptor<A> {
    fn default() -> Self {
        Self {
            kernels: SmallVec::new(),
            circular_buffers: SmallVec::new(),
            semaphores: SmallVec::new(),
        }
    }
}

impl<A> ProgramDescriptor<A> {
    /// A program of these kernels.
    #[must_use]
    pub fn new(kernels: impl IntoIterator<Item = KernelDescriptor<A>>) -> Self {
        Self { kernels: kernels.into_iter().collect(), ..Self::default() }
    }

    /// The same with these circular buffers.
    #[must_use]
    pub fn with_circular_buffers(
        self,
        buffers: impl IntoIterator<Item = CircularBufferDescriptor<A>>,
    ) -> Self {
        Self { circular_buffers: buffers.into_iter().collect(), ..self }
    }

    /// The same with these semaphores.
    #[must_use]
    pub fn with_semaphores(
        self,
        semaphores: impl IntoIterator<Item = SemaphoreDescriptor>,
    ) -> Self {
        Self { semaphores: semaphores.into_iter().collect(), ..self }
    }

    /// One program that does what all of these do. Their kernels, circular buffers and semaphores
    /// follow each other in the order of the programs; symbols mean what they meant, so the
    /// programs must have been described for the same operands.
    ///
    /// # Errors
    /// [`MergeError::SharedCore`] if a core is used by two of them, even by different kinds of
    /// parts: buffer indices, semaphores and memory belong to the core.
    pub fn merge(programs: impl IntoIterator<Item = Self>) -> Result<Self, MergeError> {
        merge::merge(programs)
    }

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

impl<A: Copy> ProgramDescriptor<A> {
    /// The same program with other values in the places of dispatch words.
    pub fn map<B>(&self, mut value_of: impl FnMut(&A) -> B) -> ProgramDescriptor<B> {
        ProgramDescriptor {
            kernels: self.kernels.iter().map(|kernel| kernel.map(&mut value_of)).collect(),
            circular_buffers: self
                .circular_buffers
                .iter()
                .map(|buffer| buffer.map(&mut value_of))
                .collect(),
            semaphores: self.semaphores.clone(),
        }
    }

    /// How many words of it change with each dispatch.
    #[must_use]
    pub fn dispatch_word_count(&self) -> usize {
        let kernels: usize = self
            .kernels
            .iter()
            .map(|one| one.runtime_arguments.words().len() + one.common_runtime_arguments.len())
            .sum();
        let with_address =
            self.circular_buffers.iter().filter(|one| one.placement.address().is_some());
        kernels + with_address.count()
    }
}
