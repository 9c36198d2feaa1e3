//! Matrix products, batched, with either operand transposed and a bias that is added to each row.
//!
//! There are three factories, which differ in who computes and what is read again:
//! all on one core; over the cores, each block of the result on its own; and over the cores with
//! a panel of the right operand kept while the rows of the left one pass by it.

use telltale_program_cache::{
    Argument, FactoryError, Layout, OperandSpec, OperandSpecs, Operation, ProgramDescriptor,
    ProgramKey, Shape,
};

use crate::blocks::{Blocks, MAX_CORES, Order};
use crate::elementwise::broadcast;
use crate::error::{Checked, OperandRefusal};
use crate::extents::Extents;
use crate::hand_written::HandWrittenMatmul;
use crate::memory_order::TILE;
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::session::{OperationError, Session, Style};
use crate::tensor::Tensor;

const NAME: &str = "matmul";
const READ: (&str, &str) = ("matmul_read", kernel_text!("tensor.h", "matmul.h", "matmul_read.c"));
const MULTIPLY: (&str, &str) =
    ("matmul", kernel_text!("tensor.h", "numbers.h", "matmul.h", "matmul.c"));

/// Elements of a panel of the right operand: a quarter of a megabyte for the two of its buffer.
const PANEL_ELEMENTS: u32 = 32_768;
/// Columns of the widest panel.
const MAX_PANEL_COLUMNS: u32 = 128;
/// The narrowest panel; what is kept must be at least as wide.
const MIN_PANEL_COLUMNS: u32 = 32;
/// Results come in lanes of this many columns.
const LANES: u32 = 16;
/// So many products cost about as much as one function of an element.
const PRODUCTS_PER_WORK: u64 = 32;
/// How much of the inner dimension is in L1 at once when panels are not kept.
const CHUNK: u32 = 256;

/// The operation that [`Session::matmul`] dispatches: operands `a`, `b`, optionally `bias`,
/// `result`.
#[derive(Debug)]
pub struct MatmulOperation;

/// A matrix product's parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct MatmulAttributes {
    /// Whether the matrices of `a` are taken with rows and columns exchanged.
    pub a_transposed: bool,
    /// Whether the matrices of `b` are.
    pub b_transposed: bool,
    /// Who computes what.
    pub factory: MatmulFactory,
}

/// Who computes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub enum MatmulFactory {
    /// Reuse where a panel fits into L1, else several cores if there are several blocks.
    #[default]
    Automatic,
    /// All blocks on one core, operands read block by block.
    SingleCore,
    /// Blocks over the cores, operands read block by block.
    MultiCore,
    /// Panels over the cores; a panel of `b` stays in L1 while the rows of `a` pass. Refused when
    /// the inner dimension is above 1,024, where no panel fits.
    MultiCoreReuse,
}

/// The sizes of a product, and how its operands are seen.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batches: [u32; 2],
    a_batches: [u32; 2],
    b_batches: [u32; 2],
    rows: u32,
    inner: u32,
    columns: u32,
}

impl Operation for MatmulOperation {
    const NAME: &'static str = NAME;
    type Attributes = MatmulAttributes;

    fn create(
        attributes: &MatmulAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (a, b, bias) = (operands.require(0)?, operands.require(1)?, operands.get(2));
        program(attributes, a, b, bias, operands.require(3)?)
    }
}

/// The program of a product; separate from the operation so that the one with an update by hand
/// has the same.
pub(crate) fn program(
    attributes: &MatmulAttributes,
    a: &OperandSpec,
    b: &OperandSpec,
    bias: Option<&OperandSpec>,
    result: &OperandSpec,
) -> Result<ProgramDescriptor<Argument>, FactoryError> {
    let sizes = Sizes::of(attributes, a, b)?.with_rows_joined(attributes, a, result);
    let (blocks, chunk, keep) = sizes.cut(attributes, a)?;
    let shares = match attributes.factory {
        MatmulFactory::Automatic => {
            let products = u64::from(TILE * blocks.block_columns) * u64::from(sizes.inner);
            blocks.share(1, products / PRODUCTS_PER_WORK)
        }
        MatmulFactory::SingleCore => blocks.share_over(1, 1),
        MatmulFactory::MultiCore | MatmulFactory::MultiCoreReuse => blocks.share_over(1, MAX_CORES),
    };
    let words = sizes.words(attributes, &blocks, chunk, keep, [a, b], bias);
    let mut parts = ProgramParts::new(shares)
        .reader(READ, words.clone())
        .buffer(0, TILE * chunk, 2)
        .buffer(1, chunk * blocks.block_columns, 2)
        .compute(MULTIPLY, words);
    if bias.is_some() {
        parts = parts.buffer(2, blocks.block_columns, 2);
    }
    let extents = Extents([sizes.batches[0], sizes.batches[1], sizes.rows, sizes.columns]);
    let result = OperandSource::with_extents(3, result, extents);
    Ok(parts.write_blocks(&blocks, &[result], Some(blocks.block_columns)).program())
}

