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
    "Coordinate the nodes of a training job: find the one that failed, swap it, restart the job";

/// What follows the options.
pub(super) const COORDINATOR_HELP: &str = "\
Knows the nodes of one training job by their agents (`telltale agent`), finds out which has failed
or become slow, puts a spare in its place, and restarts the job. Everything that can be set is in
docs/cluster-reference.md; arguments override the file.

Agents and operators call by gRPC, on 127.0.0.1:9440 unless --listen says otherwise; metrics are on
http://127.0.0.1:9441/metrics. An address that other machines can reach needs a certificate, and a
token or a client authority. SIGTERM and Ctrl-C end it; the job's workers go on.

Exit status: 0 it was asked to end, 2 it could not begin or go on, 64 wrong usage.

Examples:
  telltale coordinator --nodes 4 --journal /var/lib/telltale/coordinator
  telltale coordinator --config /etc/telltale/coordinator.toml
  telltale coordinator --nodes 4 --etcd http://etcd-0:2379 --etcd http://etcd-1:2379 \\
    --advertise coordinator-0:9440 --config /etc/telltale/coordinator.toml";

#[derive(Debug, Args)]
pub(crate) struct CoordinatorArguments {
    /// Read FILE (TOML) first
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The job's name, which its workers see as TORCHELASTIC_RUN_ID [default: job]
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// On how many nodes the job runs; more that come are spares
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// How many workers each node runs [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// End another job that is stored (by name, workers, or more nodes), or that agents run and the
    /// store does not know, and begin this one
    #[arg(long)]
    reset_job: bool,
    /// Keep decisions in DIR, on this machine's own disk
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Keep decisions in the etcd with this member; can be given several times
    #[arg(long, value_name = "URL", conflicts_with = "journal")]
    etcd: Vec<String>,
    /// Where others reach this coordinator, for etcd [default: the first --listen]
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Listen there for agents and operators; can be given several times
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
    /// Listen there for HTTP; can be given several times
    #[arg(long, value_name = "ADDRESS")]
    http: Vec<Address>,
    /// Do not listen for HTTP
    #[arg(long, conflicts_with = "http")]
    no_http: bool,
    /// Every call must carry the token in FILE
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Use TLS with the certificate in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Callers must have a certificate of the authority in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    client_authority: Option<PathBuf>,
    /// How much to do without being told
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeArgument>,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) end_with_parent: Option<i32>,
    /// What to log: error, warn, info or debug
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
    /// What its lines look like: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
}

/// How much a coordinator does by itself.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArgument {
    /// Start the job, and tell what is seen
    Observe,
    /// Also restart a job that has failed, and replace nodes that are not heard
    Recover,
    /// Also replace a node that is only suspected
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
