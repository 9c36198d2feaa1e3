//! The arguments that name several machines, and by what right they are asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_node::grpc::TlsToPort;

use super::seconds;
use crate::addresses::HostItem;

/// What follows `--hosts`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostsArguments {
    /// Show these machines together: NAME, NAME:PORT, ADDRESS:PORT or unix:PATH of a service
    /// (`telltale serve`; port 9436 unless it is named), ssh://NAME or ssh://USER@NAME:PORT of one that
    /// has telltale, @FILE with one a line; commas between several
    #[arg(long = "hosts", value_name = "HOSTS", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["root", "runtime_dir", "no_nvml"])]
    pub(crate) items: Vec<HostItem>,
    /// The file with the services' token, without which processes are withheld; it is sent by TLS
    /// or within this machine only
    #[arg(long, value_name = "FILE", requires = "items")]
    pub(crate) token_file: Option<PathBuf>,
    /// Use TLS; the services' certificates must descend from the authority in FILE (PEM)
    #[arg(long, value_name = "FILE", requires = "items")]
    authority: Option<PathBuf>,
    /// Our own certificate, for services that want one (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// The key of our certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// A host that does not answer within SECONDS is shown as unreachable
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) timeout: Duration,
}

// === impl HostsArguments ===

impl HostsArguments {
    /// The files for TLS, if it is wanted.
    pub(crate) fn tls(&self) -> Option<TlsToPort> {
        let authority = self.authority.clone()?;
        Some(TlsToPort { authority, identity: self.certificate.clone().zip(self.key.clone()) })
    }
}