// === impl Sizes ===

impl Sizes {
    fn of(
        attributes: &MatmulAttributes,
        a: &OperandSpec,
        b: &OperandSpec,
    ) -> Result<Self, OperandRefusal> {
        let a = matrix_operand("a", a)?;
        let b = matrix_operand("b", b)?;
        let [a_outer, a_inner, mut rows, mut inner] = a.extents().0;
        let [b_outer, b_inner, mut b_rows, mut columns] = b.extents().0;
        if attributes.a_transposed {
            std::mem::swap(&mut rows, &mut inner);
        }
        if attributes.b_transposed {
            std::mem::swap(&mut b_rows, &mut columns);
        }
        b.require(b_rows == inner, || {
            format!("its inner dimension is {b_rows} and that of `a` is {inner}")
        })?;
        let batches = broadcast(&Shape::from([a_outer, a_inner]), &Shape::from([b_outer, b_inner]));
        let batches = batches.ok_or_else(|| {
            let batches = [[a_outer, a_inner], [b_outer, b_inner]];
            b.refusal(format!("batches of `a` and `b`, {batches:?}, do not broadcast"))
        })?;
        Ok(Self {
            batches: [batches[0], batches[1]],
            a_batches: [a_outer, a_inner],
            b_batches: [b_outer, b_inner],
            rows,
            inner,
            columns,
        })
    }

    /// One matrix of all rows, where all matrices of `a` meet the same one of `b` and the rows of
    /// one follow those of the other in memory.
    fn with_rows_joined(
        mut self,
        attributes: &MatmulAttributes,
        a: &OperandSpec,
        result: &OperandSpec,
    ) -> Self {
        let whole_tiles = self.rows.is_multiple_of(TILE);
        let joins = |spec: &OperandSpec| whole_tiles || spec.layout == Layout::RowMajor;
        if self.b_batches == [1, 1] && !attributes.a_transposed && joins(a) && joins(result) {
            self.rows *= self.batches[0] * self.batches[1];
            self.batches = [1, 1];
            self.a_batches = [1, 1];
        }
        self
    }

    /// The blocks of the result, how much of the inner dimension is read at once, and whether
    /// panels are kept.
    fn cut(
        &self,
        attributes: &MatmulAttributes,
        a: &OperandSpec,
    ) -> Result<(Blocks, u32, bool), OperandRefusal> {
        let widest = (PANEL_ELEMENTS / self.inner).min(MAX_PANEL_COLUMNS) / LANES * LANES;
        let fits = widest >= MIN_PANEL_COLUMNS;
        let keep = match attributes.factory {
            MatmulFactory::Automatic => fits,
            MatmulFactory::SingleCore | MatmulFactory::MultiCore => false,
            MatmulFactory::MultiCoreReuse => {
                Checked::new(NAME, "a", a)?.require(fits, || {
                    let most = PANEL_ELEMENTS / MIN_PANEL_COLUMNS;
                    format!("its inner dimension {} is above {most}, so no panel fits", self.inner)
                })?;
                true
            }
        };
        let panel = if keep { widest } else { MAX_PANEL_COLUMNS };
        let order = match (keep, self.b_batches) {
            (false, _) => Order::MatrixRowColumn,
            (true, [1, 1]) => Order::ColumnMatrixRow,
            (true, _) => Order::MatrixColumnRow,
        };
        let blocks = Blocks {
            matrices: self.batches[0] * self.batches[1],
            rows: self.rows,
            columns: self.columns,
            block_rows: TILE,
            block_columns: self.columns.next_multiple_of(LANES).min(panel),
            order,
            inner: self.batches[1],
            depth: 1,
        };
        Ok((blocks, if keep { self.inner } else { self.inner.min(CHUNK) }, keep))
    }

