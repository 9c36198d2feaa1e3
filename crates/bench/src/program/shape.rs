//! The program that everything of [`program`](super) describes, in each of the forms that are
//! compared: nested, flat, and by a factory. 3 kernels with 64-character paths, 20 compile-time
//! arguments and 6 defines on one core range; 8 circular buffers, 4 semaphores; 12 words for each of
//! 64 cores and each kernel. `seed/program.hpp` describes the same one with the same words.

use telltale_program_cache::descriptor::kernel::MathFidelity;
use telltale_program_cache::{
    Address, Argument, CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord,
    CoreRange, CoreRanges, CoreType, DataFormat, Dispatch, FactoryError, FlatDescriptor,
    FlatProgram, KernelConfig, KernelDescriptor, KernelHead, KernelSource, Layout, MemoryConfig,
    Operand, OperandIndex, OperandSpec, OperandSpecs, Operation, ProgramDescriptor, ProgramKey,
    ReaderConfig, SemaphoreDescriptor, Shape, Text, Tile, WriterConfig,
};

use crate::seed::TensorSpec;

/// Kernels of the program.
pub const KERNELS: usize = 3;
/// Cores that each kernel runs on.
pub const CORES: usize = 64;
/// Words of each core for each kernel.
pub const WORDS: usize = 12;
/// Words of the whole program.
pub const PROGRAM_WORDS: usize = KERNELS * CORES * WORDS;
/// From one dispatch's addresses to the next's.
pub const TILE_BYTES: u32 = 2048;

const COMPILE_TIME_ARGUMENTS: usize = 20;
const DEFINES: usize = 6;
const CIRCULAR_BUFFERS: u8 = 8;
const SEMAPHORES: u32 = 4;

const NAMES: [&str; KERNELS] = ["reader", "compute", "writer"];
const PATHS: [&str; KERNELS] = [
    "ops/cpp/ops/operations/matmul/device/kernels/dataflow/reader.cpp",
    "ops/cpp/ops/operations/matmul/device/kernels/compute/compute.cpp",
    "ops/cpp/ops/operations/matmul/device/kernels/dataflow/writer.cpp",
];
const _: () = assert!(PATHS[0].len() == 64 && PATHS[1].len() == 64 && PATHS[2].len() == 64);
const DEFINE_NAMES: [&str; DEFINES] = [
    "FP32_ACCUMULATE",
    "FUSE_ACTIVATION",
    "PACKER_L1_ACC",
    "REUSE_LEFT",
    "SKIP_COMPUTE",
    "TRANSPOSE_RIGHT",
];

/// The operation's parameters beside its operands. The baseline reads the same struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
#[repr(C)]
pub struct Attributes {
    /// Rows of a block, in tiles.
    pub block_height: u32,
    /// Columns of a block, in tiles.
    pub block_width: u32,
    /// Depth of a block, in tiles.
    pub inner_block: u32,
    /// Output tiles of each core.
    pub tiles_per_core: u32,
    /// Whether the left operand is transposed.
    pub transpose_a: u32,
    /// Whether the right operand is transposed.
    pub transpose_b: u32,
    /// Passes of the multiplier.
    pub fidelity: u32,
    /// The function applied at the end.
    pub activation: u32,
}

/// The addresses of a dispatch. The baseline reads the same struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Addresses {
    /// Of the left operand.
    pub a: u32,
    /// Of the right operand.
    pub b: u32,
    /// Of the output.
    pub out: u32,
}

/// The operation: the same program from its attributes, with symbols for addresses.
#[derive(Debug)]
pub struct MatrixProduct;

// === impl Attributes, Addresses ===

impl Attributes {
    /// Those that are measured with.
    pub const USUAL: Self = Self {
        block_height: 4,
        block_width: 4,
        inner_block: 2,
        tiles_per_core: 16,
        transpose_a: 0,
        transpose_b: 1,
        fidelity: 3,
        activation: 0,
    };

    fn compile_time_arguments(&self) -> [u32; COMPILE_TIME_ARGUMENTS] {
        let mut arguments = [0; COMPILE_TIME_ARGUMENTS];
        for (index, argument) in (0..).zip(&mut arguments) {
            *argument = self.block_height * index + self.inner_block;
        }
        arguments
    }

    fn circular_buffer<A>(&self, buffer_index: u8) -> CircularBufferDescriptor<A> {
        let format = CircularBufferFormat {
            buffer_index,
            data_format: DataFormat::BFloat16,
            page_bytes: TILE_BYTES,
            tile: Some(Tile::STANDARD),
        };
        CircularBufferDescriptor::own(grid(), 2 * self.inner_block, format)
    }
}

impl Addresses {
    /// Those that are measured with.
    pub const FIRST: Self = Self { a: 0x10_0000, b: 0x20_0000, out: 0x30_0000 };

    /// The addresses this many dispatches later.
    #[must_use]
    pub fn after(self, dispatches: u32) -> Self {
        let moved = |address: u32| address.wrapping_add(dispatches.wrapping_mul(TILE_BYTES));
        Self { a: moved(self.a), b: moved(self.b), out: moved(self.out) }
    }
}

fn config(kernel: usize) -> KernelConfig {
    match kernel {
        0 => KernelConfig::Reader(ReaderConfig {}),
        1 => KernelConfig::Compute(ComputeConfig {
            math_fidelity: MathFidelity::HiFi4,
            fp32_accumulate: true,
            ..ComputeConfig::default()
        }),
        _ => KernelConfig::Writer(WriterConfig {}),
    }
}

