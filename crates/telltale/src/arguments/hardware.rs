//! The arguments of commands that read hardware themselves.

use clap::Args;
use telltale_collector::{CollectOptions, NvmlUse};

/// Which sources of devices are left alone.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct HardwareArguments {
    /// Do not load NVML, which opens the GPUs and keeps them awake (service: hardware.nvml)
    #[arg(long)]
    pub(crate) no_nvml: bool,
}

// === impl HardwareArguments ===

impl HardwareArguments {
    /// What is collected, without the sources that are left alone.
    pub(crate) fn limit(self, mut options: CollectOptions) -> CollectOptions {
        if self.no_nvml {
            options.nvml = NvmlUse::Never;
        }
        options
    }
}
