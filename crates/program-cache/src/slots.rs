//! The words that change with each dispatch, of a whole program, in one row: where each stands,
//! and the store that holds them. What is outside the row is refused, never written.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use thiserror::Error;

use crate::arguments::{ArgumentRun, position_in};
use crate::cores::CoreCoord;
use crate::descriptor::ProgramDescriptor;

/// How many words a program's arguments may have: 16 MiB.
pub const MAX_PROGRAM_WORDS: usize = 4 << 20;

/// Where a word stands in a program's row of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotIndex(pub u32);

/// Where each word of a program's arguments stands.
///
/// The order is: for each kernel its common words, then its runtime words, core after core as they
/// were given; after all kernels the address of each circular buffer that is not in the
/// program's own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentLayout {
    kernels: SmallVec<[KernelSlots; 3]>,
    circular_buffers: SmallVec<[Option<SlotIndex>; 8]>,
    word_count: usize,
}

/// Where one kernel's words stand.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KernelSlots {
    runtime: Range<usize>,
    runs: SmallVec<[ArgumentRun; 2]>,
    common: Range<usize>,
}

/// The words of one program. A back end keeps this in its program and reads it at each dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramArguments {
    layout: Arc<ArgumentLayout>,
    words: Box<[u32]>,
}

/// Why words could not be laid out or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentsError {
    /// The program has more words than any program may have.
    #[error("the program has {words} argument words; at most {MAX_PROGRAM_WORDS} are allowed")]
    TooMany {
        /// How many it has.
        words: usize,
    },
    /// The words are not those of this program.
    #[error("{given} argument words were given for a program that has {expected}")]
    WrongCount {
        /// How many the program has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// A part of the description has its words on other cores, or another number of them.
    #[error("the argument words of {part} {index} do not stand where the program has them")]
    OtherPlaces {
        /// `kernel` or `circular buffer`.
        part: &'static str,
        /// Which one, from 0.
        index: usize,
    },
    /// The slot is not one of this program.
    #[error("argument slot {slot} does not exist; the program has {words} words")]
    NoSuchSlot {
        /// Which slot.
        slot: u32,
        /// How many words the program has.
        words: usize,
    },
}

// === impl ArgumentLayout ===

impl ArgumentLayout {
    /// Where the words of this program stand.
    ///
    /// # Errors
    /// [`ArgumentsError::TooMany`] above [`MAX_PROGRAM_WORDS`].
    pub fn of<A: Copy>(program: &ProgramDescriptor<A>) -> Result<Self, ArgumentsError> {
        let mut next = 0;
        let mut take = |count: usize| {
            let start = next;
            next += count;
            start..next
        };
        let kernels = program
            .kernels
            .iter()
            .map(|kernel| KernelSlots {
                common: take(kernel.common_runtime_arguments.len()),
                runtime: take(kernel.runtime_arguments.words().len()),
                runs: kernel.runtime_arguments.runs().into(),
            })
            .collect();
        let addresses: SmallVec<[Option<usize>; 8]> = program
            .circular_buffers
            .iter()
            .map(|buffer| buffer.placement.address().map(|_| take(1).start))
            .collect();
        if next > MAX_PROGRAM_WORDS {
            return Err(ArgumentsError::TooMany { words: next });
        }
        let circular_buffers = addresses.into_iter().map(|slot| slot.map(slot_index)).collect();
        Ok(Self { kernels, circular_buffers, word_count: next })
    }

    /// Refuses a description whose words do not stand where this layout has them.
    fn check_fits<A: Copy>(&self, program: &ProgramDescriptor<A>) -> Result<(), ArgumentsError> {
        let (expected, given) = (self.word_count, program.dispatch_word_count());
        let parts = (program.kernels.len(), program.circular_buffers.len());
        if given != expected || parts != (self.kernels.len(), self.circular_buffers.len()) {
            return Err(ArgumentsError::WrongCount { expected, given });
        }
        for (index, (slots, kernel)) in self.kernels.iter().zip(&program.kernels).enumerate() {
            let same_cores = slots.runs.as_slice() == kernel.runtime_arguments.runs();
            if !same_cores || slots.common.len() != kernel.common_runtime_arguments.len() {
                return Err(ArgumentsError::OtherPlaces { part: "kernel", index });
            }
        }
        let buffers = self.circular_buffers.iter().zip(&program.circular_buffers);
        for (index, (slot, buffer)) in buffers.enumerate() {
            if slot.is_some() != buffer.placement.address().is_some() {
                return Err(ArgumentsError::OtherPlaces { part: "circular buffer", index });
            }
        }
        Ok(())
    }

