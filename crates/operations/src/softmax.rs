//! Softmax of each row, scaled, with or without a causal mask; and its gradient.

use telltale_program_cache::{
    Argument, DynamicIndex, FactoryError, OperandSpec, OperandSpecs, Operation, ProgramDescriptor,
    ProgramKey,
};

use crate::blocks::{Blocks, MAX_ROW_ELEMENTS};
use crate::error::{Checked, OperandRefusal};
use crate::extents::Extents;
use crate::hand_written::HandWrittenSoftmax;
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::rows::{tiled, with_rows_joined};
use crate::session::{OperationError, Session, Style};
use crate::tensor::Tensor;

const SOFTMAX: (&str, &str) = ("softmax", kernel_text!("tensor.h", "numbers.h", "softmax.c"));
/// What an element of a row costs against a plain function of it.
const WORK_PER_ELEMENT: u64 = 2;

/// The operation that [`Session::softmax`] dispatches: operands `x`, `result`; dynamic value 0 is
/// the scale's bits.
#[derive(Debug)]
pub struct SoftmaxOperation;

/// The operation that [`Session::softmax_backward`] dispatches: operands `y`, `slope`, `result`;
/// dynamic value 0 is the scale's bits.
#[derive(Debug)]
pub struct SoftmaxBackwardOperation;

/// A softmax's parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct SoftmaxAttributes {
    /// Whether row r of a matrix sees only its first r + 1 columns, and those by which the matrix
    /// is wider than high; what is not seen becomes 0.
    pub causal: bool,
}

impl Operation for SoftmaxOperation {
    const NAME: &'static str = "softmax";
    type Attributes = SoftmaxAttributes;

    fn create(
        attributes: &SoftmaxAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        program(*attributes, &[operands.require(0)?], operands.require(1)?)
    }
}

impl Operation for SoftmaxBackwardOperation {
    const NAME: &'static str = "softmax_backward";
    type Attributes = SoftmaxAttributes;

    fn create(
        attributes: &SoftmaxAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let inputs = [operands.require(0)?, operands.require(1)?];
        program(*attributes, &inputs, operands.require(2)?)
    }
}

/// With one input the softmax, with two its gradient.
pub(crate) fn program(
    attributes: SoftmaxAttributes,
    inputs: &[&OperandSpec],
    result: &OperandSpec,
) -> Result<ProgramDescriptor<Argument>, FactoryError> {
    let name =
        if inputs.len() == 1 { SoftmaxOperation::NAME } else { SoftmaxBackwardOperation::NAME };
    check(name, "x", inputs[0])?;
    // A mask checks the row's number in its matrix.
    let extents =
        if attributes.causal { Extents::of(&result.shape) } else { with_rows_joined(result) };
    let blocks = Blocks::of_rows(extents, tiled(result));
    let mut words = blocks.words();
    words.extend([
        Argument::Word(u32::from(inputs.len() == 2)),
        Argument::Word(u32::from(attributes.causal)),
        Argument::Dynamic(DynamicIndex(0)),
    ]);
    let source = |(position, spec)| OperandSource::with_extents(position, spec, extents);
    let sources: Vec<OperandSource> = (0..).zip(inputs.iter().copied()).map(source).collect();
    let position = u16::try_from(inputs.len()).expect("one or two");
    let work = u64::from(blocks.block_elements()) * WORK_PER_ELEMENT;
    Ok(ProgramParts::new(blocks.share(1, work))
        .read_blocks(&blocks, &sources)
        .compute(SOFTMAX, words)
        .write_blocks(&blocks, &[source((position, result))], None)
        .program())
}

pub(crate) fn check(
    operation: &'static str,
    operand: &'static str,
    spec: &OperandSpec,
) -> Result<(), OperandRefusal> {
    Checked::numbers(operation, operand, spec)?.require_row(MAX_ROW_ELEMENTS)
}

// === impl Session ===

impl Session {
    /// The softmax of each row of `scale` times `x`. The scale changes no program.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, or its rows are longer than 16,384; or the dispatch
    /// fails.
    pub fn softmax(
        &self,
        attributes: SoftmaxAttributes,
        x: &Tensor,
        scale: f32,
    ) -> Result<Tensor, OperationError> {
        check("softmax", "x", x.spec())?;
        let result = self.result("softmax", x.spec().clone())?;
        let (operands, dynamics) = ([Some(x), Some(&result)], [scale.to_bits()]);
        match self.style() {
            Style::Automatic => {
                self.dispatch::<SoftmaxOperation>(&attributes, &operands, &dynamics)?;
            }
            Style::HandWritten => {
                self.dispatch::<HandWrittenSoftmax>(&attributes, &operands, &dynamics)?;
            }
        }
        Ok(result)
    }

    /// The gradient for `x` from the result `y` and the gradient for it, `slope`.
    ///
    /// # Errors
    /// As [`softmax`](Self::softmax), and when `slope` has another shape or layout than `y`.
    pub fn softmax_backward(
        &self,
        attributes: SoftmaxAttributes,
        y: &Tensor,
        slope: &Tensor,
        scale: f32,
    ) -> Result<Tensor, OperationError> {
        const NAME: &str = "softmax_backward";
        check(NAME, "y", y.spec())?;
        Checked::numbers(NAME, "slope", slope.spec())?.require_like(y.spec())?;
        let result = self.result(NAME, y.spec().clone())?;
        self.dispatch::<SoftmaxBackwardOperation>(
            &attributes,
            &[Some(y), Some(slope), Some(&result)],
            &[scale.to_bits()],
        )?;
        Ok(result)
    }
}
