//! What an operation may know of an operand when it describes its program: everything but where
//! the operand is and what is in it.

use std::ops::Deref;

use smallvec::SmallVec;

use crate::cores::CoreRanges;
use crate::key::{KeyEncoder, ProgramKey};

/// An operand: a tensor without its address and its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperandSpec {
    /// Its dimensions.
    pub shape: Shape,
    /// What an element is.
    pub data_format: DataFormat,
    /// How elements follow each other.
    pub layout: Layout,
    /// Where its pages are.
    pub memory: MemoryConfig,
}

/// The sizes of a tensor's dimensions, outermost first. No dimension at all is a scalar.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct Shape(SmallVec<[u32; 4]>);

/// What one element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ProgramKey)]
pub enum DataFormat {
    /// IEEE 754, 32 bits.
    Float32,
    /// The upper half of an IEEE 754 32-bit float.
    BFloat16,
    /// IEEE 754, 16 bits.
    Float16,
    /// Blocks of sixteen 8-bit numbers with one exponent.
    BFloat8Block,
    /// Blocks of sixteen 4-bit numbers with one exponent.
    BFloat4Block,
    /// Unsigned, 8 bits.
    UInt8,
    /// Unsigned, 16 bits.
    UInt16,
    /// Unsigned, 32 bits.
    UInt32,
    /// Two's complement, 32 bits.
    Int32,
}

/// How elements follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ProgramKey)]
pub enum Layout {
    /// Row after row.
    RowMajor,
    /// Tile after tile.
    Tiled(Tile),
}

/// A rectangle of elements that is kept together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ProgramKey)]
pub struct Tile {
    /// How many rows.
    pub height: u16,
    /// How many columns.
    pub width: u16,
    /// Whether it is kept with rows and columns exchanged.
    pub transposed: bool,
}

/// Where an operand's pages are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ProgramKey)]
pub struct MemoryConfig {
    /// In which memory.
    pub space: BufferSpace,
    /// In which order over banks or cores.
    pub distribution: Distribution,
}

/// A memory that buffers can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub enum BufferSpace {
    /// The chip's DRAM.
    Dram,
    /// The memory of its cores.
    L1,
}

/// How pages are spread over banks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ProgramKey)]
pub enum Distribution {
    /// One page to each bank in turn.
    Interleaved,
    /// A rectangle of the tensor to each core.
    Sharded(ShardSpec),
}

/// Which rectangle goes to which core.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ProgramKey)]
pub struct ShardSpec {
    /// The cores.
    pub cores: CoreRanges,
    /// Rows and columns of a shard, in elements.
    pub shape: [u32; 2],
    /// Which cores come first.
    pub orientation: ShardOrientation,
}

/// Which cores come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub enum ShardOrientation {
    /// Those of the first row.
    RowMajor,
    /// Those of the first column.
    ColumnMajor,
}

// === impl OperandSpec ===

/// Written by hand, because each dispatch writes that of each operand: the sizes of up to four
/// dimensions and all fields of fixed width are put together in registers and stored at once.
impl ProgramKey for OperandSpec {
    fn encode_type(encoder: &mut KeyEncoder) {
        encoder.type_name("telltale_program_cache::operand::OperandSpec");
        encoder.text(env!("CARGO_PKG_VERSION"));
    }

    #[inline]
    fn encode_value(&self, encoder: &mut KeyEncoder) {
        let Self { shape, data_format, layout, memory } = self;
        let MemoryConfig { space, distribution } = memory;
        let (is_sharded, shards) = match distribution {
            Distribution::Interleaved => (0, None),
            Distribution::Sharded(shards) => (1, Some(shards)),
        };
        let fixed = u128::from(*data_format as u8)
            | u128::from(*space as u8) << 8
            | is_sharded << 16
            | packed_layout(*layout) << 24;
        let dimensions = shape.dimensions();
        if let Some(sizes) = packed_sizes(dimensions) {
            let rank = dimensions.len() as u128;
            encoder.put_packed([(rank, 4), (sizes, 16), (fixed, 9)]);
        } else {
            encoder.length(dimensions.len());
            encoder.words(dimensions);
            encoder.put_packed([(fixed, 9)]);
        }
        if let Some(shards) = shards {
            shards.encode_value(encoder);
        }
    }
}

/// Six bytes: which layout, and its tile.
#[inline]
fn packed_layout(layout: Layout) -> u128 {
    let Layout::Tiled(Tile { height, width, transposed }) = layout else { return 0 };
    1 | u128::from(height) << 8 | u128::from(width) << 24 | u128::from(transposed) << 40
}

/// Up to four sizes in sixteen bytes, zeros behind them; the rank says how many there are.
#[inline]
fn packed_sizes(dimensions: &[u32]) -> Option<u128> {
    let of = |index: usize| u128::from(dimensions.get(index).copied().unwrap_or(0));
    (dimensions.len() <= 4).then(|| of(0) | of(1) << 32 | of(2) << 64 | of(3) << 96)
}

// === impl Shape ===

impl Shape {
    /// The shape with these dimensions, outermost first.
    #[must_use]
    pub fn new(dimensions: &[u32]) -> Self {
        Self(SmallVec::from_slice(dimensions))
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub fn dimensions(&self) -> &[u32] {
        &self.0
    }

    /// How many elements a tensor of this shape has; none if that is above `u64::MAX`.
    #[must_use]
    pub fn element_count(&self) -> Option<u64> {
        self.0.iter().try_fold(1, |count: u64, size| count.checked_mul(u64::from(*size)))
    }
}

impl Deref for Shape {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

impl<const N: usize> From<[u32; N]> for Shape {
    fn from(dimensions: [u32; N]) -> Self {
        Self::new(&dimensions)
    }
}

impl FromIterator<u32> for Shape {
    fn from_iter<I: IntoIterator<Item = u32>>(dimensions: I) -> Self {
        Self(dimensions.into_iter().collect())
    }
}

// === impl DataFormat ===

impl DataFormat {
    /// All formats, in the order of their definition.
    pub const ALL: [Self; 9] = [
        Self::Float32,
        Self::BFloat16,
        Self::Float16,
        Self::BFloat8Block,
        Self::BFloat4Block,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::Int32,
    ];
}

// === impl Tile ===

impl Tile {
    /// 32 rows of 32 columns, the size that the devices compute with.
    pub const STANDARD: Self = Self { height: 32, width: 32, transposed: false };

    /// How many elements it holds.
    #[must_use]
    pub fn element_count(&self) -> u32 {
        u32::from(self.height) * u32::from(self.width)
    }
}

impl Default for Tile {
    fn default() -> Self {
        Self::STANDARD
    }
}

// === impl MemoryConfig ===

impl MemoryConfig {
    /// Pages in turn over the banks of the DRAM.
    pub const DRAM: Self =
        Self { space: BufferSpace::Dram, distribution: Distribution::Interleaved };

    /// Pages in turn over the cores' memories.
    pub const L1: Self = Self { space: BufferSpace::L1, distribution: Distribution::Interleaved };
}
