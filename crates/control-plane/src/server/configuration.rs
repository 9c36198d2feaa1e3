//! What an operator writes, and the plan that follows from it. Nothing is opened here but the file and
//! certificates that it names.
//!
//! Times are in seconds. The defaults of the policy and of detection are theirs, not repeated here.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use telltale_server::bounded_file;
use telltale_server::listen::Address;
use telltale_server::log::{Format, Level};
use telltale_server::tls::MAX_CERTIFICATES_BYTES;

use super::{AccessFiles, DEFAULT_CONNECTIONS, Plan};
use crate::store::{
    EtcdPlan, EtcdSettings, EtcdSettingsError, EtcdTls, JournalSettings, LEAST_LEASE, StoreLocation,
};
use telltale_cluster::detection::{DetectionSettings, Rule};
use telltale_cluster::policy::{Job, MAX_FAILED_STARTS, Mode, NoSpare, Policy};
use telltale_cluster::rank::WorkersPerNode;

/// Bytes of a configuration; a longer one is not read.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How long leadership lasts in etcd without being renewed, if nothing else is written.
const LEASE_SECONDS: u64 = LEAST_LEASE.as_secs();
/// The longest time that may be written.
const MAX_SECONDS: f64 = 1e9;

/// The configuration of a coordinator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// What is logged: `error`, `warn`, `info` or `debug`.
    pub log_level: Level,
    /// What lines of the log look like: `text`, or `json`, an object a line.
    pub log_format: Format,
    /// The job.
    pub job: JobOptions,
    /// Where callers call.
    pub listen: ListenOptions,
    /// How they prove who they are.
    pub access: AccessOptions,
    /// Where decisions are kept.
    pub store: StoreOptions,
    /// How the coordinator acts.
    pub policy: PolicyOptions,
    /// How faults are found.
    pub detection: DetectionOptions,
}

/// The table `[job]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobOptions {
    /// Its name (PyTorch's `TORCHELASTIC_RUN_ID`).
    pub name: String,
    /// How many nodes it runs on; the others are spares. Must be given.
    pub nodes: Option<u32>,
    /// How many workers each node runs.
    pub workers: u32,
    /// Whether another job that is stored must be ended, and this one to begin in its place. Not read
    /// from a file, where it would be forgotten.
    #[serde(skip)]
    pub resets_other: bool,
}

/// The table `[listen]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenOptions {
    /// Where agents and operators call, by gRPC.
    pub grpc: Vec<Address>,
    /// Where metrics, probes and the page are asked for, by HTTP.
    pub http: Vec<Address>,
    /// More names under which HTTP is answered, besides this machine's own.
    pub names: Vec<String>,
    /// Connections at a time.
    pub connections: usize,
}

/// The table `[access]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessOptions {
    /// A file with one word of 16 to 256 characters that others cannot read: every call must carry
    /// it as a bearer token.
    pub token_file: Option<PathBuf>,
    /// A PEM file with the coordinator's certificate and those that lead to its authority.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// A PEM file with the authority whose certificates callers must have.
    pub client_authority: Option<PathBuf>,
    /// What follows a node's name in its certificate.
    pub node_domain: Option<String>,
    /// Whether a caller may speak for any node, whatever names its certificate has.
    pub any_node: bool,
}

/// The table `[store]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreOptions {
    /// A directory on this machine's own disk, of this job alone.
    pub journal: Option<PathBuf>,
    /// Or, for several coordinators, the members of an etcd: `http://HOST:PORT`.
    pub etcd: Vec<String>,
    /// What all keys in etcd begin with; `telltale/` and the job's name, if this is not set.
    pub etcd_prefix: Option<String>,
    /// How long leadership lasts in etcd without being renewed.
    pub etcd_lease_seconds: Option<u64>,
    /// A PEM file with the authority of etcd's certificates; needed for `https`.
    pub etcd_authority: Option<PathBuf>,
    /// A PEM file with this coordinator's certificate for etcd.
    pub etcd_certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    pub etcd_key: Option<PathBuf>,
    /// Where agents and other coordinators reach this one, as HOST:PORT; the first address that gRPC
    /// listens on, if this is not set. Only etcd needs it.
    pub advertise: Option<String>,
}