    /// How many words the program has.
    #[must_use]
    pub fn word_count(&self) -> usize {
        self.word_count
    }

    /// How many kernels the program has.
    #[must_use]
    pub fn kernel_count(&self) -> usize {
        self.kernels.len()
    }

    /// The slots of all runtime words of a kernel, core after core.
    #[must_use]
    pub fn kernel_runtime(&self, kernel: usize) -> Option<Range<usize>> {
        self.kernels.get(kernel).map(|slots| slots.runtime.clone())
    }

    /// The cores that a kernel's runtime words belong to, in order.
    #[must_use]
    pub fn kernel_runs(&self, kernel: usize) -> Option<&[ArgumentRun]> {
        self.kernels.get(kernel).map(|slots| slots.runs.as_slice())
    }

    /// The slots of one core's runtime words of a kernel; none for a core without any.
    #[must_use]
    pub fn runtime(&self, kernel: usize, core: CoreCoord) -> Option<Range<usize>> {
        let slots = self.kernels.get(kernel)?;
        let place = position_in(&slots.runs, core)?;
        Some(slots.runtime.start + place.start..slots.runtime.start + place.end)
    }

    /// The slots of a kernel's common words.
    #[must_use]
    pub fn common(&self, kernel: usize) -> Option<Range<usize>> {
        self.kernels.get(kernel).map(|slots| slots.common.clone())
    }

    /// The slot of a circular buffer's address; none if it is in the program's own memory.
    #[must_use]
    pub fn circular_buffer(&self, index: usize) -> Option<SlotIndex> {
        self.circular_buffers.get(index).copied().flatten()
    }
}

// === impl ProgramArguments ===

impl ProgramArguments {
    /// A row of zeros for a program of this layout.
    #[must_use]
    pub fn new(layout: Arc<ArgumentLayout>) -> Self {
        let words = vec![0; layout.word_count()].into_boxed_slice();
        Self { layout, words }
    }

    /// The words of a described program.
    ///
    /// # Errors
    /// [`ArgumentsError::TooMany`] above [`MAX_PROGRAM_WORDS`].
    pub fn of(program: &ProgramDescriptor) -> Result<Self, ArgumentsError> {
        let layout = ArgumentLayout::of(program)?;
        let mut arguments = Self::new(Arc::new(layout));
        arguments.copy_from_descriptor(program)?;
        Ok(arguments)
    }

    /// Where each word stands.
    #[must_use]
    pub fn layout(&self) -> &Arc<ArgumentLayout> {
        &self.layout
    }

    /// All words, in the order of the layout.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The same, for writers that know the layout. Their number cannot change.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }

    /// Sets one word.
    ///
    /// # Errors
    /// [`ArgumentsError::NoSuchSlot`], and nothing is written.
    pub fn set(&mut self, slot: SlotIndex, word: u32) -> Result<(), ArgumentsError> {
        let words = self.words.len();
        let refused = ArgumentsError::NoSuchSlot { slot: slot.0, words };
        let place = usize::try_from(slot.0).ok().and_then(|index| self.words.get_mut(index));
        *place.ok_or(refused)? = word;
        Ok(())
    }

    /// Replaces all words.
    ///
    /// # Errors
    /// [`ArgumentsError::WrongCount`], and nothing is written.
    pub fn copy_from(&mut self, words: &[u32]) -> Result<(), ArgumentsError> {
        if words.len() != self.words.len() {
            let (expected, given) = (self.words.len(), words.len());
            return Err(ArgumentsError::WrongCount { expected, given });
        }
        self.words.copy_from_slice(words);
        Ok(())
    }

    /// Replaces all words by those of a description with the same key.
    ///
    /// # Errors
    /// [`ArgumentsError::WrongCount`] or [`ArgumentsError::OtherPlaces`] if the description has its
    /// words elsewhere than this program, and nothing is written.
    pub fn copy_from_descriptor(
        &mut self,
        program: &ProgramDescriptor,
    ) -> Result<(), ArgumentsError> {
        self.layout.check_fits(program)?;
        let mut rest = &mut *self.words;
        for kernel in &program.kernels {
            rest = fill(rest, &kernel.common_runtime_arguments);
            rest = fill(rest, kernel.runtime_arguments.words());
        }
        for address in program.circular_buffers.iter().filter_map(|one| one.placement.address()) {
            rest = fill(rest, std::slice::from_ref(address));
        }
        Ok(())
    }

    /// The runtime words of one core for a kernel; none for a core without any.
    #[must_use]
    pub fn runtime(&self, kernel: usize, core: CoreCoord) -> Option<&[u32]> {
        self.words.get(self.layout.runtime(kernel, core)?)
    }

