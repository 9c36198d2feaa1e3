//! What the environment asks of the default consumer.

use std::ffi::OsString;
use std::path::PathBuf;

use telltale_debug_stream::sink::Saved;

/// The variable with the directory; without it there is no default consumer.
pub const DIRECTORY_VARIABLE: &str = "NEURON_RT_DEBUG_OUTPUT_DIR";
/// The variable that asks for bytes alone.
pub const SAVE_BINARY_VARIABLE: &str = "NEURON_RT_DEBUG_SAVE_BINARY";

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputSettings {
    pub(super) directory: PathBuf,
    pub(super) saved: Saved,
}

impl OutputSettings {
    /// What the variables say, if they ask for a consumer at all, and what is wrong with them.
    pub(super) fn read(variable: impl Fn(&str) -> Option<OsString>) -> (Option<Self>, Vec<String>) {
        let Some(directory) = variable(DIRECTORY_VARIABLE).filter(|value| !value.is_empty()) else {
            return (None, Vec::new());
        };
        let mut problems = Vec::new();
        let saved = match variable(SAVE_BINARY_VARIABLE) {
            None => Saved::BytesAndText,
            Some(value) if value.is_empty() || value == "0" => Saved::BytesAndText,
            Some(value) if value == "1" => Saved::Bytes,
            Some(value) => {
                problems.push(format!(
                    "{SAVE_BINARY_VARIABLE} is {value:?}, which is neither 0 nor 1; texts are \
                     saved beside the bytes"
                ));
                Saved::BytesAndText
            }
        };
        // A program that changes its directory later goes on in the same place.
        let directory = std::path::absolute(&directory).unwrap_or_else(|_| directory.into());
        (Some(Self { directory, saved }), problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_switches_it_on_and_binary_is_0_or_1() {
        let bytes = Some(Saved::Bytes);
        let text = Some(Saved::BytesAndText);
        for (directory, binary, expected, problems) in [
            (None, Some("1"), None, 0),
            (Some(""), None, None, 0),
            (Some("/d"), None, text, 0),
            (Some("/d"), Some("0"), text, 0),
            (Some("/d"), Some(""), text, 0),
            (Some("/d"), Some("1"), bytes, 0),
            (Some("/d"), Some("yes"), text, 1),
        ] {
            let lookup = |name: &str| {
                let value = if name == DIRECTORY_VARIABLE { directory } else { binary };
                value.map(OsString::from)
            };
            let (settings, found) = OutputSettings::read(lookup);
            assert_eq!(settings.as_ref().map(|settings| settings.saved), expected, "{binary:?}");
            assert_eq!(found.len(), problems, "{binary:?}");
            assert!(settings.is_none_or(|settings| settings.directory.to_str() == Some("/d")));
        }
        let (settings, _) =
            OutputSettings::read(|name| (name == DIRECTORY_VARIABLE).then(|| "d".into()));
        assert!(settings.unwrap().directory.is_absolute());
    }
}
