//! Whether a described program can be a program at all, for callers that want to know before a back end
//! compiles it. A back end checks by itself what its device cannot do.

use std::collections::HashSet;

use thiserror::Error;

use crate::cores::{CoreCoord, CoreRanges};
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::circular_buffer::{
    CIRCULAR_BUFFERS_PER_CORE, CircularBufferDescriptor, Placement,
};
use crate::descriptor::kernel::{
    DataMovementConfig, DataProcessor, KernelConfig, KernelDescriptor, Text,
};
use crate::descriptor::part::Part;

/// What a device has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLimits {
    /// The cores that programs may use.
    pub grid: CoreRanges,
    /// How many words a kernel may have on one core, its common words included. tt-metal's advice
    /// is at most 341.
    pub argument_words_per_core: usize,
    /// How many bytes of a core's memory a program's own circular buffers may take together.
    pub circular_buffer_bytes_per_core: u64,
}

/// Why a description cannot be a program: the first reason found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidProgram {
    /// A part is on no core.
    #[error("{part} is on no core: core_ranges is empty")]
    NoCore {
        /// Which part.
        part: Part,
    },
    /// A part is on a core that the device does not have.
    #[error("core_ranges of {part} has core {core}, which the device's grid {grid:?} has not")]
    UnknownCore {
        /// Which part.
        part: Part,
        /// The core.
        core: CoreCoord,
        /// The cores there are.
        grid: CoreRanges,
    },
    /// Two kernels need one processor of a core.
    #[error("{first} and {second} both run on the {processor} processor of core {core}")]
    SharedProcessor {
        /// The first kernel.
        first: Part,
        /// The other one.
        second: Part,
        /// Which processor.
        processor: &'static str,
        /// Of which core.
        core: CoreCoord,
    },
    /// A kernel has arguments for a core that it does not run on.
    #[error("runtime_arguments of {kernel} has words for core {core}, which it does not run on")]
    ArgumentsElsewhere {
        /// The kernel.
        kernel: Part,
        /// The core.
        core: CoreCoord,
    },
    /// A kernel has arguments for a core twice.
    #[error("runtime_arguments of {kernel} has words for core {core} twice")]
    ArgumentsTwice {
        /// The kernel.
        kernel: Part,
        /// The core.
        core: CoreCoord,
    },
    /// A core has too many words.
    #[error(
        "{kernel} has {runtime} words in runtime_arguments for core {core} and {common} in \
         common_runtime_arguments; together at most {limit} are allowed"
    )]
    TooManyArguments {
        /// The kernel.
        kernel: Part,
        /// The core.
        core: CoreCoord,
        /// Words of this core.
        runtime: usize,
        /// Words of all cores.
        common: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A name stands twice.
    #[error("{field} of {kernel} has `{name}` twice")]
    NameTwice {
        /// The kernel.
        kernel: Part,
        /// Which of its lists.
        field: &'static str,
        /// The name.
        name: Text,
    },
    /// A name that no source can ask for.
    #[error("{field} of {kernel} has `{name}`, which is no identifier of C")]
    BadName {
        /// The kernel.
        kernel: Part,
        /// Which of its lists.
        field: &'static str,
        /// The name.
        name: Text,
    },
    /// A number in a circular buffer's description does not fit the rest of it.
    #[error("{field} of {part} is {found}: {rule}")]
    BadNumber {
        /// Which circular buffer.
        part: Part,
        /// Which field.
        field: &'static str,
        /// What it is.
        found: u32,
        /// What it must be.
        rule: &'static str,
    },
    /// A circular buffer has no format.
    #[error("formats of {part} is empty: no kernel could use it")]
    NoFormat {
        /// Which circular buffer.
        part: Part,
    },
    /// A circular buffer has a far end that its placement does not have.
    #[error(
        "remote_formats of {part} is not empty, and its placement is not Remote: only a global \
         circular buffer has a far end"
    )]
    NoFarEnd {
        /// Which circular buffer.
        part: Part,
    },
    /// A buffer index means two things on one core.
    #[error("buffer_index {buffer_index} on core {core} is in the formats of {first} and {second}")]
    SharedIndex {
        /// The first circular buffer.
        first: Part,
        /// The other one, or the same again.
        second: Part,
        /// The index.
        buffer_index: u8,
        /// The core.
        core: CoreCoord,
    },
    /// A program's own circular buffers do not fit a core's memory.
    #[error(
        "total_bytes of {part} brings the program's circular buffers on core {core} to {bytes} \
         bytes; the core has room for {limit}"
    )]
    TooLarge {
        /// The circular buffer that no longer fits.
        part: Part,
        /// The core.
        core: CoreCoord,
        /// Bytes up to and with this one.
        bytes: u64,
        /// Bytes there may be.
        limit: u64,
    },
    /// A semaphore's id means two things on one core.
    #[error("{first} and {second} have the same id on core {core}")]
    SharedSemaphore {
        /// The first one.
        first: Part,
        /// The other one.
        second: Part,
        /// The core.
        core: CoreCoord,
    },
}

