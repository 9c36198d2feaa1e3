//! What a step computes on its way to the loss, by name, for inspection.

use std::fmt;
use std::str::FromStr;

use telltale_operations::Tensor;

use crate::config::Config;
use crate::model::Forward;

/// A tensor of the way to the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// In the layer with this number, from 0.
    OfLayer(u32, LayerActivation),
    /// Behind the last layer.
    OfModel(ModelActivation),
}

/// A tensor in a layer. Rows are those of all windows, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerActivation {
    /// What the layer gets: `[rows, width]`.
    Input,
    /// The same behind attention's layer norm.
    AttentionNorm,
    /// `[batch, heads, context, head width]`, as keys and values.
    Queries,
    /// What queries are compared with.
    Keys,
    /// What attention takes its shares of.
    Values,
    /// How much each token sees of each other one: `[batch, heads, context, context]`.
    Shares,
    /// What all heads found: `[rows, width]`.
    Found,
    /// The rows after attention.
    Between,
    /// The same behind the feed-forward network's layer norm.
    FeedNorm,
    /// The feed-forward network before its GELU: `[rows, 4 × width]`.
    Wide,
    /// And after it.
    Gelu,
}

/// A tensor behind the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelActivation {
    /// What the last layer gave: `[rows, width]`.
    Output,
    /// The same behind the last layer norm.
    Norm,
    /// `[rows, tokens]`.
    Logits,
}

/// A text that names no activation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is neither LAYER.NAME with a name of {} nor one of {}", names(&LAYER), names(&MODEL))]
pub struct ParseActivationError {
    text: String,
}

/// The tensors of one step between its way to the loss and its way back.
#[derive(Debug, Clone, Copy)]
pub struct Activations<'step>(pub(crate) &'step Forward);

const LAYER: [(&str, LayerActivation); 11] = [
    ("input", LayerActivation::Input),
    ("attention_norm", LayerActivation::AttentionNorm),
    ("queries", LayerActivation::Queries),
    ("keys", LayerActivation::Keys),
    ("values", LayerActivation::Values),
    ("shares", LayerActivation::Shares),
    ("found", LayerActivation::Found),
    ("between", LayerActivation::Between),
    ("feed_norm", LayerActivation::FeedNorm),
    ("wide", LayerActivation::Wide),
    ("gelu", LayerActivation::Gelu),
];
const MODEL: [(&str, ModelActivation); 3] = [
    ("output", ModelActivation::Output),
    ("norm", ModelActivation::Norm),
    ("logits", ModelActivation::Logits),
];

fn names<T>(all: &[(&str, T)]) -> String {
    all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn find<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    all.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
}

fn name_of<T: PartialEq>(all: &[(&'static str, T)], wanted: &T) -> &'static str {
    let found = all.iter().find(|(_, known)| known == wanted);
    found.map(|(name, _)| *name).expect("each activation has a name")
}

// === impl Activation ===

impl Activation {
    /// Whether a model of these sizes has it.
    #[must_use]
    pub fn is_in(&self, config: &Config) -> bool {
        match self {
            Self::OfLayer(layer, _) => *layer < config.layers,
            Self::OfModel(_) => true,
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfLayer(layer, which) => {
                write!(formatter, "{layer}.{}", name_of(&LAYER, which))
            }
            Self::OfModel(which) => formatter.write_str(name_of(&MODEL, which)),
        }
    }
}

impl FromStr for Activation {
    type Err = ParseActivationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = match text.split_once('.') {
            Some((layer, name)) => {
                let layer = layer.parse().ok();
                layer.zip(find(&LAYER, name)).map(|(layer, which)| Self::OfLayer(layer, which))
            }
            None => find(&MODEL, text).map(Self::OfModel),
        };
        found.ok_or_else(|| ParseActivationError { text: text.to_owned() })
    }
}

// === impl Activations ===

impl<'step> Activations<'step> {
    /// The tensor; none where the model has no such layer.
    #[must_use]
    pub fn get(&self, which: Activation) -> Option<&'step Tensor> {
        match which {
            Activation::OfLayer(layer, which) => {
                Some(self.0.layers.get(usize::try_from(layer).ok()?)?.activation(which))
            }
            Activation::OfModel(ModelActivation::Output) => Some(&self.0.rows),
            Activation::OfModel(ModelActivation::Norm) => Some(&self.0.norm.y),
            Activation::OfModel(ModelActivation::Logits) => Some(&self.0.logits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_others_refused() {
        let layer = LAYER.iter().map(|(_, which)| Activation::OfLayer(7, *which));
        let model = MODEL.iter().map(|(_, which)| Activation::OfModel(*which));
        for activation in layer.chain(model) {
            assert_eq!(activation.to_string().parse(), Ok(activation));
        }
        assert_eq!("0.gelu".parse(), Ok(Activation::OfLayer(0, LayerActivation::Gelu)));
        for bad in ["", ".", "gelu", "0.logits", "-1.gelu", "0.gelu ", "x.gelu", "0.0.gelu"] {
            let error = bad.parse::<Activation>().unwrap_err().to_string();
            assert!(error.contains("input, attention_norm") && error.contains("output, norm"));
        }
    }
}
