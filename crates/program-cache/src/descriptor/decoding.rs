//! A described program from its key and its dispatch words. Bytes that no program wrote are an
//! error; they cannot make this read past their end or take more memory than they are long.

use thiserror::Error;

use crate::arguments::{ArgumentRun, RuntimeArguments};
use crate::cores::{CoreCoord, CoreRange, CoreRanges};
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::circular_buffer::{
    CircularBufferDescriptor, CircularBufferFormat, Placement,
};
use crate::descriptor::kernel::{
    ComputeConfig, DataMovementConfig, DataProcessor, KernelConfig, KernelDescriptor, KernelSource,
    MathFidelity, Network, NetworkMode, OptimisationLevel, ReaderConfig, Text, UnpackMode,
    WriterConfig,
};
use crate::descriptor::semaphore::{CoreType, SemaphoreDescriptor};
use crate::key::{KEY_VERSION, KeyEncoder, KeyKind};
use crate::operand::{DataFormat, Tile};

/// Why bytes are not the key of a program with these words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end within something.
    #[error("the key ends at byte {at}, within {what}")]
    Ends {
        /// Where.
        at: usize,
        /// Within what.
        what: &'static str,
    },
    /// A number that stands for nothing.
    #[error("{found} at byte {at} of the key is no {what}")]
    Unknown {
        /// Where.
        at: usize,
        /// What it should have been.
        what: &'static str,
        /// What is there.
        found: u32,
    },
    /// A text that is not UTF-8.
    #[error("the text that ends at byte {at} of the key is not UTF-8")]
    NotText {
        /// Where.
        at: usize,
    },
    /// Something follows the program.
    #[error("{left} bytes follow the program's key")]
    Longer {
        /// How many bytes.
        left: usize,
    },
    /// The bytes say what a program is, but not in the one way in which a key says it.
    #[error("the bytes describe a program, but are not the key that it has")]
    NotCanonical,
    /// There are more or fewer words than the program has.
    #[error("the program has another number of argument words than the {given} given")]
    WrongWords {
        /// How many were given.
        given: usize,
    },
}

/// What is left to read of a key and of the words.
struct KeySource<'a> {
    bytes: &'a [u8],
    at: usize,
    words: &'a [u32],
    words_at: usize,
}

type Decoded<T> = Result<T, DecodeError>;

impl ProgramDescriptor {
    /// The program with this key and these dispatch words, which stand in the order of
    /// [`ArgumentLayout`](crate::slots::ArgumentLayout). What has no order comes in that of the
    /// key.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that are no program's key, and for words of another number.
    pub fn from_key(bytes: &[u8], words: &[u32]) -> Decoded<Self> {
        let mut source = KeySource { bytes, at: 0, words, words_at: 0 };
        let program = source.program()?;
        let left = bytes.len() - source.at;
        if left > 0 {
            return Err(DecodeError::Longer { left });
        }
        if source.words_at != words.len() {
            return Err(source.wrong_words());
        }
        if program.key(&mut KeyEncoder::new()).bytes() != bytes {
            return Err(DecodeError::NotCanonical);
        }
        Ok(program)
    }
}

impl<'a> KeySource<'a> {
    fn program(&mut self) -> Decoded<ProgramDescriptor> {
        self.one_of("key version", &[(KEY_VERSION, ())])?;
        self.one_of("program's key", &[(KeyKind::Program as u8, ())])?;
        let kernels = self.many(Self::kernel)?;
        let circular_buffers = self.many(Self::circular_buffer)?;
        let semaphores = self.many(Self::semaphore)?;
        Ok(ProgramDescriptor {
            kernels: kernels.into(),
            circular_buffers: circular_buffers.into(),
            semaphores: semaphores.into(),
        })
    }

