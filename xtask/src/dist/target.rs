//! What packages are made for.

use std::str::FromStr;

/// The oldest glibc that what is shipped runs with: of 2018, so that distributions since 2019 have it.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// A processor, with Linux and glibc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// x86-64.
    X86_64,
    /// AArch64, as in Grace and Graviton hosts.
    Aarch64,
}

// === impl Target ===

impl Target {
    /// The one that this program runs on, if it is one of these.
    #[must_use]
    pub fn host() -> Option<Self> {
        std::env::consts::ARCH.parse().ok()
    }

    /// Its name among Rust's targets.
    #[must_use]
    pub const fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The processor, as Debian calls it.
    #[must_use]
    pub const fn debian_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The processor, as all other packages call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "x86_64" => Ok(Self::X86_64),
            "aarch64" => Ok(Self::Aarch64),
            _ => Err(format!("packages are made for x86_64 and aarch64, not for {text}")),
        }
    }
}
