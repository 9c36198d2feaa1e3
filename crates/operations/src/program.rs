//! Puts a program together from its parts: the kernels' texts, the words that describe operands to
//! them, circular buffers of blocks. It knows no operation.

use telltale_program_cache::{
    Argument, CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, DataFormat,
    KernelConfig, KernelDescriptor, KernelSource, Layout, OperandIndex, OperandSpec,
    OptimisationLevel, ProgramDescriptor, ReaderConfig, RuntimeArguments, WriterConfig,
};

use crate::blocks::{Blocks, Shares};
use crate::extents::Extents;

/// The circular buffer of the first result.
pub(crate) const FIRST_RESULT: u8 = 16;
/// The circular buffer that only the computing kernel uses.
pub(crate) const SCRATCH: u8 = 24;

/// A kernel's text with what it includes in front.
macro_rules! kernel_text {
    ($($file:literal),+) => {
        concat!($(include_str!(concat!("../kernels/", $file))),+)
    };
}
pub(crate) use kernel_text;

/// Reads blocks of up to eight operands.
pub(crate) const READ_BLOCKS: (&str, &str) =
    ("read_blocks", kernel_text!("tensor.h", "read_blocks.c"));
const WRITE_BLOCKS: (&str, &str) = ("write_blocks", kernel_text!("tensor.h", "write_blocks.c"));

/// How an operand is read: as matrices of a layout and format, each matrix found from the numbers
/// of the first two dimensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperandSource {
    pub(crate) operand: OperandIndex,
    pub(crate) format: DataFormat,
    pub(crate) tiled: bool,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) outer_stride: u32,
    pub(crate) inner_stride: u32,
    /// Whether a single row or column is repeated to fill the block.
    pub(crate) spread: bool,
}

/// A program under construction: one reader, perhaps a computing kernel, one writer.
#[derive(Debug)]
pub(crate) struct ProgramParts {
    shares: Shares,
    group: u32,
    program: ProgramDescriptor<Argument>,
}

// === impl OperandSource ===

impl OperandSource {
    /// An operand of its own four sizes, where a size of 1 is repeated along its dimension.
    pub(crate) fn new(operand: u16, spec: &OperandSpec) -> Self {
        Self::with_extents(operand, spec, Extents::of(&spec.shape))
    }

    /// The same, seen as these sizes.
    pub(crate) fn with_extents(operand: u16, spec: &OperandSpec, extents: Extents) -> Self {
        let [outer, inner, rows, columns] = extents.0;
        Self {
            operand: OperandIndex(operand),
            format: spec.data_format,
            tiled: spec.layout != Layout::RowMajor,
            rows,
            columns,
            outer_stride: if outer == 1 { 0 } else { inner },
            inner_stride: u32::from(inner != 1),
            spread: true,
        }
    }

    /// The same without repeating: the block holds the single row or column alone.
    pub(crate) fn kept(mut self) -> Self {
        self.spread = false;
        self
    }

    /// The four words that `tensor_read` of `tensor.h` reads.
    pub(crate) fn tensor_words(&self) -> [Argument; 4] {
        let format = match self.format {
            DataFormat::BFloat16 => 1,
            DataFormat::UInt32 => 2,
            _ => 0,
        };
        [
            Argument::Address { operand: self.operand, offset_bytes: 0 },
            Argument::Word(u32::from(self.tiled) | format << 8),
            Argument::Word(self.rows),
            Argument::Word(self.columns),
        ]
    }

    fn reader_words(&self) -> impl Iterator<Item = Argument> {
        let more = [self.outer_stride, self.inner_stride, u32::from(self.spread)];
        self.tensor_words().into_iter().chain(more.map(Argument::Word))
    }
}

// === impl ProgramParts ===

impl ProgramParts {
    pub(crate) fn new(shares: Shares) -> Self {
        Self { shares, group: 1, program: ProgramDescriptor::default() }
    }

    /// From here on kernels have one unit where those before had a group of them.
    pub(crate) fn grouped(mut self, group: u32) -> Self {
        self.group = group;
        self
    }

    /// A reader with words of its own.
    pub(crate) fn reader(
        self,
        (name, text): (&'static str, &'static str),
        words: Vec<Argument>,
    ) -> Self {
        self.kernel(name, text, KernelConfig::Reader(ReaderConfig {}), words)
    }

    /// The reader of blocks, one circular buffer of two blocks for each source.
    pub(crate) fn read_blocks(mut self, blocks: &Blocks, sources: &[OperandSource]) -> Self {
        let mut words = blocks.words();
        words.push(count_word(sources.len()));
        for (index, source) in (0..).zip(sources) {
            words.extend(source.reader_words());
            let rows = if source.rows == 1 && !source.spread { 1 } else { blocks.block_rows };
            let columns =
                if source.columns == 1 && !source.spread { 1 } else { blocks.block_columns };
            self = self.buffer(index, rows * columns, 2);
        }
        self.reader(READ_BLOCKS, words)
    }

    /// The kernel that computes.
    pub(crate) fn compute(
        self,
        (name, text): (&'static str, &'static str),
        words: Vec<Argument>,
    ) -> Self {
        self.kernel(name, text, KernelConfig::Compute(ComputeConfig::default()), words)
    }

    /// The writer of blocks, one circular buffer of two blocks for each result. Rows in a result's
    /// buffer lie `stride` elements apart, or as many as the block is wide.
    pub(crate) fn write_blocks(
        mut self,
        blocks: &Blocks,
        results: &[OperandSource],
        stride: Option<u32>,
    ) -> Self {
        let mut words = blocks.words();
        words.push(count_word(results.len()));
        words.push(Argument::Word(stride.unwrap_or(0)));
        for (index, result) in (FIRST_RESULT..).zip(results) {
            words.extend(result.tensor_words());
            let own = if result.columns == 1 { 1 } else { blocks.block_columns };
            self = self.buffer(index, blocks.block_rows * stride.unwrap_or(own), 2);
        }
        let (name, text) = WRITE_BLOCKS;
        self.kernel(name, text, KernelConfig::Writer(WriterConfig {}), words)
    }

    /// A circular buffer of pages of this many numbers.
    pub(crate) fn buffer(mut self, index: u8, page_elements: u32, pages: u32) -> Self {
        let format = CircularBufferFormat {
            buffer_index: index,
            data_format: DataFormat::Float32,
            // Pages begin at multiples of a cache line, and so of any vector.
            page_bytes: (page_elements * 4).next_multiple_of(64),
            tile: None,
        };
        let cores = self.shares.cores.clone();
        self.program.circular_buffers.push(CircularBufferDescriptor::own(cores, pages, format));
        self
    }

    pub(crate) fn program(self) -> ProgramDescriptor<Argument> {
        self.program
    }

    fn kernel(
        mut self,
        name: &'static str,
        text: &'static str,
        config: KernelConfig,
        words: Vec<Argument>,
    ) -> Self {
        let source = KernelSource::Text(text.into());
        let mut kernel = KernelDescriptor::new(name, source, self.shares.cores.clone(), config);
        let mut arguments = RuntimeArguments::with_capacity(self.shares.units.len() * 2);
        for (core, first, count) in &self.shares.units {
            let words = [first / self.group, count / self.group].map(Argument::Word);
            arguments.push(*core, &words);
        }
        kernel.runtime_arguments = arguments;
        kernel.common_runtime_arguments = words;
        kernel.optimisation_level = Some(OptimisationLevel::O3);
        self.program.kernels.push(kernel);
        self
    }
}

fn count_word(count: usize) -> Argument {
    Argument::Word(u32::try_from(count).expect("a handful of operands"))
}