    fn kernel(&mut self) -> Decoded<KernelDescriptor> {
        let name = self.text()?;
        let is_path = self.one_of("kind of source", &[(0, true), (1, false)])?;
        let optimisation_level = self.optimisation_level()?;
        let text = self.text()?;
        let source = if is_path { KernelSource::Path(text) } else { KernelSource::Text(text) };
        let config = self.config()?;
        let core_ranges = self.core_ranges()?;
        let compile_time_arguments = self.many(|source| source.number("compile-time argument"))?;
        let named_compile_time_arguments =
            self.many(|source| Ok((source.text()?, source.number("named argument")?)))?;
        let defines = self.many(|source| Ok((source.text()?, source.text()?)))?;
        let common_count = self.number("common argument count")?;
        let common_runtime_arguments = self.take_words(Some(common_count as usize))?.to_vec();
        let runtime_arguments = self.runtime_arguments()?;
        Ok(KernelDescriptor {
            name,
            source,
            core_ranges,
            compile_time_arguments,
            named_compile_time_arguments,
            defines,
            runtime_arguments,
            common_runtime_arguments,
            optimisation_level,
            config,
        })
    }

    fn optimisation_level(&mut self) -> Decoded<Option<OptimisationLevel>> {
        use OptimisationLevel::{O0, O1, O2, O3, Os};
        let levels = [None, Some(O0), Some(O1), Some(O2), Some(O3), Some(Os)];
        self.indexed_byte("optimisation level", &levels)
    }

    fn config(&mut self) -> Decoded<KernelConfig> {
        match self.variant("kind of kernel", &[0, 1, 2, 3])? {
            0 => Ok(KernelConfig::Reader(ReaderConfig {})),
            1 => Ok(KernelConfig::Writer(WriterConfig {})),
            2 => Ok(KernelConfig::DataMovement(DataMovementConfig {
                processor: self
                    .variant("processor", &[DataProcessor::First, DataProcessor::Second])?,
                network: self.variant("network", &[Network::First, Network::Second])?,
                network_mode: self
                    .variant("network mode", &[NetworkMode::Dedicated, NetworkMode::Dynamic])?,
            })),
            _ => self.compute_config().map(KernelConfig::Compute),
        }
    }

    fn compute_config(&mut self) -> Decoded<ComputeConfig> {
        use MathFidelity::{HiFi2, HiFi3, HiFi4, LoFi};
        Ok(ComputeConfig {
            math_fidelity: self.variant("math fidelity", &[LoFi, HiFi2, HiFi3, HiFi4])?,
            fp32_accumulate: self.flag()?,
            full_destination_sync: self.flag()?,
            unpack_modes: self.many(|source| {
                source.variant("unpack mode", &[UnpackMode::Default, UnpackMode::ToDestinationFp32])
            })?,
            precise_block_pack: self.flag()?,
            approximate_math: self.flag()?,
        })
    }

    fn runtime_arguments(&mut self) -> Decoded<RuntimeArguments> {
        let mut arguments = RuntimeArguments::new();
        let runs =
            self.many(|source| Ok((source.core_range()?, source.number("argument count")?)))?;
        for (cores, words_per_core) in runs {
            let each = words_per_core as usize;
            let words = self.take_words(cores.core_count().checked_mul(each))?;
            arguments.push_run(ArgumentRun { cores, words_per_core }, words);
        }
        Ok(arguments)
    }

    fn circular_buffer(&mut self) -> Decoded<CircularBufferDescriptor> {
        let total_bytes = self.number("size")?;
        let address_offset_bytes = self.number("address offset")?;
        let placement = self.one_of("placement", &[(0, 0), (1, 1), (2, 2)])?;
        let core_ranges = self.core_ranges()?;
        let formats: Vec<_> = self.many(Self::format)?;
        let remote_formats: Vec<_> = self.many(Self::format)?;
        Ok(CircularBufferDescriptor {
            total_bytes,
            core_ranges,
            formats: formats.into(),
            remote_formats: remote_formats.into(),
            // The addresses stand behind the words of all kernels, which have been taken by now.
            placement: match placement {
                0 => Placement::Own,
                1 => Placement::OnBuffer { address: self.take_word()? },
                _ => Placement::Remote { global_circular_buffer: self.take_word()? },
            },
            address_offset_bytes,
        })
    }

