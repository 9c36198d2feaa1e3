//! Operations that only move elements: transpose, permute, slice, repeat, reshape.

use telltale_program_cache::{
    Argument, FactoryError, Layout, OperandSpec, OperandSpecs, Operation, ProgramDescriptor,
    ProgramKey, Shape,
};

use crate::blocks::Blocks;
use crate::error::{Checked, OperandRefusal};
use crate::extents::{Extents, MAX_RANK};
use crate::memory_order::TILE;
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::rows::tiled;
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const READ: (&str, &str) = ("move", kernel_text!("tensor.h", "move.c"));
const WHOLE: [u32; 4] = [0, 1, 2, 3];
const FROM_START: [u32; 4] = [0; 4];

/// The operation behind all of these: operands `x`, `result`.
#[derive(Debug)]
pub struct MoveOperation;

/// Where each element of the result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub enum MoveAttributes {
    /// Along each of four dimensions of `x`: the result's index in dimension `from`, plus `starts`,
    /// modulo the size.
    Mapped {
        /// For each dimension of `x` one of the result's.
        from: [u32; 4],
        /// For each dimension of `x` where it starts.
        starts: [u32; 4],
    },
    /// The same place in row-major order.
    Reshaped,
}

impl Operation for MoveOperation {
    const NAME: &'static str = "move";
    type Attributes = MoveAttributes;

    fn create(
        attributes: &MoveAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (x, result) = (operands.require(0)?, operands.require(1)?);
        let blocks = Blocks::of_elements(Extents::of(&result.shape), tiled(result));
        let (kind, from, starts) = match *attributes {
            MoveAttributes::Mapped { from, starts } => (0, from, starts),
            MoveAttributes::Reshaped => (1, WHOLE, FROM_START),
        };
        let mut words = blocks.words();
        words.push(Argument::Word(kind));
        words.extend(OperandSource::new(0, x).tensor_words());
        let numbers = [Extents::of(&x.shape).0, from, starts];
        words.extend(numbers.into_iter().flatten().map(Argument::Word));
        Ok(ProgramParts::new(blocks.share(1, u64::from(blocks.block_elements())))
            .reader(READ, words)
            .write_blocks(&blocks, &[OperandSource::new(1, result)], None)
            .program())
    }
}

/// Whether the elements of a shape's tensor are where they would be if it had the other shape.
fn same_places(spec: &OperandSpec, shape: &Shape) -> bool {
    if spec.layout == Layout::RowMajor {
        return true;
    }
    let (one, other) = (Extents::of(&spec.shape), Extents::of(shape));
    let whole_tiles = |extents: Extents| extents.rows().is_multiple_of(TILE);
    one.columns() == other.columns()
        && (one.rows() == other.rows() || whole_tiles(one) && whole_tiles(other))
}

/// For each of the four dimensions of `x` the result's dimension that walks it.
fn permutation(checked: &Checked<'_>, order: &[usize]) -> Result<[u32; 4], OperandRefusal> {
    let rank = checked.spec.shape.len();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    checked.require(sorted.iter().copied().eq(0..rank), || {
        format!("the order {order:?} does not name each of its {rank} dimensions once")
    })?;
    let missing = MAX_RANK - rank;
    let mut from = WHOLE;
    for (result, source) in order.iter().enumerate() {
        from[source + missing] = u32::try_from(result + missing).expect("below 4");
    }
    Ok(from)
}

// === impl Session ===

impl Session {
    /// Dimensions in another order: dimension `i` of the result is dimension `order[i]` of `x`.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, or `order` is no permutation of its dimensions; or the
    /// dispatch fails.
    pub fn permute(&self, x: &Tensor, order: &[usize]) -> Result<Tensor, OperationError> {
        const NAME: &str = "permute";
        let checked = Checked::numbers(NAME, "x", x.spec())?;
        let from = permutation(&checked, order)?;
        let shape = order.iter().map(|dimension| x.shape()[*dimension]).collect();
        self.moved(NAME, MoveAttributes::Mapped { from, starts: FROM_START }, x, shape)
    }

    /// The last two dimensions exchanged.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, or has fewer than two dimensions; or the dispatch
    /// fails.
    pub fn transpose(&self, x: &Tensor) -> Result<Tensor, OperationError> {
        const NAME: &str = "transpose";
        let checked = Checked::numbers(NAME, "x", x.spec())?;
        let rank = x.shape().len();
        checked.require(rank >= 2, || format!("it has {rank} dimensions, not two or more"))?;
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        self.permute(x, &order)
    }

