//! Layer norm of each row, and its gradients.

use telltale_program_cache::{
    Argument, DataFormat, DynamicIndex, FactoryError, Layout, OperandSpec, OperandSpecs, Operation,
    ProgramDescriptor, ProgramKey, Shape,
};

use crate::blocks::{Blocks, MAX_ROW_ELEMENTS, Order};
use crate::error::{Checked, OperandRefusal};
use crate::extents::Extents;
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::rows::{one_column, tiled, with_rows_joined};
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const LAYER_NORM: (&str, &str) =
    ("layer_norm", kernel_text!("tensor.h", "numbers.h", "layer_norm.c"));
const PARAMETERS: (&str, &str) =
    ("layer_norm_parameters", kernel_text!("tensor.h", "layer_norm_parameters.c"));
/// Columns whose sums one core makes at least, where there are several cores' worth.
const PARAMETER_COLUMNS: u32 = 512;

/// The operation that [`Session::layer_norm`] dispatches: operands `x`, `gamma`, `beta`, `y`,
/// `mean`, `deviation`; dynamic value 0 is epsilon's bits.
#[derive(Debug)]
pub struct LayerNormOperation;

/// The first operation that [`Session::layer_norm_backward`] dispatches: operands `x`, `slope`,
/// `gamma`, `mean`, `deviation`, `result`.
#[derive(Debug)]
pub struct LayerNormBackwardOperation;

/// The second one: operands `x`, `slope`, `mean`, `deviation`, `gamma`'s and `beta`'s gradient.
#[derive(Debug)]
pub struct LayerNormParametersOperation;

/// A layer norm has no parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct LayerNormAttributes {}

/// The results of a layer norm.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    /// The normal values times gamma plus beta.
    pub y: Tensor,
    /// The mean of each row, `[…, 1]`, Float32 in row-major order.
    pub mean: Tensor,
    /// One over the square root of each row's variance plus epsilon, likewise.
    pub deviation: Tensor,
}

/// The gradients of a layer norm.
#[derive(Debug, Clone)]
pub struct LayerNormGradients {
    /// For the input.
    pub x: Tensor,
    /// For gamma.
    pub gamma: Tensor,
    /// For beta.
    pub beta: Tensor,
}

impl Operation for LayerNormOperation {
    const NAME: &'static str = "layer_norm";
    type Attributes = LayerNormAttributes;

    fn create(
        _: &LayerNormAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (x, y) = (operands.require(0)?, operands.require(3)?);
        let rows = Rows::of(x);
        let sources = [
            rows.whole(0, x),
            OperandSource::new(1, operands.require(1)?).kept(),
            OperandSource::new(2, operands.require(2)?).kept(),
        ];
        let results = [
            rows.whole(3, y),
            rows.single(4, operands.require(4)?),
            rows.single(5, operands.require(5)?),
        ];
        Ok(rows.program(false, &sources, &results))
    }
}

impl Operation for LayerNormBackwardOperation {
    const NAME: &'static str = "layer_norm_backward";
    type Attributes = LayerNormAttributes;

    fn create(
        _: &LayerNormAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let x = operands.require(0)?;
        let rows = Rows::of(x);
        let sources = [
            rows.whole(0, x),
            rows.whole(1, operands.require(1)?),
            OperandSource::new(2, operands.require(2)?).kept(),
            rows.single(3, operands.require(3)?),
            rows.single(4, operands.require(4)?),
        ];
        Ok(rows.program(true, &sources, &[rows.whole(5, operands.require(5)?)]))
    }
}

impl Operation for LayerNormParametersOperation {
    const NAME: &'static str = "layer_norm_parameters";
    type Attributes = LayerNormAttributes;

    fn create(
        _: &LayerNormAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let x = operands.require(0)?;
        let rows = Rows::of(x);
        let mut blocks = Blocks::of_elements(rows.extents, tiled(x));
        blocks.block_columns = blocks.block_columns.min(PARAMETER_COLUMNS);
        blocks.order = Order::ColumnMatrixRow;
        let group = blocks.matrices * blocks.row_blocks();
        let sources = [
            rows.whole(0, x),
            rows.whole(1, operands.require(1)?),
            rows.single(2, operands.require(2)?),
            rows.single(3, operands.require(3)?),
        ];
        let mut words = blocks.words();
        words.push(Argument::Word(group));
        let target = Blocks { matrices: 1, rows: 1, block_rows: 1, inner: 1, ..blocks };
        let results = [
            OperandSource::new(4, operands.require(4)?),
            OperandSource::new(5, operands.require(5)?),
        ];
        Ok(ProgramParts::new(blocks.share(group, u64::from(blocks.block_elements())))
            .read_blocks(&blocks, &sources)
            .compute(PARAMETERS, words)
            .grouped(group)
            .write_blocks(&target, &results, None)
            .program())
    }
}

/// The rows of an input.
struct Rows {
    extents: Extents,
    blocks: Blocks,
}

impl Rows {
    fn of(x: &OperandSpec) -> Self {
        let extents = with_rows_joined(x);
        Self { extents, blocks: Blocks::of_rows(extents, tiled(x)) }
    }

