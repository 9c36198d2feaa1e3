//! Tensors one after the other along a dimension.

use telltale_program_cache::{
    Argument, FactoryError, OperandSpec, OperandSpecs, Operation, ProgramDescriptor, ProgramKey,
    Shape,
};

use crate::blocks::Blocks;
use crate::error::{Checked, OperandRefusal};
use crate::extents::{Extents, MAX_RANK};
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::rows::tiled;
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const NAME: &str = "concat";
const READ: (&str, &str) = ("concat", kernel_text!("tensor.h", "concat.c"));
/// Tensors that one concatenation takes.
pub const MAX_CONCAT: usize = 16;
/// What errors call them.
const NAMES: [&str; MAX_CONCAT] = [
    "inputs[0]",
    "inputs[1]",
    "inputs[2]",
    "inputs[3]",
    "inputs[4]",
    "inputs[5]",
    "inputs[6]",
    "inputs[7]",
    "inputs[8]",
    "inputs[9]",
    "inputs[10]",
    "inputs[11]",
    "inputs[12]",
    "inputs[13]",
    "inputs[14]",
    "inputs[15]",
];

/// The operation that [`Session::concat`] dispatches: the inputs, then `result`.
#[derive(Debug)]
pub struct ConcatOperation;

/// A concatenation's parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub struct ConcatAttributes {
    /// Along which dimension, counted from the first.
    pub dimension: u32,
}

impl Operation for ConcatOperation {
    const NAME: &'static str = NAME;
    type Attributes = ConcatAttributes;

    fn create(
        attributes: &ConcatAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let position = u16::try_from(operands.len()).unwrap_or(u16::MAX).saturating_sub(1);
        let result = operands.require(position)?;
        let missing = MAX_RANK - result.shape.len();
        let axis = attributes.dimension + u32::try_from(missing).expect("at most 4");
        let blocks = Blocks::of_elements(Extents::of(&result.shape), tiled(result));
        let mut words = blocks.words();
        words.extend([axis, u32::from(position)].map(Argument::Word));
        for index in 0..position {
            let input = operands.require(index)?;
            words.extend(OperandSource::new(index, input).tensor_words());
            let [outer, inner, ..] = Extents::of(&input.shape).0;
            words.extend([outer, inner].map(Argument::Word));
        }
        Ok(ProgramParts::new(blocks.share(1, u64::from(blocks.block_elements())))
            .reader(READ, words)
            .write_blocks(&blocks, &[OperandSource::new(position, result)], None)
            .program())
    }
}

fn result_of(inputs: &[&Tensor], dimension: usize) -> Result<OperandSpec, OperandRefusal> {
    let first = inputs[0];
    let rank = first.shape().len();
    let checked = Checked::numbers(NAME, NAMES[0], first.spec())?;
    checked.require(dimension < rank, || {
        format!("it has {rank} dimensions, so there is no dimension {dimension}")
    })?;
    let mut sizes = first.shape().to_vec();
    for (input, operand) in inputs.iter().zip(NAMES).skip(1) {
        let checked = Checked::numbers(NAME, operand, input.spec())?;
        let shape = input.shape();
        let fits = shape.len() == rank
            && (0..rank).all(|i| i == dimension || shape[i] == first.shape()[i]);
        checked.require(fits, || {
            format!("its shape {shape:?} does not continue {:?}", first.shape())
        })?;
        sizes[dimension] = sizes[dimension]
            .checked_add(shape[dimension])
            .ok_or_else(|| checked.refusal("the result is too large".to_owned()))?;
    }
    Ok(OperandSpec { shape: Shape::new(&sizes), ..first.spec().clone() })
}

// === impl Session ===

impl Session {
    /// One to [`MAX_CONCAT`] tensors after each other along `dimension`, in the format and layout
    /// of the first.
    ///
    /// # Errors
    /// When there is none or there are too many, one is not Float32 or BFloat16, or shapes differ
    /// elsewhere; or the dispatch fails.
    pub fn concat(&self, inputs: &[&Tensor], dimension: u32) -> Result<Tensor, OperationError> {
        if !(1..=MAX_CONCAT).contains(&inputs.len()) {
            let reason = format!("{} were given, not 1 to {MAX_CONCAT}", inputs.len());
            return Err(OperandRefusal { operation: NAME, operand: "inputs", reason }.into());
        }
        let result = self.result(NAME, result_of(inputs, dimension as usize)?)?;
        let mut operands: Vec<Option<&Tensor>> = inputs.iter().copied().map(Some).collect();
        operands.push(Some(&result));
        self.dispatch::<ConcatOperation>(&ConcatAttributes { dimension }, &operands, &[])?;
        Ok(result)
    }
}
