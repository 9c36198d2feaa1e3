//! The patch plan of a factory's program: which slots hold what changes with each dispatch.
//!
//! It is made once, from the symbols of the description. A hit then writes these slots and builds
//! nothing. Operands are distinguished by position, never by their address, so it does not matter
//! which of them happened to share a buffer when the program was first described.

use crate::argument::Argument;
use crate::descriptor::ProgramDescriptor;
use crate::dispatch::Dispatch;
use crate::slots::{ArgumentsError, ProgramArguments};
use crate::update::UpdateError;

/// Neighbouring slots that one step of a run writes at most.
const MAX_WIDTH: usize = 4;

/// Slots to write at each dispatch, as runs of equal distance with equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchPlan {
    runs: Box<[PatchRun]>,
    /// Words of the programs that it is for.
    word_count: usize,
}

/// The same neighbouring words repeated, at equal distances: the arguments of one core
/// after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PatchRun {
    /// What the neighbouring words stand for, the first `width` of these.
    symbols: [Argument; MAX_WIDTH],
    /// How many words one step writes, at least one.
    width: usize,
    /// The first slot.
    first: usize,
    /// How often they stand there, at least once.
    count: usize,
    /// Slots from one time to the next; no less than there are symbols.
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
        let runs = join_neighbours(runs_of_equals(slots));
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
            let slots = words.get_mut(run.first..run.end()).unwrap_or_default();
            let mut step = [0; MAX_WIDTH];
            for (word, symbol) in step.iter_mut().zip(&run.symbols).take(run.width) {
                *word = symbol.word_at(dispatch)?;
            }
            let [one, two, three, four] = step;
            match run.width {
                1 => repeat(slots, run.stride, [one]),
                2 => repeat(slots, run.stride, [one, two]),
                3 => repeat(slots, run.stride, [one, two, three]),
                _ => repeat(slots, run.stride, [one, two, three, four]),
            }
        }
        Ok(())
    }
}

/// Writes `words` at the start of `slots`, every `stride` slots, and at their end. A stride is no
/// less than `WIDTH`.
#[inline(always)]
fn repeat<const WIDTH: usize>(slots: &mut [u32], stride: usize, words: [u32; WIDTH]) {
    let mut rest = slots;
    // Counting down by slices needs no division, as chunks would.
    while rest.len() > stride {
        let (step, after) = rest.split_at_mut(stride);
        if let Some(place) = step.first_chunk_mut() {
            *place = words;
        }
        rest = after;
    }
    if let Some(place) = rest.first_chunk_mut() {
        *place = words;
    }
}

/// Slots of equal content and equal distance, together.
fn runs_of_equals(mut slots: Vec<(Argument, usize)>) -> Vec<PatchRun> {
    slots.sort_by_key(|(symbol, slot)| (order_of(*symbol), *slot));
    let mut runs: Vec<PatchRun> = Vec::new();
    for (symbol, slot) in slots {
        match runs.last_mut() {
            Some(run) if run.symbols[0] == symbol && run.takes(slot) => {
                run.stride = slot - run.last();
                run.count += 1;
            }
            _ => {
                let symbols = [symbol; MAX_WIDTH];
                runs.push(PatchRun { symbols, width: 1, first: slot, count: 1, stride: 1 });
            }
        }
    }
    runs
}

/// Runs that lie side by side become one of greater width.
fn join_neighbours(mut runs: Vec<PatchRun>) -> Vec<PatchRun> {
    runs.sort_by_key(|run| run.first);
    let mut joined: Vec<PatchRun> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.is_beside(&run) => {
                last.symbols[last.width] = run.symbols[0];
                last.width += 1;
                last.stride = last.stride.max(last.width);
            }
            _ => joined.push(run),
        }
    }
    joined
}

impl PatchRun {
    /// Where the last of its repetitions begins.
    fn last(&self) -> usize {
        self.first + (self.count - 1) * self.stride
    }

    /// One behind its last slot.
    #[inline]
    fn end(&self) -> usize {
        self.last() + self.width
    }

    /// Whether `slot`, behind the last one, is at the run's distance. A second slot sets it.
    fn takes(&self, slot: usize) -> bool {
        self.count == 1 || slot - self.last() == self.stride
    }

    /// Whether the slots of `other` come right behind these, each time.
    fn is_beside(&self, other: &Self) -> bool {
        let width = self.width;
        self.count == other.count
            && self.first + width == other.first
            && width < MAX_WIDTH
            && (self.count == 1 || (self.stride == other.stride && self.stride > width))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};

    use super::PatchPlan;
    use crate::argument::{Argument, DynamicIndex};
    use crate::cores::{CoreCoord, CoreRange};
    use crate::descriptor::ProgramDescriptor;
    use crate::descriptor::kernel::{KernelConfig, KernelDescriptor, KernelSource, ReaderConfig};
    use crate::dispatch::Dispatch;
    use crate::slots::{ArgumentLayout, ProgramArguments};

    fn program(words: &[Argument]) -> ProgramDescriptor<Argument> {
        let cores = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(0, 0));
        let config = KernelConfig::Reader(ReaderConfig {});
        let source = KernelSource::Text("".into());
        let mut kernel = KernelDescriptor::new("any", source, cores, config);
        kernel.common_runtime_arguments = words.to_vec();
        ProgramDescriptor { kernels: [kernel].into_iter().collect(), ..Default::default() }
    }

    fn some_words() -> impl Strategy<Value = Vec<Argument>> {
        let dynamic = |index| Just(Argument::Dynamic(DynamicIndex(index)));
        let word =
            prop_oneof![Just(Argument::Word(9)), dynamic(0), dynamic(1), dynamic(2), dynamic(3)];
        let core = proptest::collection::vec(word, 0..7);
        (core, 0usize..5).prop_map(|(core, cores)| core.repeat(cores))
    }

    proptest! {
        #[test]
        fn exactly_the_symbols_are_written(
            core in some_words(),
            other in some_words(),
            values in proptest::array::uniform4(100u32..),
        ) {
            let words = [core, other].concat();
            let program = program(&words);
            let layout = ArgumentLayout::of(&program).expect("it has few words");
            let mut arguments = ProgramArguments::new(Arc::new(layout));
            let dispatch = Dispatch { dynamics: &values, ..Dispatch::default() };
            let plan = PatchPlan::of(&program);
            plan.write_to(&dispatch, &mut arguments).expect("all values are there");
            let expected: Vec<u32> = words
                .iter()
                .map(|word| match word {
                    Argument::Dynamic(index) => values[usize::from(index.0)],
                    _ => 0,
                })
                .collect();
            prop_assert_eq!(arguments.words(), &expected);
        }
    }

    #[test]
    fn the_same_words_of_many_cores_are_one_run() {
        let dynamic = |index| Argument::Dynamic(DynamicIndex(index));
        let core = [dynamic(0), dynamic(1), Argument::Word(1), Argument::Word(2)];
        let plan = PatchPlan::of(&program(&core.repeat(64)));
        assert_eq!(plan.run_count(), 1);
    }
}
