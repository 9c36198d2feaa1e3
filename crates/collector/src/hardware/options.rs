//! What can be configured of the hardware sources.

use serde::{Deserialize, Serialize};

use super::{HostUse, NvmlUse};

/// The table `[hardware]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HardwareOptions {
    /// Whether NVIDIA's library is loaded and asked, where its driver is.
    pub nvml: bool,
    /// When the machine itself is shown as a device: `last_resort` (where there is no other one),
    /// `always` or `never`.
    pub host: HostUse,
}

impl Default for HardwareOptions {
    fn default() -> Self {
        Self { nvml: true, host: HostUse::default() }
    }
}

impl HardwareOptions {
    /// Which of NVIDIA's libraries is asked.
    pub fn nvml_use(&self) -> NvmlUse {
        if self.nvml { NvmlUse::OfThisMachine } else { NvmlUse::Never }
    }
}