    fn format(&mut self) -> Decoded<CircularBufferFormat> {
        let [buffer_index] = self.take("buffer index")?;
        let data_format = self.indexed_byte("data format", &DataFormat::ALL)?;
        let page_bytes = self.number("page size")?;
        let has_tile = self.flag()?;
        let height = u16::from_le_bytes(self.take("tile")?);
        let width = u16::from_le_bytes(self.take("tile")?);
        let transposed = self.flag()?;
        let tile = has_tile.then_some(Tile { height, width, transposed });
        Ok(CircularBufferFormat { buffer_index, data_format, page_bytes, tile })
    }

    fn semaphore(&mut self) -> Decoded<SemaphoreDescriptor> {
        let id = self.number("semaphore id")?;
        let initial_value = self.number("initial value")?;
        let core_type = self.indexed_byte("core type", &[CoreType::Worker, CoreType::Ethernet])?;
        let core_ranges = self.core_ranges()?;
        Ok(SemaphoreDescriptor { id, core_type, core_ranges, initial_value })
    }

    fn core_ranges(&mut self) -> Decoded<CoreRanges> {
        // Bringing other rectangles into normal form could cut them into far more.
        CoreRanges::from_normal(&self.many(Self::core_range)?).ok_or(DecodeError::NotCanonical)
    }

    fn core_range(&mut self) -> Decoded<CoreRange> {
        let mut side = || self.take("core range").map(u16::from_le_bytes);
        let start = CoreCoord::new(side()?, side()?);
        let end = CoreCoord::new(side()?, side()?);
        Ok(CoreRange::new(start, end))
    }

    fn text(&mut self) -> Decoded<Text> {
        let length = self.number("length of a text")? as usize;
        let end = self.at.checked_add(length);
        let bytes = end.and_then(|end| self.bytes.get(self.at..end)).ok_or(self.ends("a text"))?;
        self.at += length;
        let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::NotText { at: self.at })?;
        Ok(text.to_owned().into())
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.number("length of a list")?;
        // Grown as elements are found, so a false count costs no memory.
        (0..count).map(|_| one(self)).collect()
    }

    fn flag(&mut self) -> Decoded<bool> {
        self.one_of("flag", &[(0, false), (1, true)])
    }

    fn number(&mut self, what: &'static str) -> Decoded<u32> {
        self.take(what).map(u32::from_le_bytes)
    }

    /// What a derived key wrote for a variant.
    fn variant<T: Copy>(&mut self, what: &'static str, variants: &[T]) -> Decoded<T> {
        let at = self.at;
        let found = u16::from_le_bytes(self.take(what)?);
        let known = variants.get(usize::from(found)).copied();
        known.ok_or(DecodeError::Unknown { at, what, found: found.into() })
    }

    fn indexed_byte<T: Copy>(&mut self, what: &'static str, values: &[T]) -> Decoded<T> {
        let at = self.at;
        let [found] = self.take(what)?;
        let known = values.get(usize::from(found)).copied();
        known.ok_or(DecodeError::Unknown { at, what, found: found.into() })
    }

    fn one_of<T: Copy>(&mut self, what: &'static str, values: &[(u8, T)]) -> Decoded<T> {
        let at = self.at;
        let [found] = self.take(what)?;
        let known = values.iter().find(|(code, _)| *code == found).map(|(_, value)| *value);
        known.ok_or(DecodeError::Unknown { at, what, found: found.into() })
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Decoded<[u8; N]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let bytes = *rest.first_chunk().ok_or(self.ends(what))?;
        self.at += N;
        Ok(bytes)
    }

    fn take_words(&mut self, count: Option<usize>) -> Decoded<&'a [u32]> {
        let end = count.and_then(|count| self.words_at.checked_add(count));
        let words = end.and_then(|end| self.words.get(self.words_at..end));
        let words = words.ok_or(self.wrong_words())?;
        self.words_at += words.len();
        Ok(words)
    }

    fn take_word(&mut self) -> Decoded<u32> {
        Ok(self.take_words(Some(1))?.first().copied().unwrap_or_default())
    }

    fn ends(&self, what: &'static str) -> DecodeError {
        DecodeError::Ends { at: self.bytes.len(), what }
    }

    fn wrong_words(&self) -> DecodeError {
        DecodeError::WrongWords { given: self.words.len() }
    }
}