type Checked = Result<(), InvalidProgram>;

impl<A: Copy> ProgramDescriptor<A> {
    /// Whether a device with these limits could run this program.
    ///
    /// # Errors
    /// The first reason why not.
    pub fn validate(&self, limits: &ProgramLimits) -> Checked {
        for (part, cores) in self.parts() {
            check_cores(part, cores, &limits.grid)?;
        }
        self.check_processors()?;
        for (index, kernel) in self.kernels.iter().enumerate() {
            let part = || Part::Kernel { index, name: kernel.name.clone() };
            check_arguments(kernel, part, limits.argument_words_per_core)?;
            let named = kernel.named_compile_time_arguments.iter().map(|(name, _)| name);
            check_names(named, "named_compile_time_arguments", part)?;
            check_names(kernel.defines.iter().map(|(name, _)| name), "defines", part)?;
        }
        for (index, buffer) in self.circular_buffers.iter().enumerate() {
            check_buffer(buffer, || Part::CircularBuffer { index })?;
        }
        self.check_indices()?;
        self.check_sizes(limits)?;
        self.check_semaphores()
    }

    fn check_processors(&self) -> Checked {
        for (index, one) in self.kernels.iter().enumerate() {
            for (other, two) in self.kernels.iter().enumerate().skip(index + 1) {
                let processor = processor_of(&one.config);
                let shared = one.core_ranges.shared_core(&two.core_ranges);
                if let (Some(core), true) = (shared, processor == processor_of(&two.config)) {
                    let first = Part::Kernel { index, name: one.name.clone() };
                    let second = Part::Kernel { index: other, name: two.name.clone() };
                    return Err(InvalidProgram::SharedProcessor { first, second, processor, core });
                }
            }
        }
        Ok(())
    }

    fn check_indices(&self) -> Checked {
        let indices: Vec<_> = self
            .circular_buffers
            .iter()
            .enumerate()
            .flat_map(|(index, buffer)| {
                let formats = buffer.formats.iter().chain(&buffer.remote_formats);
                formats.map(move |format| (index, &buffer.core_ranges, format.buffer_index))
            })
            .collect();
        for (place, (index, cores, buffer_index)) in indices.iter().enumerate() {
            for (other, other_cores, same) in indices.iter().skip(place + 1) {
                let shared = cores.shared_core(other_cores);
                if let (Some(core), true) = (shared, buffer_index == same) {
                    let first = Part::CircularBuffer { index: *index };
                    let second = Part::CircularBuffer { index: *other };
                    let buffer_index = *buffer_index;
                    return Err(InvalidProgram::SharedIndex { first, second, buffer_index, core });
                }
            }
        }
        Ok(())
    }

    fn check_sizes(&self, limits: &ProgramLimits) -> Checked {
        let limit = limits.circular_buffer_bytes_per_core;
        for core in limits.grid.cores() {
            let mut bytes = 0;
            for (index, buffer) in self.circular_buffers.iter().enumerate() {
                let own = matches!(buffer.placement, Placement::Own);
                if own && buffer.core_ranges.contains(core) {
                    bytes += u64::from(buffer.total_bytes);
                    if bytes > limit {
                        let part = Part::CircularBuffer { index };
                        return Err(InvalidProgram::TooLarge { part, core, bytes, limit });
                    }
                }
            }
        }
        Ok(())
    }

