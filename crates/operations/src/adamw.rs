//! AdamW: one step on one parameter, in place.

use telltale_program_cache::{
    Argument, DynamicIndex, FactoryError, OperandSpecs, Operation, ProgramDescriptor, ProgramKey,
};

use crate::blocks::Blocks;
use crate::collapse::Collapsed;
use crate::error::Checked;
use crate::program::{ProgramParts, kernel_text};
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const NAME: &str = "adamw";
const ADAMW: (&str, &str) = ("adamw", kernel_text!("tensor.h", "adamw.c"));

/// The operation that [`Session::adamw`] dispatches: operands `parameter`, `first`, `second`, all
/// three also results, and `gradient`; the dynamic values are six numbers, as bits: what is kept of
/// the parameter, both betas, the step's size, the root of the second correction, epsilon.
#[derive(Debug)]
pub struct AdamWOperation;

/// AdamW's program follows from its operands alone; all else changes from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct AdamWAttributes {}

/// The constants of AdamW (Loshchilov and Hutter, as in PyTorch). None of them is in a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// The learning rate.
    pub learning_rate: f32,
    /// How much of the first moment stays.
    pub beta1: f32,
    /// How much of the second moment stays.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// How much of a parameter is taken away, times the learning rate.
    pub weight_decay: f32,
}

/// A parameter with its moments.
#[derive(Debug, Clone, Copy)]
pub struct AdamWState<'a> {
    /// The parameter.
    pub parameter: &'a Tensor,
    /// The first moment, zeros before the first step.
    pub first: &'a Tensor,
    /// The second moment, likewise.
    pub second: &'a Tensor,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-2 }
    }
}

impl AdamW {
    /// The words of step `step`, counted from 1.
    fn words(&self, step: u32) -> [u32; 6] {
        let power = |base: f32| f64::from(base).powi(i32::try_from(step).unwrap_or(i32::MAX));
        let size = f64::from(self.learning_rate) / (1.0 - power(self.beta1));
        let root = (1.0 - power(self.beta2)).sqrt();
        let keep = 1.0 - f64::from(self.learning_rate) * f64::from(self.weight_decay);
        [keep as f32, self.beta1, self.beta2, size as f32, root as f32, self.epsilon]
            .map(f32::to_bits)
    }
}

impl Operation for AdamWOperation {
    const NAME: &'static str = NAME;
    type Attributes = AdamWAttributes;

    fn create(
        _: &AdamWAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let specs = [0, 1, 2, 3].map(|index| operands.require(index));
        let [parameter, first, second, gradient] = specs;
        let specs = [parameter?, first?, second?, gradient?];
        let collapsed = Collapsed::of(specs[0], &specs);
        let blocks = Blocks::of_elements(collapsed.extents, collapsed.tiled);
        let sources = [0, 1, 2, 3].map(|index| collapsed.input(index, specs[usize::from(index)]));
        let mut words = blocks.words();
        words.extend((0..6).map(|index| Argument::Dynamic(DynamicIndex(index))));
        Ok(ProgramParts::new(blocks.share(1, u64::from(blocks.block_elements()) * 2))
            .read_blocks(&blocks, &sources)
            .compute(ADAMW, words)
            .write_blocks(&blocks, &sources[..3], None)
            .program())
    }
}

// === impl Session ===

impl Session {
    /// One step, the `step`-th from 1: changes the parameter and both moments in place.
    ///
    /// # Errors
    /// When an operand is not Float32 or BFloat16, or has another shape than the parameter; or the
    /// dispatch fails.
    pub fn adamw(
        &self,
        constants: &AdamW,
        step: u32,
        state: AdamWState<'_>,
        gradient: &Tensor,
    ) -> Result<(), OperationError> {
        let AdamWState { parameter, first, second } = state;
        Checked::numbers(NAME, "parameter", parameter.spec())?;
        for (operand, tensor) in [("first", first), ("second", second), ("gradient", gradient)] {
            Checked::numbers(NAME, operand, tensor.spec())?.require_shape(parameter.shape())?;
        }
        self.dispatch::<AdamWOperation>(
            &AdamWAttributes {},
            &[Some(parameter), Some(first), Some(second), Some(gradient)],
            &constants.words(step.max(1)),
        )
    }
}