/// The words of one core for one kernel; the first ones may be symbols.
#[inline(always)]
fn core_words<A: From<u32>>(
    attributes: &Attributes,
    core: CoreCoord,
    first: impl FnOnce(u32, u32) -> [A; 2],
) -> [A; WORDS] {
    let number = u32::from(core.y) * 8 + u32::from(core.x);
    let tile = number * attributes.tiles_per_core;
    let [zero, one] = first(tile, number);
    let rest = |index: u32| A::from(tile + index);
    [
        zero,
        one,
        rest(2),
        rest(3),
        rest(4),
        rest(5),
        rest(6),
        rest(7),
        rest(8),
        rest(9),
        rest(10),
        rest(11),
    ]
}

/// The words that differ between kernels.
#[inline(always)]
fn first_words<A: From<u32>>(kernel: usize, [a, b, out]: [A; 3], tile: u32, core: u32) -> [A; 2] {
    match kernel {
        0 => [a, b],
        1 => [tile.into(), core.into()],
        _ => [out, core.into()],
    }
}

fn semaphore(id: u32) -> SemaphoreDescriptor {
    let core_ranges = CoreRanges::from(grid());
    SemaphoreDescriptor { id, core_type: CoreType::Worker, core_ranges, initial_value: 0 }
}

/// The cores of every part of the program.
fn grid() -> CoreRange {
    CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(7, 7))
}

/// The program in its nested form; `addresses` are words or symbols.
pub fn nested<A: Copy + Default + From<u32>>(
    attributes: &Attributes,
    addresses: [A; 3],
) -> ProgramDescriptor<A> {
    let kernel = |index: usize| {
        let source = KernelSource::Path(Text::Borrowed(PATHS[index]));
        let mut kernel = KernelDescriptor::new(NAMES[index], source, grid(), config(index));
        kernel.compile_time_arguments = attributes.compile_time_arguments().to_vec();
        let defines = DEFINE_NAMES.map(|name| (Text::Borrowed(name), Text::Borrowed("1")));
        kernel.defines = defines.to_vec();
        kernel.runtime_arguments.push_range(grid(), |core| {
            let first = |tile, core| first_words(index, addresses, tile, core);
            core_words(attributes, core, first)
        });
        kernel
    };
    ProgramDescriptor {
        kernels: [kernel(0), kernel(1), kernel(2)].into_iter().collect(),
        circular_buffers: (0..CIRCULAR_BUFFERS)
            .map(|index| attributes.circular_buffer(index))
            .collect(),
        semaphores: (0..SEMAPHORES).map(semaphore).collect(),
    }
}

/// The program in its nested form with the words of a dispatch.
pub fn nested_at(attributes: &Attributes, at: Addresses) -> ProgramDescriptor {
    nested(attributes, [at.a, at.b, at.out])
}

/// The program in its flat form with the words of a dispatch.
pub fn flat_at<'a>(
    flat: &'a mut FlatDescriptor,
    attributes: &Attributes,
    at: Addresses,
) -> FlatProgram<'a> {
    let compile_time_arguments = attributes.compile_time_arguments();
    let core_ranges = CoreRanges::from(grid());
    let defines = DEFINE_NAMES.map(|name| (name, "1"));
    let mut kernels = flat.begin();
    for index in 0..KERNELS {
        let head = KernelHead {
            name: NAMES[index],
            source: &KernelSource::Path(Text::Borrowed(PATHS[index])),
            core_ranges: &core_ranges,
            compile_time_arguments: &compile_time_arguments,
            named_compile_time_arguments: &[],
            defines: &defines,
            optimisation_level: None,
            config: &config(index),
        };
        let addresses = [at.a, at.b, at.out];
        kernels.kernel(&head, &[]).push_range(grid(), |core| {
            let first = |tile, core| first_words(index, addresses, tile, core);
            core_words(attributes, core, first)
        });
    }
    let mut buffers = kernels.circular_buffers();
    for index in 0..CIRCULAR_BUFFERS {
        buffers.circular_buffer(&attributes.circular_buffer(index));
    }
    buffers.finish(&[0, 1, 2, 3].map(semaphore))
}

// === the operation ===

impl Operation for MatrixProduct {
    const NAME: &'static str = "matrix_product";
    type Attributes = Attributes;

    fn create(
        attributes: &Attributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        for index in 0..3 {
            operands.require(index)?;
        }
        let address = |index| Argument::Address { operand: OperandIndex(index), offset_bytes: 0 };
        Ok(nested(attributes, [address(0), address(1), address(2)]))
    }
}

/// Both inputs and the output: what is known of each.
pub fn operand_specs() -> [OperandSpec; 3] {
    [[2048, 512], [512, 1024], [2048, 1024]].map(|[rows, columns]| OperandSpec {
        shape: Shape::from([1, 1, rows, columns]),
        data_format: DataFormat::BFloat16,
        layout: Layout::Tiled(Tile::STANDARD),
        memory: MemoryConfig::DRAM,
    })
}

/// The same for the baseline.
pub fn seed_specs(specs: &[OperandSpec; 3]) -> [TensorSpec; 3] {
    specs.each_ref().map(|spec| TensorSpec {
        shape: spec.shape.dimensions().try_into().expect("each has four dimensions"),
        data_format: spec.data_format as u32,
        layout: u32::from(spec.layout != Layout::RowMajor),
        tile: 32 << 16 | 32,
        memory: u32::from(spec.memory != MemoryConfig::DRAM),
    })
}

/// Calls `body` with what a dispatch at these addresses is given.
#[inline(always)]
pub fn with_dispatch<R>(
    specs: &[OperandSpec; 3],
    at: Addresses,
    body: impl FnOnce(&Dispatch<'_>) -> R,
) -> R {
    let operand = |index: usize, address: u32| {
        Some(Operand { spec: &specs[index], address: Address::new(address) })
    };
    let operands = [operand(0, at.a), operand(1, at.b), operand(2, at.out)];
    body(&Dispatch { operands: &operands, ..Dispatch::default() })
}