/// The table `[policy]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each is the field of the policy that has its name")]
pub struct PolicyOptions {
    pub mode: ModeOption,
    pub keep_alive_seconds: f64,
    pub coalescing_seconds: f64,
    pub settling_seconds: f64,
    pub command_interval_seconds: f64,
    pub command_retries: u32,
    pub prepare_deadline_seconds: f64,
    pub store_interval_seconds: f64,
    pub restart_budget: u32,
    pub eviction_budget: u32,
    pub budget_window_seconds: f64,
    pub failures_to_quarantine: u32,
    pub continuity_windows: u32,
    pub hang_windows: u32,
    pub mass_silence_share: f64,
    pub mass_silence_timeout_seconds: f64,
    pub health_settling_seconds: f64,
    pub before_drain: Vec<String>,
    pub before_drain_timeout_seconds: f64,
    /// How few nodes the job may shrink to when no spare comes; it waits for one if this is not set.
    pub shrink_to_nodes: Option<u32>,
    /// How long a spare is waited for before that.
    pub shrink_after_seconds: f64,
    pub least_port: NonZeroU16,
    pub greatest_port: NonZeroU16,
}

/// How much a coordinator does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeOption {
    /// It starts the job and reports what it sees.
    Observe,
    /// It also restarts a job that has failed.
    Recover,
    /// It also replaces a node that is only suspected.
    Act,
}

/// The table `[detection]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each is the field of the settings that has its name")]
pub struct DetectionOptions {
    pub rule: RuleOption,
    pub crash_settling_seconds: f64,
    pub hang_after_seconds: f64,
    pub hang_at_start_seconds: f64,
    pub meaningful_ratio: f32,
    pub latency_threshold_seconds: f64,
    pub settling_windows: u32,
}

/// How slow nodes and links are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleOption {
    /// Each edge against its own history.
    OwnHistory,
    /// The original's rule.
    MeanTwoSigma,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The command before drains cannot be executed.
    #[error(
        "policy.before_drain must begin with the absolute path of a program that this user may execute, and \
         {program:?} is none"
    )]
    Hook {
        /// What it begins with.
        program: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}; make it readable, or name another file", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file does not say what it should.
    #[error("the configuration {} cannot be used", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The number of nodes is not configured.
    #[error("on how many nodes does the job run? Say so with --nodes, or `nodes` in [job]")]
    NoNodes,
    /// The job runs on no node.
    #[error("a job cannot run on 0 nodes; say on how many with --nodes, or `nodes` in [job]")]
    ZeroNodes,
    /// A node cannot run as many workers.
    #[error("a node cannot run {0} workers; 1 to 1024 are possible")]
    Workers(u32),
    /// No store for decisions is configured.
    #[error(
        "where are decisions to be kept? Name a directory with --journal, or members of an etcd with \
         --etcd"
    )]
    NoStore,
    /// Two places were named.
    #[error("decisions are kept in a journal or in etcd; name one of them")]
    TwoStores,
    /// Etcd cannot be asked as it was written.
    #[error("decisions cannot be kept in etcd like that")]
    Etcd(#[from] EtcdSettingsError),
    /// A certificate without a key, or a key without a certificate.
    #[error("a certificate for etcd needs its key, and both the authority of etcd's certificates")]
    HalfTls,
    /// A time is none.
    #[error("{key} is {value}, and must be a number of seconds from 0 to {MAX_SECONDS:e}")]
    Time {
        /// Which key.
        key: &'static str,
        /// What was written.
        value: f64,
    },
    /// A ratio is none.
    #[error("meaningful_ratio is {0}, and must be from 1 to 1000")]
    Ratio(f32),
}

impl ConfigurationError {
    /// Whether what was asked for makes no sense, or is not all there; else a file is at fault.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Read { .. } | Self::Text { .. })
    }
}

impl Default for JobOptions {
    fn default() -> Self {
        Self { name: String::from("job"), nodes: None, workers: 1, resets_other: false }
    }
}

impl Default for ListenOptions {
    fn default() -> Self {
        let address = |port| Address::Tcp(([127, 0, 0, 1], port).into());
        let (grpc, http) = (vec![address(9440)], vec![address(9441)]);
        Self { grpc, http, names: Vec::new(), connections: DEFAULT_CONNECTIONS }
    }
}

