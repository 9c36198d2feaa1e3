//! Why an operation was not done. Every error names the operation; a refusal names the operand.

use telltale_program_cache::{DataFormat, FactoryError, Layout, OperandSpec};
use thiserror::Error;

use crate::extents::{Extents, MAX_RANK};
use crate::memory_order::stored_elements;

/// More elements than this are refused: kernels count elements and bytes in 32 bits.
pub const MAX_ELEMENTS: u64 = 1 << 30;

/// An operand that an operation does not take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{operation} refuses operand `{operand}`: {reason}")]
pub struct OperandRefusal {
    /// The operation.
    pub operation: &'static str,
    /// The operand's name in the operation's documentation.
    pub operand: &'static str,
    /// What it is, and what it should be.
    pub reason: String,
}

impl From<OperandRefusal> for FactoryError {
    fn from(refusal: OperandRefusal) -> Self {
        Self::Unsupported(refusal.to_string().into())
    }
}

/// Builds refusals of one operand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked<'a> {
    operation: &'static str,
    operand: &'static str,
    pub(crate) spec: &'a OperandSpec,
}

impl<'a> Checked<'a> {
    /// An operand whose shape every operation can take.
    pub(crate) fn new(
        operation: &'static str,
        operand: &'static str,
        spec: &'a OperandSpec,
    ) -> Result<Self, OperandRefusal> {
        let checked = Self { operation, operand, spec };
        let shape = spec.shape.dimensions();
        checked.require(shape.len() <= MAX_RANK, || {
            format!("its shape {shape:?} has more than {MAX_RANK} dimensions")
        })?;
        let sizes = shape.iter().try_fold(1_u64, |count, size| {
            Some(count.checked_mul(u64::from(*size))?).filter(|count| *count <= MAX_ELEMENTS)
        });
        let fits = sizes.is_some_and(|count| count > 0) && stored_elements(spec) <= MAX_ELEMENTS;
        checked.require(fits, || {
            format!("its shape {shape:?} has no elements or more than {MAX_ELEMENTS}")
        })?;
        let in_blocks =
            matches!(spec.data_format, DataFormat::BFloat8Block | DataFormat::BFloat4Block);
        checked.require(!in_blocks, || {
            format!("its format {:?} has no elements of whole bytes", spec.data_format)
        })?;
        checked.require(known_layout(spec.layout), || {
            format!("its layout {:?} is neither row-major nor in standard tiles", spec.layout)
        })?;
        Ok(checked)
    }

    /// An operand of numbers.
    pub(crate) fn numbers(
        operation: &'static str,
        operand: &'static str,
        spec: &'a OperandSpec,
    ) -> Result<Self, OperandRefusal> {
        let checked = Self::new(operation, operand, spec)?;
        let format = spec.data_format;
        let number = matches!(format, DataFormat::Float32 | DataFormat::BFloat16);
        checked.require(number, || format!("it is {format:?}, not Float32 or BFloat16"))?;
        Ok(checked)
    }

    /// An operand of row-major whole numbers.
    pub(crate) fn indices(
        operation: &'static str,
        operand: &'static str,
        spec: &'a OperandSpec,
    ) -> Result<Self, OperandRefusal> {
        let checked = Self::new(operation, operand, spec)?;
        let OperandSpec { data_format, layout, .. } = spec;
        let whole = *data_format == DataFormat::UInt32 && *layout == Layout::RowMajor;
        checked.require(whole, || {
            format!("it is {data_format:?} in {layout:?}, not UInt32 in RowMajor")
        })?;
        Ok(checked)
    }

    /// Refuses the operand with this reason unless the condition holds.
    pub(crate) fn require(
        &self,
        holds: bool,
        reason: impl FnOnce() -> String,
    ) -> Result<(), OperandRefusal> {
        if holds { Ok(()) } else { Err(self.refusal(reason())) }
    }

    pub(crate) fn refusal(&self, reason: String) -> OperandRefusal {
        OperandRefusal { operation: self.operation, operand: self.operand, reason }
    }

    /// Refuses another shape than this.
    pub(crate) fn require_shape(&self, shape: &[u32]) -> Result<(), OperandRefusal> {
        let own = self.spec.shape.dimensions();
        self.require(own == shape, || format!("its shape is {own:?}, not {shape:?}"))
    }

    /// Refuses another shape or layout than this operand's.
    pub(crate) fn require_like(&self, other: &OperandSpec) -> Result<(), OperandRefusal> {
        self.require_shape(&other.shape)?;
        let (own, other) = (self.spec.layout, other.layout);
        self.require(own == other, || format!("its layout is {own:?}, not {other:?}"))
    }

    /// Refuses rows that are longer than a block.
    pub(crate) fn require_row(&self, most: u32) -> Result<(), OperandRefusal> {
        let columns = self.extents().columns();
        self.require(columns <= most, || {
            format!("its rows have {columns} elements; at most {most} are possible")
        })
    }

    pub(crate) fn extents(&self) -> Extents {
        Extents::of(&self.spec.shape)
    }
}

fn known_layout(layout: Layout) -> bool {
    match layout {
        Layout::RowMajor => true,
        Layout::Tiled(tile) => tile == telltale_program_cache::Tile::STANDARD,
    }
}
