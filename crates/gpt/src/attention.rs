//! Causal attention of several heads, from the normed rows of a layer to what it adds to them, and
//! back.

use telltale_operations::{OperationError, Session, SoftmaxAttributes, Tensor};

use crate::config::Config;
use crate::linear::{self, LEFT, PLAIN, RIGHT};
use crate::weights::{LayerWeights, Linear};

const CAUSAL: SoftmaxAttributes = SoftmaxAttributes { causal: true };
/// Rows of a head beside each other, instead of heads of a row; and back, for it is its own inverse.
const HEADS_FIRST: [usize; 4] = [0, 2, 1, 3];

/// What the way back needs. Queries, keys and values are `[batch, heads, context, head width]`.
#[derive(Debug)]
pub(crate) struct Attention {
    pub(crate) queries: Tensor,
    pub(crate) keys: Tensor,
    pub(crate) values: Tensor,
    /// How much each token sees of each other one: `[batch, heads, context, context]`.
    pub(crate) shares: Tensor,
    /// What all heads found: `[rows, width]`.
    pub(crate) found: Tensor,
}

/// The gradients of attention.
pub(crate) struct AttentionGradients {
    pub(crate) for_rows: Tensor,
    pub(crate) input: Linear<Tensor>,
    pub(crate) output: Linear<Tensor>,
}

/// What scores are multiplied with, so that they vary as much as their factors.
fn scale(config: &Config) -> f32 {
    1.0 / (config.head_width() as f32).sqrt()
}

/// What attention finds in `rows` `[rows, width]`.
pub(crate) fn forward(
    session: &Session,
    config: &Config,
    weights: &LayerWeights<Tensor>,
    rows: &Tensor,
) -> Result<(Tensor, Attention), OperationError> {
    let Config { heads, width, context, batch, .. } = *config;
    let head_width = config.head_width();
    let all = linear::forward(session, &weights.attention_input, rows)?;
    let all = session.reshape(&all, &[batch, context, 3 * heads, head_width])?;
    let all = session.permute(&all, &HEADS_FIRST)?;
    let part = |from: u32| {
        let ends = [batch, from + heads, context, head_width];
        session.slice(&all, &[0, from, 0, 0], &ends)
    };
    let (queries, keys, values) = (part(0)?, part(heads)?, part(2 * heads)?);
    let scores = session.matmul(RIGHT, &queries, &keys, None)?;
    let shares = session.softmax(CAUSAL, &scores, scale(config))?;
    let found = session.matmul(PLAIN, &shares, &values, None)?;
    let found = session.permute(&found, &HEADS_FIRST)?;
    let found = session.reshape(&found, &[batch * context, width])?;
    let result = linear::forward(session, &weights.attention_output, &found)?;
    Ok((result, Attention { queries, keys, values, shares, found }))
}

/// The gradients, from that for what attention found.
pub(crate) fn backward(
    session: &Session,
    config: &Config,
    weights: &LayerWeights<Tensor>,
    rows: &Tensor,
    forward: &Attention,
    slope: &Tensor,
) -> Result<AttentionGradients, OperationError> {
    let Config { heads, width, context, batch, .. } = *config;
    let Attention { queries, keys, values, shares, found } = forward;
    let (for_found, output) = linear::backward(session, &weights.attention_output, found, slope)?;
    let for_found = session.reshape(&for_found, &[batch, context, heads, config.head_width()])?;
    let for_found = session.permute(&for_found, &HEADS_FIRST)?;
    let for_shares = session.matmul(RIGHT, &for_found, values, None)?;
    let for_values = session.matmul(LEFT, shares, &for_found, None)?;
    let for_scores = session.softmax_backward(CAUSAL, shares, &for_shares, scale(config))?;
    let for_queries = session.matmul(PLAIN, &for_scores, keys, None)?;
    let for_keys = session.matmul(LEFT, &for_scores, queries, None)?;
    let for_all = session.concat(&[&for_queries, &for_keys, &for_values], 1)?;
    let for_all = session.permute(&for_all, &HEADS_FIRST)?;
    let for_all = session.reshape(&for_all, &[batch * context, 3 * width])?;
    let (for_rows, input) = linear::backward(session, &weights.attention_input, rows, &for_all)?;
    Ok(AttentionGradients { for_rows, input, output })
}
