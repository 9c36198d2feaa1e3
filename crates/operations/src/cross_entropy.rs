//! Cross entropy of rows of logits with target columns, as the mean over all rows; and its gradient.

use telltale_program_cache::{
    Argument, DataFormat, DynamicIndex, FactoryError, Layout, OperandSpec, OperandSpecs, Operation,
    ProgramDescriptor, ProgramKey, Shape,
};

use crate::blocks::{Blocks, MAX_ROW_ELEMENTS};
use crate::error::{Checked, OperandRefusal};
use crate::program::{OperandSource, ProgramParts, SCRATCH, kernel_text};
use crate::reduce::Reduction;
use crate::rows::{one_column, tiled, with_rows_joined};
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const NAME: &str = "cross_entropy";
const CROSS_ENTROPY: (&str, &str) =
    ("cross_entropy", kernel_text!("tensor.h", "numbers.h", "cross_entropy.c"));

/// The operation behind [`Session::cross_entropy`] and its gradient: operands `logits`, `targets`,
/// `result`; dynamic value 0 is the bits of a factor of the result.
#[derive(Debug)]
pub struct CrossEntropyOperation;

/// A cross entropy's parameters beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct CrossEntropyAttributes {
    /// Whether the result is the gradient for the logits, not the loss of each row.
    pub backward: bool,
}

impl Operation for CrossEntropyOperation {
    const NAME: &'static str = NAME;
    type Attributes = CrossEntropyAttributes;

    fn create(
        attributes: &CrossEntropyAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (logits, targets) = (operands.require(0)?, operands.require(1)?);
        let result = operands.require(2)?;
        let extents = with_rows_joined(logits);
        let blocks = Blocks::of_rows(extents, tiled(logits));
        let single = one_column(extents);
        let sources = [
            OperandSource::with_extents(0, logits, extents),
            OperandSource::with_extents(1, targets, single).kept(),
        ];
        let mut words = blocks.words();
        words.push(Argument::Word(u32::from(attributes.backward)));
        words.push(Argument::Dynamic(DynamicIndex(0)));
        let shares = blocks.share(1, u64::from(blocks.block_elements()) * 2);
        let mut parts = ProgramParts::new(shares).read_blocks(&blocks, &sources);
        let target = if attributes.backward {
            OperandSource::with_extents(2, result, extents)
        } else {
            parts = parts.buffer(SCRATCH, blocks.block_columns, 1);
            OperandSource::with_extents(2, result, single)
        };
        Ok(parts.compute(CROSS_ENTROPY, words).write_blocks(&blocks, &[target], None).program())
    }
}

/// Checks both operands and gives the number of rows.
fn check(logits: &OperandSpec, targets: &OperandSpec) -> Result<u32, OperandRefusal> {
    let checked = Checked::numbers(NAME, "logits", logits)?;
    let Some((_, rows)) = logits.shape.split_last() else {
        return Err(checked.refusal("it is a scalar and has no rows".to_owned()));
    };
    checked.require_row(MAX_ROW_ELEMENTS)?;
    Checked::indices(NAME, "targets", targets)?.require_shape(rows)?;
    Ok(rows.iter().product())
}

// === impl Session ===

impl Session {
    /// The mean over all rows of the cross entropy of `logits` `[…, columns]` with `targets` `[…]`,
    /// whole numbers below `columns` (others give NaN), as a tensor `[1]` of Float32.
    ///
    /// # Errors
    /// When `logits` are not Float32 or BFloat16 or have rows longer than 16,384, or `targets` are
    /// not row-major UInt32 of that shape; or the dispatch fails.
    pub fn cross_entropy(
        &self,
        logits: &Tensor,
        targets: &Tensor,
    ) -> Result<Tensor, OperationError> {
        let rows = check(logits.spec(), targets.spec())?;
        let losses = self.result(
            NAME,
            OperandSpec {
                shape: Shape::from([rows, 1]),
                data_format: DataFormat::Float32,
                layout: Layout::RowMajor,
                memory: logits.spec().memory.clone(),
            },
        )?;
        self.dispatch::<CrossEntropyOperation>(
            &CrossEntropyAttributes { backward: false },
            &[Some(logits), Some(targets), Some(&losses)],
            &[1.0_f32.to_bits()],
        )?;
        let mean = self.reduce(Reduction::Mean, &losses, 0)?;
        self.reshape(&mean, &[1])
    }

    /// The gradient of that mean for the logits, times `slope`, which changes no program.
    ///
    /// # Errors
    /// As [`cross_entropy`](Self::cross_entropy).
    pub fn cross_entropy_backward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        slope: f32,
    ) -> Result<Tensor, OperationError> {
        let rows = check(logits.spec(), targets.spec())?;
        let result = self.result(NAME, logits.spec().clone())?;
        let factor = slope / rows as f32;
        self.dispatch::<CrossEntropyOperation>(
            &CrossEntropyAttributes { backward: true },
            &[Some(logits), Some(targets), Some(&result)],
            &[factor.to_bits()],
        )?;
        Ok(result)
    }
}
