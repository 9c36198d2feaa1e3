//! Rows of a table that tokens name, and the gradient for the table.

use telltale_program_cache::{
    Argument, FactoryError, OperandSpec, OperandSpecs, Operation, ProgramDescriptor, ProgramKey,
    Shape,
};

use crate::blocks::{Blocks, MAX_ROW_ELEMENTS};
use crate::error::{Checked, OperandRefusal};
use crate::extents::{Extents, MAX_RANK};
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::rows::tiled;
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const READ: (&str, &str) = ("embedding", kernel_text!("tensor.h", "embedding.c"));
const BACKWARD: (&str, &str) =
    ("embedding_backward", kernel_text!("tensor.h", "embedding_backward.c"));

/// The operation that [`Session::embedding`] dispatches: operands `tokens`, `table`, `result`.
#[derive(Debug)]
pub struct EmbeddingOperation;

/// The operation that [`Session::embedding_backward`] dispatches: operands `slope`, `tokens`,
/// `result`.
#[derive(Debug)]
pub struct EmbeddingBackwardOperation;

/// An embedding has no parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct EmbeddingAttributes {}

impl Operation for EmbeddingOperation {
    const NAME: &'static str = "embedding";
    type Attributes = EmbeddingAttributes;

    fn create(
        _: &EmbeddingAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (tokens, table) = (operands.require(0)?, operands.require(1)?);
        let result = operands.require(2)?;
        let extents = Extents::of(&result.shape);
        let blocks = Blocks::of_elements(extents, tiled(result));
        let mut words = blocks.words();
        words.extend(OperandSource::new(0, tokens).tensor_words());
        words.extend(OperandSource::new(1, table).tensor_words());
        Ok(ProgramParts::new(blocks.share(1, u64::from(blocks.block_elements())))
            .reader(READ, words)
            .write_blocks(&blocks, &[OperandSource::new(2, result)], None)
            .program())
    }
}

impl Operation for EmbeddingBackwardOperation {
    const NAME: &'static str = "embedding_backward";
    type Attributes = EmbeddingAttributes;

    fn create(
        _: &EmbeddingAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (slope, tokens) = (operands.require(0)?, operands.require(1)?);
        let result = operands.require(2)?;
        let table = Extents::of(&result.shape);
        let target = Blocks::of_rows(table, tiled(result));
        let [outer, inner, rows, columns] = Extents::of(&slope.shape).0;
        let matrices = outer * inner;
        // All tokens pass once for each strip of the table: the strip is the outer dimension,
        // along which slopes and tokens repeat.
        let all = Extents([target.row_blocks(), matrices, rows, columns]);
        let blocks = Blocks::of_rows(all, tiled(slope));
        let group = matrices * blocks.row_blocks();
        let sources = [
            OperandSource::with_extents(0, slope, Extents([1, matrices, rows, columns])),
            OperandSource::with_extents(1, tokens, Extents([1, matrices, rows, 1])).kept(),
        ];
        let mut words = blocks.words();
        words.extend([group, target.block_rows].map(Argument::Word));
        Ok(ProgramParts::new(blocks.share(group, u64::from(blocks.block_elements())))
            .read_blocks(&blocks, &sources)
            .compute(BACKWARD, words)
            .grouped(group)
            .write_blocks(&target, &[OperandSource::new(2, result)], None)
            .program())
    }
}

fn check_tokens(name: &'static str, tokens: &OperandSpec) -> Result<(), OperandRefusal> {
    let checked = Checked::indices(name, "tokens", tokens)?;
    let rank = tokens.shape.len();
    checked.require(rank < MAX_RANK, || format!("it has {rank} dimensions, not below {MAX_RANK}"))
}

// === impl Session ===

impl Session {
    /// The rows of `table` `[rows, columns]` that `tokens` `[…]` name: `[…, columns]`, of the
    /// table's format and layout. A token that is no row ends the program with an error.
    ///
    /// # Errors
    /// When `table` is not Float32 or BFloat16 in two dimensions, or `tokens` are not row-major
    /// UInt32 of at most three; or the dispatch fails.
    pub fn embedding(&self, tokens: &Tensor, table: &Tensor) -> Result<Tensor, OperationError> {
        const NAME: &str = "embedding";
        check_tokens(NAME, tokens.spec())?;
        let checked = Checked::numbers(NAME, "table", table.spec())?;
        let &[_, columns] = table.shape() else {
            return Err(checked.refusal("it does not have two dimensions".to_owned()).into());
        };
        let shape: Shape = tokens.shape().iter().copied().chain([columns]).collect();
        let result = self.result(NAME, OperandSpec { shape, ..table.spec().clone() })?;
        self.dispatch::<EmbeddingOperation>(
            &EmbeddingAttributes {},
            &[Some(tokens), Some(table), Some(&result)],
            &[],
        )?;
        Ok(result)
    }

    /// The gradient for a table of `rows` rows from the gradient `slope` `[…, columns]` for the
    /// embedding of `tokens` `[…]`; of the slope's format and layout.
    ///
    /// # Errors
    /// When `slope` is not Float32 or BFloat16, has rows longer than 16,384 or another shape than
    /// the tokens', or `tokens` are not row-major UInt32 of at most three dimensions; or the
    /// dispatch fails.
    pub fn embedding_backward(
        &self,
        tokens: &Tensor,
        slope: &Tensor,
        rows: u32,
    ) -> Result<Tensor, OperationError> {
        const NAME: &str = "embedding_backward";
        check_tokens(NAME, tokens.spec())?;
        let checked = Checked::numbers(NAME, "slope", slope.spec())?;
        checked.require_row(MAX_ROW_ELEMENTS)?;
        let columns = checked.extents().columns();
        let shape: Vec<u32> = tokens.shape().iter().copied().chain([columns]).collect();
        checked.require_shape(&shape)?;
        let shape = Shape::from([rows, columns]);
        let result = self.result(NAME, OperandSpec { shape, ..slope.spec().clone() })?;
        self.dispatch::<EmbeddingBackwardOperation>(
            &EmbeddingAttributes {},
            &[Some(slope), Some(tokens), Some(&result)],
            &[],
        )?;
        Ok(result)
    }
}
