//! The arguments of `telltale health`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_client::ServiceAddress;
use telltale_sources::ClientTlsFiles;

use super::{LocationArguments, seconds};

/// What follows the options.
pub(super) const HEALTH_HELP: &str = "\
Calls grpc.health.v1, which needs no permission: for Kubernetes probes, container health checks and
scripts.

Exit status: 0 serving, 1 not serving (no snapshot younger than three intervals), 2 unreachable or
timeout, 64 usage error.

Examples:
  telltale health
  telltale health --endpoint unix:/run/tt/telemetry.sock --json
  telltale health --endpoint node7:9436 --authority authority.pem";

#[derive(Debug, Args)]
pub(crate) struct HealthArguments {
    /// Address of the service: unix:PATH, ADDRESS:PORT or NAME:PORT [default: the socket in the
    /// runtime directory]
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) endpoint: Option<ServiceAddress>,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// Timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Use TLS and verify the service against the authority in FILE (PEM)
    #[arg(long, value_name = "FILE", requires = "endpoint")]
    authority: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Print JSON: endpoint, status (serving, not_serving, unreachable), reason
    #[arg(long)]
    pub(crate) json: bool,
}

// === impl HealthArguments ===

impl HealthArguments {
    /// The files for TLS, if it is wanted.
    pub(crate) fn tls(&self) -> Option<ClientTlsFiles> {
        let authority = self.authority.clone()?;
        Some(ClientTlsFiles { authority, identity: self.certificate.clone().zip(self.key.clone()) })
    }
}
