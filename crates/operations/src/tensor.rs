//! A tensor on the device: what it is, and the buffer that holds it. Copies share the buffer; it
//! is given back when the last of them and the last command that uses it are gone.

use std::sync::Arc;

use telltale_emulator::Buffer;
use telltale_program_cache::{
    Address, DataFormat, Layout, MemoryConfig, Operand, OperandSpec, Shape, Tile,
};

use crate::memory_order::page_bytes;

/// A tensor on the device.
#[derive(Debug, Clone)]
pub struct Tensor {
    spec: OperandSpec,
    buffer: Arc<Buffer>,
}

/// A specification in the chip's DRAM, row after row.
#[must_use]
pub fn row_major(shape: &[u32], data_format: DataFormat) -> OperandSpec {
    OperandSpec {
        shape: Shape::new(shape),
        data_format,
        layout: Layout::RowMajor,
        memory: MemoryConfig::DRAM,
    }
}

/// A specification in the chip's DRAM, in tiles of 32 rows and columns.
#[must_use]
pub fn tiled(shape: &[u32], data_format: DataFormat) -> OperandSpec {
    OperandSpec { layout: Layout::Tiled(Tile::STANDARD), ..row_major(shape, data_format) }
}

impl Tensor {
    pub(crate) fn new(spec: OperandSpec, buffer: Arc<Buffer>) -> Self {
        Self { spec, buffer }
    }

    /// What is known of it but its values and place.
    #[must_use]
    pub fn spec(&self) -> &OperandSpec {
        &self.spec
    }

    /// The sizes of its dimensions, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        self.spec.shape.dimensions()
    }

    /// How many elements it has.
    #[must_use]
    pub fn element_count(&self) -> usize {
        self.shape().iter().map(|size| *size as usize).product()
    }

    /// Whether both are in the same buffer.
    #[must_use]
    pub fn shares_buffer_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
    }

    /// The same buffer as another shape. The caller has made sure that no element moves.
    pub(crate) fn seen_as(&self, shape: Shape) -> Self {
        let spec = OperandSpec { shape, ..self.spec.clone() };
        debug_assert!(self.buffer.bytes() >= u64::from(page_bytes(&spec)));
        Self { spec, buffer: Arc::clone(&self.buffer) }
    }

    pub(crate) fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    pub(crate) fn operand(&self) -> Operand<'_> {
        Operand { spec: &self.spec, address: Address::new(self.buffer.address()) }
    }
}