    /// The part of `x` between `starts` and `ends`, ends excluded, one of each for each dimension.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, or a part is empty or not inside; or the dispatch
    /// fails.
    pub fn slice(
        &self,
        x: &Tensor,
        starts: &[u32],
        ends: &[u32],
    ) -> Result<Tensor, OperationError> {
        const NAME: &str = "slice";
        let checked = Checked::numbers(NAME, "x", x.spec())?;
        let rank = x.shape().len();
        let inside = starts.len() == rank
            && ends.len() == rank
            && (0..rank).all(|i| starts[i] < ends[i] && ends[i] <= x.shape()[i]);
        checked.require(inside, || {
            format!("{starts:?} to {ends:?} is no part of its shape {:?}", x.shape())
        })?;
        let mut all = FROM_START;
        all[MAX_RANK - rank..].copy_from_slice(starts);
        let shape = starts.iter().zip(ends).map(|(start, end)| end - start).collect();
        self.moved(NAME, MoveAttributes::Mapped { from: WHOLE, starts: all }, x, shape)
    }

    /// `x` repeated along each dimension as many times as `counts` says.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, there is not one count for each dimension, or the
    /// result would be too large; or the dispatch fails.
    pub fn repeat(&self, x: &Tensor, counts: &[u32]) -> Result<Tensor, OperationError> {
        const NAME: &str = "repeat";
        let checked = Checked::numbers(NAME, "x", x.spec())?;
        let (rank, given) = (x.shape().len(), counts.len());
        checked.require(rank == given, || {
            format!("it has {rank} dimensions and {given} counts were given")
        })?;
        let sizes = x.shape().iter().zip(counts);
        let shape: Option<Shape> = sizes.map(|(size, count)| size.checked_mul(*count)).collect();
        let shape = shape.ok_or_else(|| checked.refusal("the result is too large".to_owned()))?;
        let attributes = MoveAttributes::Mapped { from: WHOLE, starts: FROM_START };
        self.moved(NAME, attributes, x, shape)
    }

    /// The same elements in row-major order with another shape. Where that moves no element, the
    /// result shares `x`'s buffer.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, or the shapes have not the same number of elements; or
    /// the dispatch fails.
    pub fn reshape(&self, x: &Tensor, shape: &[u32]) -> Result<Tensor, OperationError> {
        const NAME: &str = "reshape";
        let checked = Checked::numbers(NAME, "x", x.spec())?;
        let shape = Shape::new(shape);
        let same =
            shape.len() <= MAX_RANK && shape.element_count() == x.spec().shape.element_count();
        checked.require(same, || {
            format!("its shape {:?} does not become {:?}", x.shape(), shape.dimensions())
        })?;
        if same_places(x.spec(), &shape) {
            return Ok(x.seen_as(shape));
        }
        self.moved(NAME, MoveAttributes::Reshaped, x, shape)
    }

    fn moved(
        &self,
        name: &'static str,
        attributes: MoveAttributes,
        x: &Tensor,
        shape: Shape,
    ) -> Result<Tensor, OperationError> {
        let result = self.result(name, OperandSpec { shape, ..x.spec().clone() })?;
        self.dispatch::<MoveOperation>(&attributes, &[Some(x), Some(&result)], &[])?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use telltale_program_cache::{DataFormat, Layout, MemoryConfig, OperandSpec, Shape, Tile};

    use super::same_places;

    #[test]
    fn a_reshape_moves_elements_unless_tiles_stay_as_they_are() {
        let moves = |layout, from: &[u32], to: &[u32]| {
            let spec = OperandSpec {
                shape: Shape::new(from),
                data_format: DataFormat::Float32,
                layout,
                memory: MemoryConfig::DRAM,
            };
            !same_places(&spec, &Shape::new(to))
        };
        let tiled = Layout::Tiled(Tile::STANDARD);
        assert!(!moves(Layout::RowMajor, &[3, 5], &[5, 3]));
        assert!(!moves(tiled, &[2, 64, 40], &[128, 40]));
        assert!(!moves(tiled, &[2, 3, 5, 40], &[6, 5, 40]));
        assert!(moves(tiled, &[2, 16, 40], &[32, 40]), "each matrix has a row of tiles");
        assert!(moves(tiled, &[32, 64], &[64, 32]));
    }
}