    /// The words that `product_read` of `matmul.h` reads.
    fn words(
        &self,
        attributes: &MatmulAttributes,
        blocks: &Blocks,
        chunk: u32,
        keep: bool,
        [a, b]: [&OperandSpec; 2],
        bias: Option<&OperandSpec>,
    ) -> Vec<Argument> {
        let (mut a_matrix, mut b_matrix) = ([self.rows, self.inner], [self.inner, self.columns]);
        if attributes.a_transposed {
            a_matrix.reverse();
        }
        if attributes.b_transposed {
            b_matrix.reverse();
        }
        let source = |operand, spec, [outer, inner]: [u32; 2], [rows, columns]: [u32; 2]| {
            OperandSource::with_extents(operand, spec, Extents([outer, inner, rows, columns]))
        };
        let a = source(0, a, self.a_batches, a_matrix);
        let b = source(1, b, self.b_batches, b_matrix);
        let mut words = blocks.words();
        words.extend(
            [
                self.inner,
                chunk,
                u32::from(keep),
                u32::from(attributes.a_transposed),
                u32::from(attributes.b_transposed),
                u32::from(bias.is_some()),
                a.outer_stride,
                a.inner_stride,
                b.outer_stride,
                b.inner_stride,
            ]
            .map(Argument::Word),
        );
        words.extend(a.tensor_words());
        words.extend(b.tensor_words());
        if let Some(bias) = bias {
            words.extend(OperandSource::new(2, bias).tensor_words());
        }
        words
    }
}

fn matrix_operand<'a>(
    operand: &'static str,
    spec: &'a OperandSpec,
) -> Result<Checked<'a>, OperandRefusal> {
    let checked = Checked::numbers(NAME, operand, spec)?;
    let rank = spec.shape.len();
    checked.require(rank >= 2, || format!("it has {rank} dimensions; matrices have at least 2"))?;
    Ok(checked)
}

/// The specification of a product: the batch dimensions broadcast, `a`'s format and layout.
pub(crate) fn result_of(
    attributes: &MatmulAttributes,
    a: &OperandSpec,
    b: &OperandSpec,
    bias: Option<&OperandSpec>,
) -> Result<OperandSpec, OperandRefusal> {
    let sizes = Sizes::of(attributes, a, b)?;
    if let Some(bias) = bias {
        Checked::numbers(NAME, "bias", bias)?.require_shape(&[sizes.columns])?;
    }
    let [outer, inner] = sizes.batches;
    let all = [outer, inner, sizes.rows, sizes.columns];
    let rank = a.shape.len().max(b.shape.len());
    Ok(OperandSpec { shape: Shape::new(&all[4 - rank..]), ..a.clone() })
}

// === impl Session ===

impl Session {
    /// `a` times `b`, plus `bias` in each row: `[…, m, k]` times `[…, k, n]` gives `[…, m, n]`;
    /// the dimensions in front broadcast. The result has `a`'s format and layout.
    ///
    /// # Errors
    /// When an operand is not Float32 or BFloat16 or has no matrices, sizes do not fit together,
    /// the factory that was asked for is not possible, or the dispatch fails.
    pub fn matmul(
        &self,
        attributes: MatmulAttributes,
        a: &Tensor,
        b: &Tensor,
        bias: Option<&Tensor>,
    ) -> Result<Tensor, OperationError> {
        let spec = result_of(&attributes, a.spec(), b.spec(), bias.map(Tensor::spec))?;
        let result = self.result(NAME, spec)?;
        let operands = [Some(a), Some(b), bias, Some(&result)];
        match self.style() {
            Style::Automatic => self.dispatch::<MatmulOperation>(&attributes, &operands, &[])?,
            Style::HandWritten => {
                self.dispatch::<HandWrittenMatmul>(&attributes, &operands, &[])?
            }
        }
        Ok(result)
    }
}
