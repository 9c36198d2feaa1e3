//! What a device used of energy, and what its power can be limited to.

use serde::{Deserialize, Serialize};

use crate::reading::{Absence, Reading};

/// Energy and limits of power, where the driver reports them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Power {
    // From sensors.toml: fields of power.
    /// Energy that it used since its driver was loaded.
    pub energy_joules_total: Reading<f64>,
    /// The limit of its power that it starts with.
    pub power_limit_default_watts: Reading<f64>,
    /// The lowest limit that its power can be set to.
    pub power_limit_min_watts: Reading<f64>,
    /// The highest limit that its power can be set to.
    pub power_limit_max_watts: Reading<f64>,
    // End of these.
}

impl Power {
    /// Nothing is known of it, for one reason.
    pub fn absent(reason: Absence, detail: &str) -> Self {
        Self {
            // From sensors.toml: absences of power.
            energy_joules_total: Reading::absent(reason, detail),
            power_limit_default_watts: Reading::absent(reason, detail),
            power_limit_min_watts: Reading::absent(reason, detail),
            power_limit_max_watts: Reading::absent(reason, detail),
            // End of these.
        }
    }
}
