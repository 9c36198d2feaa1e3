//! The model: tokens to a loss, and a gradient for each weight.
//!
//! GPT-2's shape (layer norm first, GELU in its tanh form, the token table used again for the
//! logits) without dropout.

use telltale_operations::{Binary, LayerNorm, OperationError, Reduction, Session, Tensor};

use crate::activation::Activations;
use crate::alphabet::TOKENS;
use crate::config::Config;
use crate::layer::{self, Layer};
use crate::linear::{LEFT, PLAIN, RIGHT};
use crate::training::Batch;
use crate::weights::Weights;

/// A gradient for each weight.
pub type Gradients = Weights<Tensor>;

/// What the way back needs.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) layers: Vec<Layer>,
    /// What the last layer gave.
    pub(crate) rows: Tensor,
    pub(crate) norm: LayerNorm,
    pub(crate) logits: Tensor,
}

/// The mean loss of a batch, as a tensor `[1]`.
///
/// # Errors
/// When an operation fails.
pub fn forward(
    session: &Session,
    config: &Config,
    weights: &Weights<Tensor>,
    batch: &Batch,
) -> Result<Tensor, OperationError> {
    let forward = run(session, config, weights, batch)?;
    session.cross_entropy(&forward.logits, batch.targets())
}

/// The mean loss of a batch, as a tensor `[1]`, and the gradient of `share` times it for each weight.
/// In between, `look` is shown what was computed; operations that it dispatches must change none of
/// it.
///
/// # Errors
/// When an operation or `look` fails.
pub fn forward_and_backward(
    session: &Session,
    config: &Config,
    weights: &Weights<Tensor>,
    batch: &Batch,
    share: f32,
    inspect: impl FnOnce(&Activations<'_>) -> Result<(), OperationError>,
) -> Result<(Tensor, Gradients), OperationError> {
    let mut forward = run(session, config, weights, batch)?;
    inspect(&Activations(&forward))?;
    let loss = session.cross_entropy(&forward.logits, batch.targets())?;
    let for_logits = session.cross_entropy_backward(&forward.logits, batch.targets(), share)?;
    let for_normed = session.matmul(PLAIN, &for_logits, &weights.tokens, None)?;
    let tokens = session.matmul(LEFT, &for_logits, &forward.norm.y, None)?;
    let (mut slope, norm) =
        layer::norm_backward(session, &weights.norm, &forward.rows, &forward.norm, &for_normed)?;
    let mut layers = Vec::with_capacity(weights.layers.len());
    for weights in weights.layers.iter().rev() {
        // Taken, so that what a layer kept is given back as soon as it is used.
        let kept = forward.layers.pop().expect("as many layers as weights");
        let (for_rows, gradients) = layer::backward(session, config, weights, &kept, &slope)?;
        layers.push(gradients);
        slope = for_rows;
    }
    layers.reverse();
    let Config { width, context, batch: windows, .. } = *config;
    let slope = session.reshape(&slope, &[windows, context, width])?;
    let positions = session.reduce(Reduction::Sum, &slope, 0)?;
    let positions = session.reshape(&positions, &[context, width])?;
    let seen = session.embedding_backward(batch.inputs(), &slope, TOKENS)?;
    let tokens = session.binary(Binary::Add, &seen, &tokens)?;
    Ok((loss, Weights { tokens, positions, layers, norm }))
}

fn run(
    session: &Session,
    config: &Config,
    weights: &Weights<Tensor>,
    batch: &Batch,
) -> Result<Forward, OperationError> {
    let rows = session.embedding(batch.inputs(), &weights.tokens)?;
    let rows = session.binary(Binary::Add, &rows, &weights.positions)?;
    let mut rows = session.reshape(&rows, &[config.tokens_in_step(), config.width])?;
    let mut layers = Vec::with_capacity(weights.layers.len());
    for weights in &weights.layers {
        let (result, kept) = layer::forward(session, config, weights, rows)?;
        layers.push(kept);
        rows = result;
    }
    let norm = layer::norm(session, &weights.norm, &rows)?;
    let logits = session.matmul(RIGHT, &norm.y, &weights.tokens, None)?;
    Ok(Forward { layers, rows, norm, logits })
}
