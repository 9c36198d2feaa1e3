//! Sum, mean and largest value along one dimension.

use telltale_program_cache::{
    Argument, FactoryError, Layout, OperandSpec, OperandSpecs, Operation, ProgramDescriptor,
    ProgramKey, Shape,
};

use crate::blocks::{Blocks, MAX_ROW_ELEMENTS, Order};
use crate::error::{Checked, OperandRefusal};
use crate::extents::{Extents, MAX_RANK};
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const NAME: &str = "reduce";
const REDUCE: (&str, &str) = ("reduce", kernel_text!("tensor.h", "numbers.h", "reduce.c"));

/// The operation that [`Session::reduce`] dispatches: operands `x`, `result`.
#[derive(Debug)]
pub struct ReduceOperation;

/// What is made of the elements along a dimension. The numbers are those of `reduce.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
#[repr(u8)]
pub enum Reduction {
    /// Their sum.
    Sum = 0,
    /// Their sum over their number.
    Mean = 1,
    /// The largest of them.
    Maximum = 2,
}

/// A reduction's parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub struct ReduceAttributes {
    /// What is made of the elements.
    pub reduction: Reduction,
    /// Along which dimension, counted from the first.
    pub dimension: u32,
}

/// Along which of a tensor's four dimensions, as the kernel does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Columns = 0,
    Rows = 1,
    Matrices = 2,
}

impl Operation for ReduceOperation {
    const NAME: &'static str = NAME;
    type Attributes = ReduceAttributes;

    fn create(
        attributes: &ReduceAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (x, result) = (operands.require(0)?, operands.require(1)?);
        result_of(*attributes, x)?;
        Ok(program(*attributes, x, result))
    }
}

fn program(
    attributes: ReduceAttributes,
    x: &OperandSpec,
    result: &OperandSpec,
) -> ProgramDescriptor<Argument> {
    let sizes = Extents::of(&x.shape).0;
    let tiled = x.layout != Layout::RowMajor;
    let missing = MAX_RANK - x.shape.len();
    let dimension = attributes.dimension as usize + missing;
    let (direction, blocks, group) = cut(sizes, dimension, tiled);
    let mut reduced = sizes;
    reduced[dimension] = 1;
    let mut words = blocks.words();
    let numbers = [attributes.reduction as u32, direction as u32, group, sizes[dimension]];
    words.extend(numbers.map(Argument::Word));
    // The result's blocks: one for each group.
    let target = Blocks {
        matrices: reduced[0] * reduced[1],
        rows: reduced[2],
        block_rows: blocks.block_rows.min(reduced[2]),
        order: if direction == Direction::Columns { blocks.order } else { target_order(direction) },
        inner: reduced[1],
        depth: 1,
        ..blocks
    };
    let mut source = OperandSource::new(0, x);
    if direction == Direction::Matrices {
        // The depth stands in for the dimension that goes: the kernel counts
        // (outer * depth + step) * inner + the rest.
        let inner_matrices = if dimension == 0 { sizes[1] } else { 1 };
        (source.outer_stride, source.inner_stride) = (inner_matrices, 1);
    }
    ProgramParts::new(blocks.share(group, u64::from(blocks.block_elements())))
        .read_blocks(&blocks, &[source])
        .compute(REDUCE, words)
        .grouped(group)
        .write_blocks(&target, &[OperandSource::new(1, result)], None)
        .program()
}

/// Blocks of the input in the order in which groups of them make a block of the result.
fn cut(sizes: [u32; 4], dimension: usize, tiled: bool) -> (Direction, Blocks, u32) {
    let extents = Extents(sizes);
    match dimension {
        3 => (Direction::Columns, Blocks::of_rows(extents, tiled), 1),
        2 => {
            let mut blocks = Blocks::of_elements(extents, tiled);
            blocks.order = Order::MatrixColumnRow;
            (Direction::Rows, blocks, blocks.row_blocks())
        }
        _ => {
            let mut blocks = Blocks::of_elements(extents, tiled);
            let depth = sizes[dimension];
            blocks.matrices /= depth;
            // With dimension 0 all that is left are the inner matrices; with dimension 1 each
            // matrix number is an outer one.
            blocks.inner = if dimension == 0 { sizes[1] } else { 1 };
            blocks.depth = depth;
            blocks.order = Order::MatrixRowColumnDepth;
            (Direction::Matrices, blocks, depth)
        }
    }
}

fn target_order(direction: Direction) -> Order {
    if direction == Direction::Rows { Order::MatrixColumnRow } else { Order::MatrixRowColumn }
}

fn result_of(attributes: ReduceAttributes, x: &OperandSpec) -> Result<OperandSpec, OperandRefusal> {
    let checked = Checked::numbers(NAME, "x", x)?;
    let (dimension, rank) = (attributes.dimension as usize, x.shape.len());
    checked.require(dimension < rank, || {
        format!("it has {rank} dimensions, so there is no dimension {dimension}")
    })?;
    if dimension + 1 == rank {
        checked.require_row(MAX_ROW_ELEMENTS)?;
    }
    let mut shape = x.shape.dimensions().to_vec();
    shape[dimension] = 1;
    Ok(OperandSpec { shape: Shape::new(&shape), ..x.clone() })
}

// === impl Session ===

impl Session {
    /// Sum, mean or largest value along `dimension`, which stays with size 1.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, lacks the dimension, or has it last and above 16,384;
    /// or the dispatch fails.
    pub fn reduce(
        &self,
        reduction: Reduction,
        x: &Tensor,
        dimension: u32,
    ) -> Result<Tensor, OperationError> {
        let attributes = ReduceAttributes { reduction, dimension };
        let result = self.result(NAME, result_of(attributes, x.spec())?)?;
        self.dispatch::<ReduceOperation>(&attributes, &[Some(x), Some(&result)], &[])?;
        Ok(result)
    }
}
