//! What a model learns: its weights by name, in one order, with shape and initial values. The same
//! tree holds tensors, gradients or values.

use crate::alphabet::TOKENS;
use crate::config::Config;
use crate::random::{self, RandomStream};

/// Everything a model learns. `T` is what there is once for each weight.
#[derive(Debug, Clone)]
pub struct Weights<T> {
    /// For each token its place in the model's space; the logits use it as well.
    pub tokens: T,
    /// What is added for each place in the window.
    pub positions: T,
    /// The layers, first one first.
    pub layers: Vec<LayerWeights<T>>,
    /// The last layer norm.
    pub norm: Norm<T>,
}

/// What one layer learns.
#[derive(Debug, Clone)]
pub struct LayerWeights<T> {
    /// Before attention.
    pub attention_norm: Norm<T>,
    /// To queries, keys and values, in this order.
    pub attention_input: Linear<T>,
    /// From all heads back to the model's space.
    pub attention_output: Linear<T>,
    /// Before the feed-forward network.
    pub feed_norm: Norm<T>,
    /// To four times the width.
    pub feed_input: Linear<T>,
    /// Back again.
    pub feed_output: Linear<T>,
}

/// What a layer norm learns.
#[derive(Debug, Clone)]
pub struct Norm<T> {
    /// The factors.
    pub gamma: T,
    /// What is added.
    pub beta: T,
}

/// What a linear map learns.
#[derive(Debug, Clone)]
pub struct Linear<T> {
    /// The matrix, inputs by outputs.
    pub matrix: T,
    /// What is added.
    pub bias: T,
}

/// One weight, before there are values.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Its place in the model in words, such as `layers.0.attention_input.matrix`.
    pub name: String,
    /// Its place in the order.
    pub number: u32,
    /// Its sizes.
    pub shape: Vec<u32>,
    /// What it begins with.
    pub initial: Initial,
}

/// What a weight begins with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// The same number everywhere.
    All(f32),
    /// Random numbers, evenly from minus to plus this bound.
    Evenly(f32),
}

/// The feed-forward network's width over the model's, as in GPT-2.
pub(crate) const FEED_FACTOR: u32 = 4;
/// The bound of what tokens and positions begin with: a standard deviation of 0.02, as in GPT-2.
const EMBEDDING_BOUND: f32 = 0.034_641_016;

// === impl Weights ===

impl Weights<Weight> {
    /// The weights of a model.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mut naming = Naming { config: *config, next: 0 };
        let embedding = Initial::Evenly(EMBEDDING_BOUND);
        Self {
            tokens: naming.weight("tokens".to_owned(), &[TOKENS, config.width], embedding),
            positions: naming.weight(
                "positions".to_owned(),
                &[config.context, config.width],
                embedding,
            ),
            layers: (0..config.layers).map(|layer| naming.layer(layer)).collect(),
            norm: naming.norm("norm"),
        }
    }
}

impl<T> Weights<T> {
    /// All weights in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let layers = self.layers.iter().flat_map(LayerWeights::in_order);
        let norm = [&self.norm.gamma, &self.norm.beta];
        [&self.tokens, &self.positions].into_iter().chain(layers).chain(norm)
    }

    /// The same tree of something else, made in order.
    ///
    /// # Errors
    /// The first that `change` gives.
    pub fn try_map<U, E>(
        &self,
        mut change: impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Weights<U>, E> {
        let change = &mut change;
        Ok(Weights {
            tokens: change(&self.tokens)?,
            positions: change(&self.positions)?,
            layers: self
                .layers
                .iter()
                .map(|layer| layer.try_map(change))
                .collect::<Result<_, E>>()?,
            norm: self.norm.try_map(change)?,
        })
    }
}

// === impl LayerWeights ===

impl<T> LayerWeights<T> {
    fn in_order(&self) -> [&T; 12] {
        [
            &self.attention_norm.gamma,
            &self.attention_norm.beta,
            &self.attention_input.matrix,
            &self.attention_input.bias,
            &self.attention_output.matrix,
            &self.attention_output.bias,
            &self.feed_norm.gamma,
            &self.feed_norm.beta,
            &self.feed_input.matrix,
            &self.feed_input.bias,
            &self.feed_output.matrix,
            &self.feed_output.bias,
        ]
    }

