//! One layer: attention and a feed-forward network, each after a layer norm and beside a way past
//! it.

use telltale_operations::{
    Binary, LayerNorm, LayerNormGradients, OperationError, Session, Tensor, Unary,
};

use crate::activation::LayerActivation;
use crate::attention::{self, Attention, AttentionGradients};
use crate::config::Config;
use crate::linear;
use crate::weights::{LayerWeights, Norm};

/// Added to the variance in layer norms, as in GPT-2.
pub(crate) const EPSILON: f32 = 1e-5;

/// What the way back needs.
#[derive(Debug)]
pub(crate) struct Layer {
    rows: Tensor,
    attention_norm: LayerNorm,
    attention: Attention,
    /// The rows after attention.
    between: Tensor,
    feed_norm: LayerNorm,
    /// The feed-forward network before and after its GELU.
    wide: Tensor,
    bent: Tensor,
}

impl Layer {
    /// The tensor that is called so.
    pub(crate) fn activation(&self, which: LayerActivation) -> &Tensor {
        match which {
            LayerActivation::Input => &self.rows,
            LayerActivation::AttentionNorm => &self.attention_norm.y,
            LayerActivation::Queries => &self.attention.queries,
            LayerActivation::Keys => &self.attention.keys,
            LayerActivation::Values => &self.attention.values,
            LayerActivation::Shares => &self.attention.shares,
            LayerActivation::Found => &self.attention.found,
            LayerActivation::Between => &self.between,
            LayerActivation::FeedNorm => &self.feed_norm.y,
            LayerActivation::Wide => &self.wide,
            LayerActivation::Gelu => &self.bent,
        }
    }
}

/// The layer norm of rows.
pub(crate) fn norm(
    session: &Session,
    weights: &Norm<Tensor>,
    rows: &Tensor,
) -> Result<LayerNorm, OperationError> {
    session.layer_norm(rows, &weights.gamma, &weights.beta, EPSILON)
}

/// The gradients of a layer norm: for its rows, and for its weights.
pub(crate) fn norm_backward(
    session: &Session,
    weights: &Norm<Tensor>,
    rows: &Tensor,
    forward: &LayerNorm,
    slope: &Tensor,
) -> Result<(Tensor, Norm<Tensor>), OperationError> {
    let LayerNormGradients { x, gamma, beta } =
        session.layer_norm_backward(rows, &weights.gamma, forward, slope)?;
    Ok((x, Norm { gamma, beta }))
}

/// `rows` `[rows, width]` to the same shape.
pub(crate) fn forward(
    session: &Session,
    config: &Config,
    weights: &LayerWeights<Tensor>,
    rows: Tensor,
) -> Result<(Tensor, Layer), OperationError> {
    let attention_norm = norm(session, &weights.attention_norm, &rows)?;
    let (found, attention) = attention::forward(session, config, weights, &attention_norm.y)?;
    let between = session.binary(Binary::Add, &rows, &found)?;
    let feed_norm = norm(session, &weights.feed_norm, &between)?;
    let wide = linear::forward(session, &weights.feed_input, &feed_norm.y)?;
    let bent = session.unary(Unary::Gelu, &wide, 0.0)?;
    let fed = linear::forward(session, &weights.feed_output, &bent)?;
    let result = session.binary(Binary::Add, &between, &fed)?;
    Ok((result, Layer { rows, attention_norm, attention, between, feed_norm, wide, bent }))
}

/// The gradients for the rows and the weights, from that for the result.
pub(crate) fn backward(
    session: &Session,
    config: &Config,
    weights: &LayerWeights<Tensor>,
    forward: &Layer,
    slope: &Tensor,
) -> Result<(Tensor, LayerWeights<Tensor>), OperationError> {
    let Layer { rows, attention_norm, attention, between, feed_norm, wide, bent } = forward;
    let (for_bent, feed_output) = linear::backward(session, &weights.feed_output, bent, slope)?;
    let for_wide = session.binary(Binary::GeluSlope, wide, &for_bent)?;
    let (for_normed, feed_input) =
        linear::backward(session, &weights.feed_input, &feed_norm.y, &for_wide)?;
    let (for_between, feed_norm) =
        norm_backward(session, &weights.feed_norm, between, feed_norm, &for_normed)?;
    let slope = session.binary(Binary::Add, slope, &for_between)?;
    let AttentionGradients { for_rows, input, output } =
        attention::backward(session, config, weights, &attention_norm.y, attention, &slope)?;
    let (for_rows, attention_norm) =
        norm_backward(session, &weights.attention_norm, rows, attention_norm, &for_rows)?;
    let for_rows = session.binary(Binary::Add, &slope, &for_rows)?;
    let gradients = LayerWeights {
        attention_norm,
        attention_input: input,
        attention_output: output,
        feed_norm,
        feed_input,
        feed_output,
    };
    Ok((for_rows, gradients))
}