impl Default for PolicyOptions {
    fn default() -> Self {
        let policy = Policy::default();
        let mode = match policy.mode {
            Mode::Observe => ModeOption::Observe,
            Mode::Recover => ModeOption::Recover,
            Mode::Act => ModeOption::Act,
        };
        Self {
            mode,
            keep_alive_seconds: policy.keep_alive.as_secs_f64(),
            coalescing_seconds: policy.coalescing.as_secs_f64(),
            settling_seconds: policy.settling.as_secs_f64(),
            command_interval_seconds: policy.command_interval.as_secs_f64(),
            command_retries: policy.command_retries,
            prepare_deadline_seconds: policy.prepare_deadline.as_secs_f64(),
            store_interval_seconds: policy.store_interval.as_secs_f64(),
            restart_budget: policy.restart_budget,
            eviction_budget: policy.eviction_budget,
            budget_window_seconds: policy.budget_window.as_secs_f64(),
            failures_to_quarantine: policy.failures_to_quarantine,
            continuity_windows: policy.continuity_windows,
            hang_windows: policy.hang_windows,
            mass_silence_share: policy.mass_silence_share,
            mass_silence_timeout_seconds: policy.mass_silence_timeout.as_secs_f64(),
            health_settling_seconds: policy.health_settling.as_secs_f64(),
            before_drain: policy.before_drain,
            before_drain_timeout_seconds: policy.before_drain_timeout.as_secs_f64(),
            shrink_to_nodes: None,
            shrink_after_seconds: 60.0,
            least_port: policy.least_port,
            greatest_port: policy.greatest_port,
        }
    }
}

impl Default for DetectionOptions {
    fn default() -> Self {
        let settings = DetectionSettings::default();
        let rule = match settings.rule {
            Rule::OwnHistory => RuleOption::OwnHistory,
            Rule::MeanTwoSigma => RuleOption::MeanTwoSigma,
        };
        Self {
            rule,
            crash_settling_seconds: settings.crash_settling.as_secs_f64(),
            hang_after_seconds: settings.hang_after.as_secs_f64(),
            hang_at_start_seconds: settings.hang_at_start.as_secs_f64(),
            meaningful_ratio: settings.meaningful_ratio,
            latency_threshold_seconds: settings.latency_threshold.as_secs_f64(),
            settling_windows: settings.settling_windows,
        }
    }
}

// === impl Configuration ===