    fn try_map<U, E>(
        &self,
        change: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<LayerWeights<U>, E> {
        Ok(LayerWeights {
            attention_norm: self.attention_norm.try_map(change)?,
            attention_input: self.attention_input.try_map(change)?,
            attention_output: self.attention_output.try_map(change)?,
            feed_norm: self.feed_norm.try_map(change)?,
            feed_input: self.feed_input.try_map(change)?,
            feed_output: self.feed_output.try_map(change)?,
        })
    }
}

impl<T> Norm<T> {
    fn try_map<U, E>(&self, change: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Norm<U>, E> {
        Ok(Norm { gamma: change(&self.gamma)?, beta: change(&self.beta)? })
    }
}

impl<T> Linear<T> {
    fn try_map<U, E>(&self, change: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Linear<U>, E> {
        Ok(Linear { matrix: change(&self.matrix)?, bias: change(&self.bias)? })
    }
}

// === impl Weight ===

impl Weight {
    /// How many numbers it has.
    #[must_use]
    pub fn element_count(&self) -> usize {
        self.shape.iter().map(|size| *size as usize).product()
    }

    /// Whether weight decay applies: to matrices, as is usual, not to biases and norms.
    #[must_use]
    pub fn decays(&self) -> bool {
        self.shape.len() > 1
    }

    /// What it begins with, for a seed.
    #[must_use]
    pub fn initial_values(&self, seed: u64) -> Vec<f32> {
        let count = self.element_count();
        match self.initial {
            Initial::All(value) => vec![value; count],
            Initial::Evenly(bound) => (0..count as u64)
                .map(|place| {
                    bound * random::signed_unit(seed, RandomStream::Weight(self.number), place)
                })
                .collect(),
        }
    }
}

/// Gives weights their names and numbers.
struct Naming {
    config: Config,
    next: u32,
}

impl Naming {
    fn weight(&mut self, name: String, shape: &[u32], initial: Initial) -> Weight {
        let number = self.next;
        self.next += 1;
        Weight { name, number, shape: shape.to_vec(), initial }
    }

    fn norm(&mut self, name: &str) -> Norm<Weight> {
        let shape = [self.config.width];
        Norm {
            gamma: self.weight(format!("{name}.gamma"), &shape, Initial::All(1.0)),
            beta: self.weight(format!("{name}.beta"), &shape, Initial::All(0.0)),
        }
    }

    /// A linear map whose results vary as much as its inputs, times `share`.
    fn linear(&mut self, name: &str, inputs: u32, outputs: u32, share: f32) -> Linear<Weight> {
        let initial = Initial::Evenly((3.0 / inputs as f32).sqrt() * share);
        Linear {
            matrix: self.weight(format!("{name}.matrix"), &[inputs, outputs], initial),
            bias: self.weight(format!("{name}.bias"), &[outputs], Initial::All(0.0)),
        }
    }

    fn layer(&mut self, number: u32) -> LayerWeights<Weight> {
        let name = |part: &str| format!("layers.{number}.{part}");
        let width = self.config.width;
        // Each layer adds to what goes by twice; together they should not drown it.
        let share = 1.0 / (2.0 * self.config.layers as f32).sqrt();
        LayerWeights {
            attention_norm: self.norm(&name("attention_norm")),
            attention_input: self.linear(&name("attention_input"), width, 3 * width, 1.0),
            attention_output: self.linear(&name("attention_output"), width, width, share),
            feed_norm: self.norm(&name("feed_norm")),
            feed_input: self.linear(&name("feed_input"), width, FEED_FACTOR * width, 1.0),
            feed_output: self.linear(&name("feed_output"), FEED_FACTOR * width, width, share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Initial, Weights};
    use crate::config::Config;

    #[test]
    fn order_numbers_and_mapping_agree() {
        let weights = Weights::of(&Config { layers: 2, ..Config::default() });
        let numbers: Vec<u32> = weights.iter().map(|weight| weight.number).collect();
        assert_eq!(numbers, (0..28).collect::<Vec<u32>>());
        let mut made = Vec::new();
        let mapped = weights.try_map(|weight| {
            made.push(weight.number);
            Ok::<_, ()>(weight.number)
        });
        assert_eq!(made, numbers, "made in order");
        assert_eq!(mapped.unwrap().iter().copied().collect::<Vec<_>>(), numbers);
    }

    #[test]
    fn initial_values_follow_from_seed_and_weight() {
        let weights = Weights::of(&Config::default());
        let [one, other] = [&weights.tokens, &weights.positions].map(|w| w.initial_values(1));
        assert_ne!(one[..8], other[..8]);
        assert_eq!(one, weights.tokens.initial_values(1));
        assert_ne!(one, weights.tokens.initial_values(2));
        let Initial::Evenly(bound) = weights.tokens.initial else { panic!() };
        assert!(one.iter().all(|value| value.abs() <= bound));
        assert!(weights.norm.gamma.initial_values(1).iter().all(|value| *value == 1.0));
    }
}