    /// An operand of the input's shape.
    fn whole(&self, position: u16, spec: &OperandSpec) -> OperandSource {
        OperandSource::with_extents(position, spec, self.extents)
    }

    /// An operand with one number for each row.
    fn single(&self, position: u16, spec: &OperandSpec) -> OperandSource {
        OperandSource::with_extents(position, spec, one_column(self.extents)).kept()
    }

    fn program(
        &self,
        backwards: bool,
        sources: &[OperandSource],
        results: &[OperandSource],
    ) -> ProgramDescriptor<Argument> {
        let blocks = &self.blocks;
        let mut words = blocks.words();
        words.push(Argument::Word(u32::from(backwards)));
        words.push(if backwards { Argument::Word(0) } else { Argument::Dynamic(DynamicIndex(0)) });
        ProgramParts::new(blocks.share(1, u64::from(blocks.block_elements())))
            .read_blocks(blocks, sources)
            .compute(LAYER_NORM, words)
            .write_blocks(blocks, results, None)
            .program()
    }
}

/// Checks the input and a parameter of it.
fn check(name: &'static str, x: &OperandSpec) -> Result<u32, OperandRefusal> {
    let checked = Checked::numbers(name, "x", x)?;
    checked.require(!x.shape.is_empty(), || "it is a scalar and has no rows".to_owned())?;
    checked.require_row(MAX_ROW_ELEMENTS)?;
    Ok(checked.extents().columns())
}

fn check_parameter(
    name: &'static str,
    operand: &'static str,
    spec: &OperandSpec,
    columns: u32,
) -> Result<(), OperandRefusal> {
    Checked::numbers(name, operand, spec)?.require_shape(&[columns])
}

/// The specification of something that there is once for each row.
fn once_a_row(x: &OperandSpec) -> OperandSpec {
    let mut shape = x.shape.dimensions().to_vec();
    *shape.last_mut().expect("checked: not a scalar") = 1;
    OperandSpec {
        shape: Shape::new(&shape),
        data_format: DataFormat::Float32,
        layout: Layout::RowMajor,
        memory: x.memory.clone(),
    }
}

// === impl Session ===

impl Session {
    /// Layer norm of each row. Epsilon changes no program.
    ///
    /// # Errors
    /// When an operand is not Float32 or BFloat16, rows are longer than 16,384, or `gamma` or
    /// `beta` is not `[columns]`; or the dispatch fails.
    pub fn layer_norm(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        epsilon: f32,
    ) -> Result<LayerNorm, OperationError> {
        const NAME: &str = "layer_norm";
        let columns = check(NAME, x.spec())?;
        check_parameter(NAME, "gamma", gamma.spec(), columns)?;
        check_parameter(NAME, "beta", beta.spec(), columns)?;
        let results = LayerNorm {
            y: self.result(NAME, x.spec().clone())?,
            mean: self.result(NAME, once_a_row(x.spec()))?,
            deviation: self.result(NAME, once_a_row(x.spec()))?,
        };
        let LayerNorm { y, mean, deviation } = &results;
        self.dispatch::<LayerNormOperation>(
            &LayerNormAttributes {},
            &[Some(x), Some(gamma), Some(beta), Some(y), Some(mean), Some(deviation)],
            &[epsilon.to_bits()],
        )?;
        Ok(results)
    }

    /// The gradients from the gradient `slope` for `y`; `forward` is what
    /// [`layer_norm`](Self::layer_norm) gave. Those for gamma and beta have gamma's format and
    /// layout.
    ///
    /// # Errors
    /// As [`layer_norm`](Self::layer_norm), and when `slope` has another shape or layout than `x`.
    pub fn layer_norm_backward(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        forward: &LayerNorm,
        slope: &Tensor,
    ) -> Result<LayerNormGradients, OperationError> {
        const NAME: &str = "layer_norm_backward";
        let columns = check(NAME, x.spec())?;
        check_parameter(NAME, "gamma", gamma.spec(), columns)?;
        Checked::numbers(NAME, "slope", slope.spec())?.require_like(x.spec())?;
        let (mean, deviation) = (&forward.mean, &forward.deviation);
        for (operand, tensor) in [("mean", mean), ("deviation", deviation)] {
            Checked::numbers(NAME, operand, tensor.spec())?.require_like(&once_a_row(x.spec()))?;
        }
        let gradients = LayerNormGradients {
            x: self.result(NAME, x.spec().clone())?,
            gamma: self.result(NAME, gamma.spec().clone())?,
            beta: self.result(NAME, gamma.spec().clone())?,
        };
        let attributes = LayerNormAttributes {};
        let LayerNormGradients { x: for_x, gamma: for_gamma, beta: for_beta } = &gradients;
        self.dispatch::<LayerNormBackwardOperation>(
            &attributes,
            &[Some(x), Some(slope), Some(gamma), Some(mean), Some(deviation), Some(for_x)],
            &[],
        )?;
        self.dispatch::<LayerNormParametersOperation>(
            &attributes,
            &[Some(x), Some(slope), Some(mean), Some(deviation), Some(for_gamma), Some(for_beta)],
            &[],
        )?;
        Ok(gradients)
    }
}
