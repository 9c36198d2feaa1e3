//! What surrounds a process: how it was started, what it has mapped, its connections and its limits.
//!
//! None of it may carry a secret: the environment is an allow-list, and command lines are redacted.

mod cgroup;
mod command_line;
mod environment;
mod libraries;
mod sockets;

use procfs::process::Process;
use serde::{Deserialize, Serialize};

pub use cgroup::ControlGroup;
pub use libraries::Library;
pub use sockets::TcpConnection;

pub(crate) use environment::{rank, slurm_job};
pub(crate) use sockets::connections;

use std::collections::BTreeMap;

/// What surrounds a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// Its command line; `…` stands for what may be a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables that say how a job is set up, and no others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Libraries of collectives and devices that it has mapped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<Library>,
    /// Memory and pressure of its control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<ControlGroup>,
}

impl Context {
    /// Reads it; what cannot be read is left out.
    pub(crate) fn of(process: &Process) -> Self {
        let variables = process.environ().unwrap_or_default();
        Self {
            command: command_line::redacted(&process.cmdline().unwrap_or_default()),
            environment: environment::allowed(&variables),
            libraries: libraries::of(process),
            control_group: ControlGroup::of(process),
        }
    }
}
