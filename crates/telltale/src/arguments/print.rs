//! What a training step is to print: `--print 0.gelu:every=3`.

use std::num::NonZeroU64;
use std::str::FromStr;

use telltale_gpt::{Activation, Config};

use crate::exit::Failure;

/// An activation to print, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Print {
    pub(crate) activation: Activation,
    pub(crate) every: NonZeroU64,
}

// === impl Print ===

impl Print {
    /// Says so if a model of these sizes has no such activation.
    pub(crate) fn check(self, config: &Config) -> Result<(), Failure> {
        if self.activation.is_in(config) {
            return Ok(());
        }
        let (activation, layers) = (self.activation, config.layers);
        Err(Failure::Message(format!(
            "{activation} cannot be printed: the model has {layers} layers, counted from 0; choose \
             one of them with --print"
        )))
    }

    /// Whether this step prints it; they are counted from 1.
    pub(crate) fn is_due(self, step: u64) -> bool {
        step.saturating_sub(1).is_multiple_of(self.every.get())
    }
}

impl FromStr for Print {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, every) = match text.split_once(":every=") {
            None => (text, Some(NonZeroU64::MIN)),
            Some((name, every)) => (name, every.parse().ok()),
        };
        let every = every.ok_or("`every` is a whole number of steps, at least 1")?;
        let activation = name.parse::<Activation>().map_err(|error| error.to_string())?;
        Ok(Self { activation, every })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_how_often_is_one_word() {
        let every = |text: &str| text.parse::<Print>().map(|print| print.every.get());
        assert_eq!(every("0.gelu"), Ok(1));
        assert_eq!(every("logits:every=10"), Ok(10));
        for bad in ["0.gelu:every=0", "0.gelu:every=", "0.gelu:every=-1", "0.gelu:10", "gelu", ""] {
            assert!(every(bad).is_err(), "{bad}");
        }
        let print: Print = "0.gelu:every=3".parse().unwrap();
        let due: Vec<u64> = (1..=9).filter(|step| print.is_due(*step)).collect();
        assert_eq!(due, [1, 4, 7]);
    }
}