impl Configuration {
    /// The configuration in a file; what it does not say is as by default.
    ///
    /// # Errors
    /// When the file cannot be read, or says what is not known.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let failed = |source| ConfigurationError::Read { path: path.to_owned(), source };
        let text = String::from_utf8(contents(path, MAX_FILE_BYTES)?)
            .map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
        toml::from_str(&text).map_err(|source| ConfigurationError::Text {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// The plan that follows.
    ///
    /// # Errors
    /// When something is missing or cannot be.
    pub fn plan(&self) -> Result<Plan, ConfigurationError> {
        let workers = self.job.workers;
        let workers = WorkersPerNode::new(workers).ok_or(ConfigurationError::Workers(workers))?;
        let slots = self.job.nodes.ok_or(ConfigurationError::NoNodes)?;
        if slots == 0 {
            return Err(ConfigurationError::ZeroNodes);
        }
        let policy = self.policy.policy()?;
        if let Some(program) = policy.before_drain.first().filter(|program| !is_program(program)) {
            return Err(ConfigurationError::Hook { program: program.clone() });
        }
        Ok(Plan {
            job: Job { name: self.job.name.clone(), slots, workers },
            detection: self.detection.settings(policy.keep_alive)?,
            policy,
            store: self.place()?,
            grpc: self.listen.grpc.clone(),
            http: self.listen.http.clone(),
            names: self.listen.names.clone(),
            access: AccessFiles {
                token: self.access.token_file.clone(),
                certificate: self.access.certificate.clone(),
                key: self.access.key.clone(),
                client_authority: self.access.client_authority.clone(),
                node_domain: self.access.node_domain.clone(),
                any_node: self.access.any_node,
            },
            connections: self.listen.connections,
            resets_other_job: self.job.resets_other,
        })
    }
}

impl Configuration {
    fn place(&self) -> Result<StoreLocation, ConfigurationError> {
        let store = &self.store;
        match (&store.journal, store.etcd.as_slice()) {
            (None, []) => Err(ConfigurationError::NoStore),
            (Some(_), [_, ..]) => Err(ConfigurationError::TwoStores),
            (Some(directory), []) => {
                Ok(StoreLocation::Journal(JournalSettings { directory: directory.clone() }))
            }
            (None, members) => {
                let prefix = format!("telltale/{}", self.job.name);
                let first = self.listen.grpc.first().map(Address::to_string);
                let plan = EtcdPlan {
                    members: members.to_vec(),
                    prefix: store.etcd_prefix.clone().unwrap_or(prefix),
                    address: store.advertise.clone().or(first).unwrap_or_default(),
                    lease: Duration::from_secs(store.etcd_lease_seconds.unwrap_or(LEASE_SECONDS)),
                    tls: store.tls()?,
                };
                Ok(StoreLocation::Etcd(EtcdSettings::new(&plan)?))
            }
        }
    }
}

impl StoreOptions {
    fn tls(&self) -> Result<Option<EtcdTls>, ConfigurationError> {
        let identity = match (&self.etcd_certificate, &self.etcd_key) {
            (Some(certificate), Some(key)) => Some((
                contents(certificate, MAX_CERTIFICATES_BYTES)?,
                contents(key, MAX_CERTIFICATES_BYTES)?,
            )),
            (None, None) => None,
            _ => return Err(ConfigurationError::HalfTls),
        };
        match &self.etcd_authority {
            Some(authorities) => Ok(Some(EtcdTls {
                authorities: contents(authorities, MAX_CERTIFICATES_BYTES)?,
                identity,
            })),
            None if identity.is_some() => Err(ConfigurationError::HalfTls),
            None => Ok(None),
        }
    }
}

fn contents(path: &Path, most_bytes: u64) -> Result<Vec<u8>, ConfigurationError> {
    let failed = |source| ConfigurationError::Read { path: path.to_owned(), source };
    bounded_file::read(path, most_bytes).map_err(failed)
}

impl PolicyOptions {
    fn policy(&self) -> Result<Policy, ConfigurationError> {
        let timeout = seconds("shrink_after_seconds", self.shrink_after_seconds)?;
        let no_spare = match self.shrink_to_nodes {
            Some(least_slots) => NoSpare::Shrink { least_slots, timeout },
            None => NoSpare::Hold,
        };
        Ok(Policy {
            mode: self.mode.into(),
            keep_alive: seconds("keep_alive_seconds", self.keep_alive_seconds)?,
            coalescing: seconds("coalescing_seconds", self.coalescing_seconds)?,
            settling: seconds("settling_seconds", self.settling_seconds)?,
            command_interval: seconds("command_interval_seconds", self.command_interval_seconds)?,
            command_retries: self.command_retries,
            prepare_deadline: seconds("prepare_deadline_seconds", self.prepare_deadline_seconds)?,
            store_interval: seconds("store_interval_seconds", self.store_interval_seconds)?,
            restart_budget: self.restart_budget,
            max_failed_starts: MAX_FAILED_STARTS,
            eviction_budget: self.eviction_budget,
            budget_window: seconds("budget_window_seconds", self.budget_window_seconds)?,
            failures_to_quarantine: self.failures_to_quarantine,
            continuity_windows: self.continuity_windows,
            hang_windows: self.hang_windows,
            mass_silence_share: self.mass_silence_share,
            mass_silence_timeout: seconds(
                "mass_silence_timeout_seconds",
                self.mass_silence_timeout_seconds,
            )?,
            health_settling: seconds("health_settling_seconds", self.health_settling_seconds)?,
            before_drain: self.before_drain.clone(),
            before_drain_timeout: seconds(
                "before_drain_timeout_seconds",
                self.before_drain_timeout_seconds,
            )?,
            no_spare,
            starts_short: false,
            least_port: self.least_port,
            greatest_port: self.greatest_port,
        })
    }
}

impl From<ModeOption> for Mode {
    fn from(mode: ModeOption) -> Self {
        match mode {
            ModeOption::Observe => Self::Observe,
            ModeOption::Recover => Self::Recover,
            ModeOption::Act => Self::Act,
        }
    }
}

impl DetectionOptions {
    fn settings(&self, keep_alive: Duration) -> Result<DetectionSettings, ConfigurationError> {
        if !(1.0..=1000.0).contains(&self.meaningful_ratio) {
            return Err(ConfigurationError::Ratio(self.meaningful_ratio));
        }
        Ok(DetectionSettings {
            rule: match self.rule {
                RuleOption::OwnHistory => Rule::OwnHistory,
                RuleOption::MeanTwoSigma => Rule::MeanTwoSigma,
            },
            keep_alive,
            crash_settling: seconds("crash_settling_seconds", self.crash_settling_seconds)?,
            hang_after: seconds("hang_after_seconds", self.hang_after_seconds)?,
            hang_at_start: seconds("hang_at_start_seconds", self.hang_at_start_seconds)?,
            window: DetectionSettings::default().window,
            meaningful_ratio: self.meaningful_ratio,
            latency_threshold: seconds(
                "latency_threshold_seconds",
                self.latency_threshold_seconds,
            )?,
            settling_windows: self.settling_windows,
        })
    }
}

/// Whether this is the absolute path of a program that this user may execute.
fn is_program(path: &str) -> bool {
    let path = Path::new(path);
    path.is_absolute() && path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

fn seconds(key: &'static str, value: f64) -> Result<Duration, ConfigurationError> {
    if !(0.0..=MAX_SECONDS).contains(&value) {
        return Err(ConfigurationError::Time { key, value });
    }
    Ok(Duration::from_secs_f64(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Plan, String> {
        let configuration: Configuration = toml::from_str(text).map_err(|it| it.to_string())?;
        configuration.plan().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_is_as_the_machines_have_it() {
        let plan = of("[job]\nnodes = 4\n[store]\njournal = \"/tmp/j\"\n").unwrap();
        assert_eq!(plan.policy, Policy::default());
        assert_eq!(plan.detection, DetectionSettings::default());
        assert_eq!((plan.job.slots, plan.job.workers.get()), (4, 1));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let rest = "[store]\njournal = \"j\"\n";
        let cases = [
            ("", "how many nodes"),
            ("[job]\nnodes = 0\n", "0 nodes"),
            ("[job]\nnodes = 4\n", "where are decisions"),
            (
                "[job]\nnodes = 4\n[store]\njournal = \"j\"\netcd = [\"http://a:1\"]\n",
                "one of them",
            ),
            ("[job]\nnodes = 4\n[store]\netcd = [\"a:1\"]\n", "cannot be kept in etcd"),
            ("[job]\nnodes = 4\n[store]\netcd = [\"http://a:1\"]\netcd_key = \"k\"\n", "its key"),
            ("[job]\nnodes = 4\nworkers = 0\n[store]\njournal = \"j\"\n", "0 workers"),
            ("[job]\nnodes = 4\ncolour = 1\n", "colour"),
            ("[policy]\nmode = \"loud\"\n", "loud"),
            ("[policy]\nkeep_alive_seconds = -1.0\n[job]\nnodes = 1\n", "keep_alive_seconds is -1"),
            (
                "[policy]\nmass_silence_timeout_seconds = -1.0\n[job]\nnodes = 1\n",
                "mass_silence_timeout_seconds is -1",
            ),
            ("[policy]\nsettling_seconds = nan\n[job]\nnodes = 1\n", "settling_seconds is NaN"),
            ("[detection]\nmeaningful_ratio = 0.5\n[job]\nnodes = 1\n", "from 1 to 1000"),
            (
                "[detection]\nlatency_threshold_seconds = -0.1\n[job]\nnodes = 1\n",
                "latency_threshold_seconds is -0.1",
            ),
            ("[policy]\nbefore_drain = [\"/etc/passwd\"]\n[job]\nnodes = 1\n", "before_drain"),
            ("[policy]\nbefore_drain = [\"true\"]\n[job]\nnodes = 1\n", "absolute path"),
            ("[listen]\ngrpc = [\"localhost\"]\n", "is no address"),
        ];
        for (text, expected) in cases {
            let whole = if text.contains("store") || text.contains("nodes = 4") || text.is_empty() {
                text.to_owned()
            } else {
                format!("{text}{rest}")
            };
            let error = of(&whole).expect_err(text);
            assert!(error.contains(expected), "{whole:?}: {error}");
        }
    }
}