    fn check_semaphores(&self) -> Checked {
        for (index, one) in self.semaphores.iter().enumerate() {
            for (other, two) in self.semaphores.iter().enumerate().skip(index + 1) {
                let same = (one.id, one.core_type) == (two.id, two.core_type);
                if let (Some(core), true) = (one.core_ranges.shared_core(&two.core_ranges), same) {
                    let first = Part::Semaphore { index, id: one.id };
                    let second = Part::Semaphore { index: other, id: two.id };
                    return Err(InvalidProgram::SharedSemaphore { first, second, core });
                }
            }
        }
        Ok(())
    }
}

fn check_cores(part: Part, cores: &CoreRanges, grid: &CoreRanges) -> Checked {
    if cores.is_empty() {
        return Err(InvalidProgram::NoCore { part });
    }
    match cores.first_outside(grid) {
        Some(core) => Err(InvalidProgram::UnknownCore { part, core, grid: grid.clone() }),
        None => Ok(()),
    }
}

/// The processor of a core that a kernel takes. A reader has the second data processor and a writer
/// the first, as in tt-metal.
fn processor_of(config: &KernelConfig) -> &'static str {
    match config {
        KernelConfig::Reader(_) => "second data",
        KernelConfig::Writer(_) => "first data",
        KernelConfig::DataMovement(DataMovementConfig { processor, .. }) => match processor {
            DataProcessor::First => "first data",
            DataProcessor::Second => "second data",
        },
        KernelConfig::Compute(_) => "compute",
    }
}

fn check_arguments<A: Copy>(
    kernel: &KernelDescriptor<A>,
    part: impl Fn() -> Part,
    limit: usize,
) -> Checked {
    let common = kernel.common_runtime_arguments.len();
    let mut seen = HashSet::new();
    for (core, words) in kernel.runtime_arguments.cores() {
        if !kernel.core_ranges.contains(core) {
            return Err(InvalidProgram::ArgumentsElsewhere { kernel: part(), core });
        }
        if !seen.insert(core) {
            return Err(InvalidProgram::ArgumentsTwice { kernel: part(), core });
        }
        too_many(part(), core, words.len(), common, limit)?;
    }
    // A kernel whose cores have no words of their own still has its common ones.
    kernel
        .core_ranges
        .cores()
        .next()
        .map_or(Ok(()), |core| too_many(part(), core, 0, common, limit))
}

fn too_many(kernel: Part, core: CoreCoord, runtime: usize, common: usize, limit: usize) -> Checked {
    if runtime + common <= limit {
        return Ok(());
    }
    Err(InvalidProgram::TooManyArguments { kernel, core, runtime, common, limit })
}

fn check_names<'a>(
    names: impl Iterator<Item = &'a Text>,
    field: &'static str,
    part: impl Fn() -> Part,
) -> Checked {
    let mut seen = HashSet::new();
    for name in names {
        if !is_identifier(name) {
            return Err(InvalidProgram::BadName { kernel: part(), field, name: name.clone() });
        }
        if !seen.insert(name) {
            return Err(InvalidProgram::NameTwice { kernel: part(), field, name: name.clone() });
        }
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

fn check_buffer<A>(buffer: &CircularBufferDescriptor<A>, part: impl Fn() -> Part) -> Checked {
    let bad =
        |field, found, rule| Err(InvalidProgram::BadNumber { part: part(), field, found, rule });
    let total = buffer.total_bytes;
    if buffer.formats.is_empty() {
        return Err(InvalidProgram::NoFormat { part: part() });
    }
    let is_remote = matches!(buffer.placement, Placement::Remote { .. });
    if !is_remote && !buffer.remote_formats.is_empty() {
        return Err(InvalidProgram::NoFarEnd { part: part() });
    }
    if total == 0 {
        return bad("total_bytes", total, "it must have room for a page");
    }
    for format in buffer.formats.iter().chain(&buffer.remote_formats) {
        if format.buffer_index >= CIRCULAR_BUFFERS_PER_CORE {
            return bad("buffer_index", format.buffer_index.into(), "it must be below 32");
        }
        if !total.is_multiple_of(format.page_bytes) {
            return bad("page_bytes", format.page_bytes, "total_bytes must be a multiple of it");
        }
    }
    if matches!(buffer.placement, Placement::Own) && buffer.address_offset_bytes != 0 {
        let rule = "a buffer in the program's own memory has no offset";
        return bad("address_offset_bytes", buffer.address_offset_bytes, rule);
    }
    Ok(())
}
