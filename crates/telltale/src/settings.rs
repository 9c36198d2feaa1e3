//! What commands that collect by themselves take from the service's configuration.

use std::path::PathBuf;

use telltale_node::configuration::{ConfigurationError, Effective, Layers};
use telltale_schema::health::HealthSettings;
use telltale_schema::text::with_causes;

use crate::exit;

/// What the service would run with, were it started by this user now; `file` instead of its own files.
///
/// # Errors
/// What is wrong, with its place.
pub(crate) fn effective(file: Option<PathBuf>) -> Result<Effective, ConfigurationError> {
    Layers::of_this_process(file, Vec::new()).load()
}

/// The health rules of that configuration. Where it cannot be read, the rules are the program's, and
/// a line on standard error says so: what is wrong with the machine is still to be found.
pub(crate) fn health() -> HealthSettings {
    match effective(None) {
        Ok(effective) => effective.configuration.health.settings(),
        Err(error) => {
            warn(&error);
            HealthSettings::default()
        }
    }
}

/// Says that the configuration is not used, and its first fault.
pub(crate) fn warn(error: &ConfigurationError) {
    let words = with_causes(error);
    let fault = words.lines().next().unwrap_or_default();
    exit::tell(&format!(
        "telltale: built-in rules are used: {fault} (`telltale config check` reads all of it)"
    ));
}
