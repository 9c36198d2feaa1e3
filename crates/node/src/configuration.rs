//! What can be configured, part by part, with the values that hold when nothing is said.

mod check;
mod consistency;
mod dotted;
mod keys;
mod layers;
mod lists;
mod text;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::alerts::AlertOptions;
use crate::grpc::GrpcOptions;
use crate::history::HistoryOptions;
use crate::http::HttpOptions;
use crate::kubelet::list_allocated;
use crate::legacy::LegacyOptions;
use crate::otlp::OtlpOptions;
use crate::service::ServiceOptions;
use telltale_collector::hardware::HardwareOptions;
use telltale_collector::{CollectOptions, HealthOptions, PodOptions};
use telltale_server::log::{Format, Level};

pub use consistency::ConfigurationRefusal;
pub use keys::{ConfigurationKey, ValueKind, keys_of};
pub use layers::{Argument, ConfigurationError, Effective, Layers, Origin, variable_of};
pub use text::FileProblem;

/// The times from one collection to the next that can be had, in seconds.
pub const INTERVAL_SECONDS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Keys, or tables of keys, that a running service takes over on a request to reload its
/// configuration again. All others need a restart.
const RELOADABLE: [&str; 10] = [
    "interval_seconds",
    "log_level",
    "alerts",
    "token_file",
    "grpc.certificate",
    "grpc.key",
    "grpc.client_authority",
    "http.certificate",
    "http.key",
    "http.client_authority",
];

/// The configuration of the service. Each part has a table of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// Where the machine's files are: `/`, or an emulated or recorded machine.
    pub root: PathBuf,
    /// Where ledgers and endpoints are, and the service's own socket; by default where a runtime
    /// of this user puts them.
    pub runtime_dir: Option<PathBuf>,
    /// Where the service keeps what must survive it; by default `$STATE_DIRECTORY`, else a
    /// directory for root or the user.
    pub state_dir: Option<PathBuf>,
    /// The time from one collection to the next, in seconds, from 0.1 to 3600.
    #[serde(deserialize_with = "interval_seconds")]
    pub interval_seconds: f64,
    /// What is logged: `error`, `warn`, `info` or `debug`.
    pub log_level: Level,
    /// What lines of the log look like: `text`, or `json`, an object a line.
    pub log_format: Format,
    /// The history.
    pub history: HistoryOptions,
    /// A file with one word of 16 to 256 characters that others cannot read: who sends it as a
    /// bearer token sees everything.
    pub token_file: Option<PathBuf>,
    /// Whether callers on a port of the loopback are known as the users of this machine that the
    /// kernel says they are: root sees everything, others their own. False where a proxy on this
    /// machine passes on what strangers ask.
    pub loopback_users: bool,
    /// gRPC.
    pub grpc: GrpcOptions,
    /// HTTP.
    pub http: HttpOptions,
    /// What is watched, and who is notified.
    pub alerts: AlertOptions,
    /// The allocation server's protocol.
    pub legacy: LegacyOptions,
    /// Names of Kubernetes pods.
    pub pods: PodOptions,
    /// Where devices are searched for.
    pub hardware: HardwareOptions,
    /// From when on something is wrong with a device or a part of the machine.
    pub health: HealthOptions,
    /// Export by OpenTelemetry's protocol.
    pub otlp: OtlpOptions,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
            runtime_dir: None,
            state_dir: None,
            interval_seconds: 1.0,
            log_level: Level::default(),
            log_format: Format::default(),
            history: HistoryOptions::default(),
            token_file: None,
            loopback_users: true,
            grpc: GrpcOptions::default(),
            http: HttpOptions::default(),
            alerts: AlertOptions::default(),
            legacy: LegacyOptions::default(),
            pods: PodOptions::default(),
            hardware: HardwareOptions::default(),
            health: HealthOptions::default(),
            otlp: OtlpOptions::default(),
        }
    }
}

// === impl Configuration ===

impl Configuration {
    /// Every key that can be set.
    pub fn keys() -> Vec<ConfigurationKey> {
        keys_of::<Self>()
    }

    /// Reads a table as the text of a file is read, so that there is one reader: two are 130 kB of code.
    fn of_table(table: &toml::Table) -> Result<Self, toml::de::Error> {
        let text = toml::to_string(table).map_err(serde::de::Error::custom)?;
        toml::from_str(&text)
    }

    /// The values as a file would have them; a key without a value is left out.
    ///
    /// # Panics
    /// When a part has options that no file could have.
    pub fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("options are plain values")
    }

    /// What a service that runs with this configuration goes by once it has read `new`, and the keys
    /// that differ from it in `new`, since they need a restart.
    ///
    /// # Panics
    /// Never: each value is one of a configuration that there is.
    #[must_use]
    pub fn taking_over(&self, new: &Self) -> (Self, Vec<String>) {
        let (before, wanted) = (self.table(), new.table());
        let differs = |path: &str| dotted::lookup(&before, path) != dotted::lookup(&wanted, path);
        let fixed = |path: &str| {
            let within = |one: &str| path == one || path.starts_with(&format!("{one}."));
            !RELOADABLE.iter().any(|one| within(one))
        };
        let keys = Self::keys().into_iter().map(|key| key.path);
        // A port may be open to other machines because there is a token.
        let token_is_gone = new.token_file.is_none() && self.token_file.is_some();
        let fixed = |path: &str| fixed(path) || (path == "token_file" && token_is_gone);
        let left: Vec<String> = keys.filter(|path| fixed(path) && differs(path)).collect();
        let mut taken = wanted.clone();
        for path in &left {
            dotted::set(&mut taken, path, dotted::lookup(&before, path).cloned());
        }
        let taken = Self::of_table(&taken).expect("both configurations were read, key by key");
        (taken, left)
    }

    /// The time from one collection to the next.
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval_seconds)
    }

    /// What the collecting thread needs of it.
    pub fn service(&self) -> ServiceOptions {
        let collect = CollectOptions {
            root: self.root.clone(),
            runtime_dir: self.runtime_dir.clone(),
            pods: self.pods.clone(),
            list_allocated: Some(list_allocated),
            host: self.hardware.host,
            nvml: self.hardware.nvml_use(),
            health: self.health.settings(),
            ..CollectOptions::default()
        };
        ServiceOptions { collect, interval: self.interval(), legacy: None, known: None }
    }
}

/// Reads a time from one collection to the next.
fn interval_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    if INTERVAL_SECONDS.contains(&seconds) {
        return Ok(seconds);
    }
    let (least, most) = (INTERVAL_SECONDS.start(), INTERVAL_SECONDS.end());
    Err(D::Error::custom(format!("{seconds} is not from {least} to {most} seconds")))
}

#[cfg(test)]
mod tests;
