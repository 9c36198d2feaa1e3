//! The arguments of `telltale health`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_node::grpc::{HealthEndpoint, TlsToPort};

use super::{LocationArguments, seconds};

/// What follows the options.
pub(super) const HEALTH_HELP: &str = "\
Asks the health service of gRPC (grpc.health.v1), which anyone who can connect may do: for probes of
Kubernetes, health checks of containers, and scripts.

Exit status: 0 it serves, 1 it answers and does not serve, since it has no snapshot younger than
three intervals, 2 it cannot be reached or does not answer in time, 64 wrong usage.

Examples:
  telltale health
  telltale health --endpoint unix:/run/tt/telemetry.sock --json
  telltale health --endpoint node7:9436 --authority authority.pem";

#[derive(Debug, Args)]
pub(crate) struct HealthArguments {
    /// Where the service is: unix:PATH, ADDRESS:PORT or NAME:PORT [default: the socket in the
    /// runtime directory]
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) endpoint: Option<HealthEndpoint>,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// Give up after SECONDS
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Use TLS; the certificate of a port must descend from the authority in FILE (PEM)
    #[arg(long, value_name = "FILE", requires = "endpoint")]
    authority: Option<PathBuf>,
    /// Our own certificate, for a service that wants one (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// The key of our certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Print JSON: an object with endpoint, status (serving, not_serving or unreachable), and reason
    #[arg(long)]
    pub(crate) json: bool,
}

// === impl HealthArguments ===

impl HealthArguments {
    /// The files for TLS, if it is wanted.
    pub(crate) fn tls(&self) -> Option<TlsToPort> {
        let authority = self.authority.clone()?;
        Some(TlsToPort { authority, identity: self.certificate.clone().zip(self.key.clone()) })
    }
}
