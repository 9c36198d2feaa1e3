//! The sizes of a model and its batches.

use crate::alphabet::TOKENS;

/// The most layers.
pub(crate) const MAX_LAYERS: u32 = 64;
/// The most of any other size.
pub(crate) const MAX_SIZE: u32 = 4096;
/// The most numbers in one tensor of a step.
const MAX_TENSOR: u64 = 1 << 28;

/// The sizes of a model and its batches. Any may be asked for; [`Config::check`] says what is not
/// possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Layers of attention and feed-forward network.
    pub layers: u32,
    /// Attention heads of a layer.
    pub heads: u32,
    /// Numbers that stand for a token between layers.
    pub width: u32,
    /// Tokens that are seen at once.
    pub context: u32,
    /// Windows of text in a step.
    pub batch: u32,
}

/// Sizes that make no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A size is 0 or too large.
    #[error("{name} is {value}; it must be from 1 to {most}")]
    Size {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u32,
        /// The most that is possible.
        most: u32,
    },
    /// The width is not shared evenly by the heads.
    #[error("a width of {width} cannot be divided among {heads} heads; choose a multiple of them")]
    Heads {
        /// The width.
        width: u32,
        /// The heads.
        heads: u32,
    },
    /// A step would need a tensor of too many numbers.
    #[error("these sizes need a tensor of {numbers} numbers; at most {MAX_TENSOR} are possible")]
    TooLarge {
        /// How many.
        numbers: u64,
    },
}

impl Default for Config {
    /// A model that takes about a tenth of a second for a step on one core.
    fn default() -> Self {
        Self { layers: 2, heads: 4, width: 128, context: 64, batch: 8 }
    }
}

impl Config {
    /// The sizes by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u32); 5] {
        [
            ("layers", self.layers),
            ("heads", self.heads),
            ("width", self.width),
            ("context", self.context),
            ("batch", self.batch),
        ]
    }

    /// Whether these sizes make a model.
    ///
    /// # Errors
    /// The first size that does not.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in self.named() {
            let most = if name == "layers" { MAX_LAYERS } else { MAX_SIZE };
            if !(1..=most).contains(&value) {
                return Err(ConfigError::Size { name, value, most });
            }
        }
        let Self { heads, width, context, batch, .. } = *self;
        if !width.is_multiple_of(heads) {
            return Err(ConfigError::Heads { width, heads });
        }
        let [heads, width, context] = [heads, width, context].map(u64::from);
        let rows = u64::from(batch) * context;
        let largest = [rows * 4 * width, rows * heads * context, rows * u64::from(TOKENS)];
        match largest.into_iter().max() {
            Some(numbers) if numbers > MAX_TENSOR => Err(ConfigError::TooLarge { numbers }),
            _ => Ok(()),
        }
    }

    /// Tokens that a step learns from.
    #[must_use]
    pub fn tokens_in_step(&self) -> u32 {
        self.batch * self.context
    }

    /// Numbers of a token that one head sees.
    pub(crate) fn head_width(&self) -> u32 {
        self.width / self.heads
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, MAX_LAYERS, MAX_SIZE};

    #[test]
    fn sizes_that_make_no_model_are_named() {
        let usual = Config::default();
        assert_eq!(usual.check(), Ok(()));
        let cases = [
            (Config { layers: 0, ..usual }, "layers is 0; it must be from 1 to 64"),
            (Config { layers: MAX_LAYERS + 1, ..usual }, "layers is 65"),
            (Config { batch: MAX_SIZE + 1, ..usual }, "batch is 4097"),
            (Config { heads: 3, ..usual }, "a width of 128 cannot be divided among 3 heads"),
            (Config { batch: MAX_SIZE, context: MAX_SIZE, ..usual }, "need a tensor of"),
        ];
        for (config, words) in cases {
            let error = config.check().expect_err(words).to_string();
            assert!(error.starts_with(words) || error.contains(words), "{error}");
        }
    }
}
