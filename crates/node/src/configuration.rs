//! What can be configured, part by part, with the values that hold when nothing is said.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::collector::CollectOptions;
use crate::log::Level;
use crate::service::ServiceOptions;

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
    pub interval_seconds: f64,
    /// What is logged: `error`, `warn`, `info` or `debug`.
    pub log_level: Level,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
            runtime_dir: None,
            state_dir: None,
            interval_seconds: 1.0,
            log_level: Level::default(),
        }
    }
}

// === impl Configuration ===

impl Configuration {
    /// What the collecting thread needs of it.
    pub fn service(&self) -> ServiceOptions {
        let collect = CollectOptions {
            root: self.root.clone(),
            runtime_dir: self.runtime_dir.clone(),
            ..CollectOptions::default()
        };
        ServiceOptions { collect, interval: Duration::from_secs_f64(self.interval_seconds) }
    }
}
