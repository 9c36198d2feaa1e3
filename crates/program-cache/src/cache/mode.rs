//! Whether programs are cached, not cached, or cached and checked.
//!
//! The choice is read once, when a cache is made; nothing here checks the environment later.

use std::env;
use std::fmt;
use std::str::FromStr;

/// The variable that [`CacheMode::from_environment`] reads.
pub const MODE_VARIABLE: &str = "TELLTALE_PROGRAM_CACHE";

/// What a cache does with the programs it is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Programs are kept and found again.
    #[default]
    On,
    /// Each program is recompiled, which rules the cache out as the cause of a wrong result.
    Off,
    /// As [`CacheMode::On`], and each hit is compared with a descriptor that is rebuilt.
    Check,
}

/// The variable has a value that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{MODE_VARIABLE} is {found:?}: set it to `on` (programs are cached), `off` (each is  \
     recompiled) or `check` (cached, and each hit is compared with a rebuilt descriptor), or unset it"
)]
pub struct ModeError {
    /// The value; characters that are not Unicode are replaced.
    pub found: String,
}

impl CacheMode {
    /// The mode that `TELLTALE_PROGRAM_CACHE` names; [`CacheMode::On`] if it is unset or empty.
    ///
    /// # Errors
    /// When it has another value than `on`, `off` or `check`.
    pub fn from_environment() -> Result<Self, ModeError> {
        match env::var_os(MODE_VARIABLE) {
            None => Ok(Self::On),
            Some(value) if value.is_empty() => Ok(Self::On),
            Some(value) => value.to_string_lossy().parse(),
        }
    }
}

impl FromStr for CacheMode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            "check" => Ok(Self::Check),
            other => Err(ModeError { found: other.to_owned() }),
        }
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Check => "check",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CacheMode;

    #[test]
    fn each_mode_is_read_as_it_is_written() {
        for mode in [CacheMode::On, CacheMode::Off, CacheMode::Check] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
    }

    #[test]
    fn another_value_is_refused_with_those_that_are_known() {
        let error = "yes".parse::<CacheMode>().expect_err("it is not a mode").to_string();
        for word in ["TELLTALE_PROGRAM_CACHE", "\"yes\"", "`on`", "`off`", "`check`"] {
            assert!(error.contains(word), "{error} lacks {word}");
        }
    }
}
