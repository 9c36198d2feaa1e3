//! The arguments of `telltale coordinator`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use telltale_control_plane::server::configuration::{
    Configuration, ConfigurationError, ModeOption,
};
use telltale_server::listen::Address;
use telltale_server::log::{Format, Level};

/// What it does.
pub(super) const COORDINATOR_ABOUT: &str =
    "Run the coordinator of a training job: find failed nodes, replace them, restart the job";

/// What follows the options.
pub(super) const COORDINATOR_HELP: &str = "\
Finds failed and slow nodes by the reports of their agents (`telltale agent`), replaces them with
spares, and restarts the job. docs/cluster-reference.md lists all keys; arguments override the file.

Listens for gRPC on 127.0.0.1:9440 and for HTTP on 127.0.0.1:9441 (metrics at /metrics). An address
that other hosts can reach needs a certificate, and a token or a client authority. SIGTERM and
Ctrl-C end it; workers continue.

Exit status: 0 ended by a signal, 2 failure, 64 usage error.

Examples:
  telltale coordinator --nodes 4 --journal /var/lib/telltale/coordinator
  telltale coordinator --config /etc/telltale/coordinator.toml
  telltale coordinator --nodes 4 --etcd http://etcd-0:2379 --etcd http://etcd-1:2379 \\
    --advertise coordinator-0:9440 --config /etc/telltale/coordinator.toml";

#[derive(Debug, Args)]
pub(crate) struct CoordinatorArguments {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the job; workers get it as TORCHELASTIC_RUN_ID [default: job]
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Nodes of the job; further nodes are spares
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Workers per node [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Replace another stored job, or one that agents run and the store does not know
    #[arg(long)]
    reset_job: bool,
    /// Directory for decisions, on a local disk
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Store decisions in etcd, by a member's address; repeatable
    #[arg(long, value_name = "URL", conflicts_with = "journal")]
    etcd: Vec<String>,
    /// Address of this coordinator for others, with etcd [default: the first --listen]
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Listen for agents and operators; repeatable [default: 127.0.0.1:9440]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
    /// Listen for HTTP; repeatable [default: 127.0.0.1:9441]
    #[arg(long, value_name = "ADDRESS")]
    http: Vec<Address>,
    /// Do not listen for HTTP
    #[arg(long, conflicts_with = "http")]
    no_http: bool,
    /// File with the token that every call must carry
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Server certificate for TLS (PEM)
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Require client certificates of the authority in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    client_authority: Option<PathBuf>,
    /// How much to do by itself [default: recover]
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeArgument>,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) end_with_parent: Option<i32>,
    /// Log level: error, warn, info or debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
    /// Log format: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
}

/// How much a coordinator does by itself.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArgument {
    /// Start the job, then only report
    Observe,
    /// Also restart a failed job, and replace unreachable nodes
    Recover,
    /// Also replace suspected nodes
    Act,
}

// === impl CoordinatorArguments ===

impl CoordinatorArguments {
    /// The file's configuration with what the arguments say in its place.
    pub(crate) fn configuration(&self) -> Result<Configuration, ConfigurationError> {
        let mut configuration = match &self.config {
            Some(path) => Configuration::read(path)?,
            None => Configuration::default(),
        };
        let Configuration { log_level, log_format, job, listen, access, store, policy, .. } =
            &mut configuration;
        if let Some(level) = self.log_level {
            *log_level = level;
        }
        if let Some(format) = self.log_format {
            *log_format = format;
        }
        if let Some(name) = &self.job {
            job.name.clone_from(name);
        }
        job.nodes = self.nodes.or(job.nodes);
        job.workers = self.workers.unwrap_or(job.workers);
        job.resets_other = self.reset_job;
        if let Some(directory) = &self.journal {
            store.journal = Some(directory.clone());
            store.etcd.clear();
        }
        if !self.etcd.is_empty() {
            store.etcd.clone_from(&self.etcd);
            store.journal = None;
        }
        replace(&mut store.advertise, self.advertise.as_ref());
        if !self.listen.is_empty() {
            listen.grpc.clone_from(&self.listen);
        }
        if self.no_http || !self.http.is_empty() {
            listen.http.clone_from(&self.http);
        }
        replace(&mut access.token_file, self.token_file.as_ref());
        replace(&mut access.certificate, self.certificate.as_ref());
        replace(&mut access.key, self.key.as_ref());
        replace(&mut access.client_authority, self.client_authority.as_ref());
        match self.mode {
            Some(ModeArgument::Observe) => policy.mode = ModeOption::Observe,
            Some(ModeArgument::Recover) => policy.mode = ModeOption::Recover,
            Some(ModeArgument::Act) => policy.mode = ModeOption::Act,
            None => {}
        }
        Ok(configuration)
    }
}

fn replace<T: Clone>(held: &mut Option<T>, given: Option<&T>) {
    if let Some(given) = given {
        *held = Some(given.clone());
    }
}
