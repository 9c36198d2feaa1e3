//! The patch plan of a factory's program: which slots hold what changes with each dispatch.
//!
//! It is made once, from the symbols of the description. A hit then writes these slots and builds
//! nothing. Operands are told apart by position, never by their address, so it does not matter
//! which of them happened to share a buffer when the program was first described.

use crate::argument::Argument;
use crate::descriptor::ProgramDescriptor;
use crate::dispatch::Dispatch;
use crate::slots::{ArgumentsError, ProgramArguments};
use crate::update::UpdateError;

/// Slots to write at each dispatch, as runs of equal distance with equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchPlan {
    runs: Box<[PatchRun]>,
    /// Words of the programs that it is for.
    word_count: usize,
}

/// Slots that hold the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PatchRun {
    /// What the word stands for.
    symbol: Argument,
    /// The first slot.
    first: usize,
    /// One behind the last slot.
    end: usize,
    /// From one to the next; at least 1.
    stride: usize,
}

impl PatchPlan {
    /// The plan for programs of this description.
    #[must_use]
    pub fn of(descriptor: &ProgramDescriptor<Argument>) -> Self {
        let mut slots = Vec::new();
        let mut word_count = 0;
        for argument in arguments_of(descriptor) {
            if !matches!(argument, Argument::Word(_)) {
                slots.push((*argument, word_count));
            }
            word_count += 1;
        }
        // Slots of equal content come together, in ascending order.
        slots.sort_by_key(|(symbol, slot)| (order_of(*symbol), *slot));
        let mut runs: Vec<PatchRun> = Vec::new();
        for (symbol, slot) in slots {
            match runs.last_mut() {
                Some(run) if run.symbol == symbol && run.takes(slot) => run.add(slot),
                _ => runs.push(PatchRun { symbol, first: slot, end: slot + 1, stride: 1 }),
            }
        }
        Self { runs: runs.into(), word_count }
    }

    /// How many runs of slots it writes.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Bytes that the plan itself takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of_val(&*self.runs)
    }

    /// Writes the words of a dispatch.
    ///
    /// # Errors
    /// When the program is not one of those that the plan is for (then nothing is written), or
    /// something that it needs was not given.
    #[inline]
    pub fn write_to(
        &self,
        dispatch: &Dispatch<'_>,
        arguments: &mut ProgramArguments,
    ) -> Result<(), UpdateError> {
        let words = arguments.words_mut();
        if words.len() != self.word_count {
            let (expected, given) = (self.word_count, words.len());
            return Err(ArgumentsError::WrongCount { expected, given }.into());
        }
        for run in &self.runs {
            let word = run.symbol.word_at(dispatch)?;
            let slots = words.get_mut(run.first..run.end).unwrap_or_default();
            // Each chunk holds at least its first slot, so this compiles to one store a slot.
            for slot in slots.chunks_mut(run.stride) {
                slot[0] = word;
            }
        }
        Ok(())
    }
}

impl PatchRun {
    /// Whether `slot`, behind the last one, is at the run's distance. A second slot sets it.
    fn takes(&self, slot: usize) -> bool {
        let is_single = self.end == self.first + 1;
        is_single || slot - (self.end - 1) == self.stride
    }

    fn add(&mut self, slot: usize) {
        self.stride = slot - (self.end - 1);
        self.end = slot + 1;
    }
}

/// Every argument of a program, in the order of its slots ([`crate::ArgumentLayout`]).
pub(crate) fn arguments_of<A: Copy>(descriptor: &ProgramDescriptor<A>) -> impl Iterator<Item = &A> {
    let kernels = descriptor.kernels.iter().flat_map(|kernel| {
        kernel.common_runtime_arguments.iter().chain(kernel.runtime_arguments.words())
    });
    kernels.chain(descriptor.circular_buffers.iter().filter_map(|one| one.placement.address()))
}

/// Any order in which equal symbols are neighbours.
fn order_of(symbol: Argument) -> (u8, u16, u32) {
    match symbol {
        Argument::Word(word) => (0, 0, word),
        Argument::Address { operand, offset_bytes } => (1, operand.0, offset_bytes),
        Argument::Dynamic(index) => (2, index.0, 0),
        Argument::SemaphoreAddress(index) => (3, index.0, 0),
    }
}
