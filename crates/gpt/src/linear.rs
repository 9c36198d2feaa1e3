//! A linear map of rows, forward and backward.

use telltale_operations::{MatmulAttributes, OperationError, Reduction, Session, Tensor};

use crate::weights::Linear;

/// The operands as they are.
pub(crate) const PLAIN: MatmulAttributes = attributes(false, false);
/// The left operand transposed.
pub(crate) const LEFT: MatmulAttributes = attributes(true, false);
/// The right operand transposed.
pub(crate) const RIGHT: MatmulAttributes = attributes(false, true);

const fn attributes(a_transposed: bool, b_transposed: bool) -> MatmulAttributes {
    MatmulAttributes {
        a_transposed,
        b_transposed,
        factory: telltale_operations::MatmulFactory::Automatic,
    }
}

/// `input` `[rows, inputs]` to `[rows, outputs]`.
pub(crate) fn forward(
    session: &Session,
    weights: &Linear<Tensor>,
    input: &Tensor,
) -> Result<Tensor, OperationError> {
    session.matmul(PLAIN, input, &weights.matrix, Some(&weights.bias))
}

/// The gradients for the input and the weights, from that for the output.
pub(crate) fn backward(
    session: &Session,
    weights: &Linear<Tensor>,
    input: &Tensor,
    slope: &Tensor,
) -> Result<(Tensor, Linear<Tensor>), OperationError> {
    let for_input = session.matmul(RIGHT, slope, &weights.matrix, None)?;
    let matrix = session.matmul(LEFT, input, slope, None)?;
    let bias = session.reduce(Reduction::Sum, slope, 0)?;
    let bias = session.reshape(&bias, weights.bias.shape())?;
    Ok((for_input, Linear { matrix, bias }))
}