    /// The common words of a kernel.
    #[must_use]
    pub fn common(&self, kernel: usize) -> Option<&[u32]> {
        self.words.get(self.layout.common(kernel)?)
    }

    /// The address of a circular buffer that is not in the program's own memory.
    #[must_use]
    pub fn circular_buffer_address(&self, index: usize) -> Option<u32> {
        let slot = self.layout.circular_buffer(index)?;
        self.words.get(usize::try_from(slot.0).ok()?).copied()
    }
}

fn slot_index(slot: usize) -> SlotIndex {
    SlotIndex(u32::try_from(slot).expect("a slot is below MAX_PROGRAM_WORDS"))
}

/// Copies `words` to the front of `row` and gives back what comes after.
fn fill<'a>(row: &'a mut [u32], words: &[u32]) -> &'a mut [u32] {
    let (front, after) = row.split_at_mut(words.len());
    front.copy_from_slice(words);
    after
}

#[cfg(test)]
mod tests {
    use super::{ArgumentsError, ProgramArguments, SlotIndex};
    use crate::cores::{CoreCoord, CoreRange};
    use crate::descriptor::ProgramDescriptor;
    use crate::descriptor::circular_buffer::{
        CircularBufferDescriptor, CircularBufferFormat, Placement,
    };
    use crate::descriptor::kernel::{KernelConfig, KernelDescriptor, KernelSource, ReaderConfig};
    use crate::operand::DataFormat;

    fn kernel(cores: CoreRange, words: [u32; 2], common: &[u32]) -> KernelDescriptor {
        let config = KernelConfig::Reader(ReaderConfig {});
        let mut kernel =
            KernelDescriptor::new("reader", KernelSource::Path("reader.c".into()), cores, config);
        kernel.runtime_arguments.push_range(cores, |core| [words[0] + u32::from(core.x), words[1]]);
        kernel.common_runtime_arguments = common.to_vec();
        kernel
    }

    fn program() -> ProgramDescriptor {
        let cores = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(1, 0));
        let format = CircularBufferFormat {
            buffer_index: 0,
            data_format: DataFormat::Float32,
            page_bytes: 64,
            tile: None,
        };
        let own = CircularBufferDescriptor::own(cores, 2, format);
        let on_buffer = CircularBufferDescriptor {
            placement: Placement::OnBuffer { address: 77 },
            ..own.clone()
        };
        ProgramDescriptor {
            kernels: [kernel(cores, [10, 20], &[5]), kernel(cores, [30, 40], &[])]
                .into_iter()
                .collect(),
            circular_buffers: [own, on_buffer].into_iter().collect(),
            ..ProgramDescriptor::default()
        }
    }

    #[test]
    fn each_word_stands_where_the_layout_says() {
        let arguments = ProgramArguments::of(&program()).unwrap();
        assert_eq!(arguments.words(), [5, 10, 20, 11, 20, 30, 40, 31, 40, 77]);
        assert_eq!(arguments.runtime(1, CoreCoord::new(1, 0)), Some([31, 40].as_slice()));
        assert_eq!(arguments.runtime(1, CoreCoord::new(2, 0)), None);
        assert_eq!(arguments.common(0), Some([5].as_slice()));
        assert_eq!(arguments.circular_buffer_address(0), None);
        assert_eq!(arguments.circular_buffer_address(1), Some(77));
    }

    #[test]
    fn words_of_another_shape_are_refused_and_nothing_is_written() {
        let original = ProgramArguments::of(&program()).unwrap();
        let mut arguments = original.clone();

        let mut moved = program();
        let elsewhere = CoreRange::new(CoreCoord::new(0, 1), CoreCoord::new(1, 1));
        moved.kernels[1] = kernel(elsewhere, [1, 2], &[]);
        let refused = ArgumentsError::OtherPlaces { part: "kernel", index: 1 };
        assert_eq!(arguments.copy_from_descriptor(&moved), Err(refused));

        let mut exchanged = program();
        exchanged.circular_buffers.swap(0, 1);
        let refused = ArgumentsError::OtherPlaces { part: "circular buffer", index: 0 };
        assert_eq!(arguments.copy_from_descriptor(&exchanged), Err(refused));

        let refused = ArgumentsError::WrongCount { expected: 10, given: 9 };
        assert_eq!(arguments.copy_from(&[0; 9]), Err(refused));
        let refused = ArgumentsError::NoSuchSlot { slot: 10, words: 10 };
        assert_eq!(arguments.set(SlotIndex(10), 1), Err(refused));
        assert_eq!(arguments, original);
    }
}
