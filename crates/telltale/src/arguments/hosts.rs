//! The arguments that name several machines, and by what right they are asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_sources::{ClientTlsFiles, HostItem};

use super::seconds;

/// What follows `--hosts`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostsArguments {
    /// Show several hosts: NAME, NAME:PORT, ADDRESS:PORT or unix:PATH of a service (default port
    /// 9436), ssh://NAME or ssh://USER@NAME:PORT, @FILE with one per line; separated by commas
    #[arg(long = "hosts", value_name = "HOSTS", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["root", "runtime_dir", "no_nvml"])]
    pub(crate) items: Vec<HostItem>,
    /// File with the services' token; sent by TLS or within this host only
    #[arg(long, value_name = "FILE", requires = "items")]
    pub(crate) token_file: Option<PathBuf>,
    /// Use TLS and verify services against the authority in FILE (PEM)
    #[arg(long, value_name = "FILE", requires = "items")]
    authority: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Timeout per host, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) timeout: Duration,
}

// === impl HostsArguments ===

impl HostsArguments {
    /// The files for TLS, if it is wanted.
    pub(crate) fn tls(&self) -> Option<ClientTlsFiles> {
        let authority = self.authority.clone()?;
        Some(ClientTlsFiles { authority, identity: self.certificate.clone().zip(self.key.clone()) })
    }
}
